package codec_test

import (
	"net/http"
	"reflect"
	"testing"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model"
)

var seeds = []string{
	``, `null`, `{}`, `[]`, `{"metadata":{"name":"ci"},"spec":{"ttl":5,"scope":{"roles":[{"role":"agent"}]}}}`,
	`{"spec":{"ttl":"5"}}`, `{"a":1,"a":2}`, `{"metadata":{"name":"\ud800"}}`, "metadata:\n  name: ci\n", "a: &a [*a]",
	"a: 1\n---\nb: 2\n", "a: &a {b: c}\nd: {<<: *a}\n", "? [a]\n: b\n", "a: !!binary aGk=\n", "a: 2001-01-01\n1: 2\n~: 3\n",
	"%YAML 1.1\n---\n{}\n", "\ufeff{}", "\xff", "a: .inf\n", "- &a a\n- *a\n", "!!map {a: b}", "a: |\n  b\n ---\n",
}

// FuzzRead finds texts that are read in a way that they should not be: with a panic, with another error than
// a client's, or into something that is no JSON.
func FuzzRead(f *testing.F) {
	for _, seed := range seeds {
		f.Add(codec.JSON, []byte(seed))
		f.Add(codec.YAML, []byte(seed))
	}
	f.Add("application/json; charset=\"", []byte(`{}`))
	f.Fuzz(func(t *testing.T, contentType string, data []byte) {
		body, err := codec.Read(contentType, data)
		switch code(err) {
		case http.StatusOK:
			if !utf8.Valid(body.JSON) {
				t.Errorf("read into what is no UTF-8: %q", body.JSON)
			}
		case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge:
		default:
			t.Errorf("%d: %v", code(err), err)
		}
	})
}

// FuzzDecode finds bodies that the strictnesses disagree about: Strict accepts what Warn takes without a
// warning, and Warn and Ignore decode to the same object.
func FuzzDecode(f *testing.F) {
	for _, seed := range seeds {
		f.Add(false, []byte(seed))
		f.Add(true, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, yaml bool, data []byte) {
		media := codec.JSON
		if yaml {
			media = codec.YAML
		}
		body, err := codec.Read(media, data)
		if err != nil {
			return
		}
		var strict, warn, ignore model.OwnedAccessKey
		_, strictErr := codec.Decode(body, &strict, codec.Strict)
		warnings, warnErr := codec.Decode(body, &warn, codec.Warn)
		silence, ignoreErr := codec.Decode(body, &ignore, codec.Ignore)
		if (warnErr == nil) != (ignoreErr == nil) || len(silence) > 0 {
			t.Fatalf("Warn: %v, Ignore: %v %q", warnErr, ignoreErr, silence)
		}
		if (strictErr == nil) != (warnErr == nil && len(warnings) == 0) {
			t.Fatalf("Strict: %v, Warn: %v %q", strictErr, warnErr, warnings)
		}
		for _, err := range []error{strictErr, warnErr, ignoreErr} {
			if err != nil && code(err) != http.StatusBadRequest {
				t.Fatalf("%d: %v", code(err), err)
			}
		}
		if warnErr == nil && !reflect.DeepEqual(warn, ignore) {
			t.Fatalf("Warn: %+v, Ignore: %+v", warn, ignore)
		}
	})
}

// FuzzDecodeProtobuf finds envelopes that panic or are no client's error.
func FuzzDecodeProtobuf(f *testing.F) {
	f.Add(envelope(f, review(f)))
	f.Add(envelope(f, nil))
	f.Add([]byte("k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := codec.DecodeProtobuf(data, (&authenticationv1.TokenReview{}).Unmarshal)
		if err != nil && code(err) != http.StatusBadRequest {
			t.Errorf("%d: %v", code(err), err)
		}
	})
}

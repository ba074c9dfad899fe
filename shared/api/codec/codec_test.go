package codec_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

const (
	unknown   = string(metav1.CauseTypeFieldValueNotSupported) + " "
	duplicate = string(metav1.CauseTypeFieldValueDuplicate) + " "
	wrongType = string(metav1.CauseTypeTypeInvalid) + " "
)

// read reads and decodes a body.
func read(contentType, text string, strictness codec.Strictness) (*model.OwnedAccessKey, []string, error) {
	body, err := codec.Read(contentType, []byte(text))
	if err != nil {
		return nil, nil, err
	}
	into := &model.OwnedAccessKey{}
	warnings, err := codec.Decode(body, into, strictness)
	return into, warnings, err
}

func causes(err error) []string {
	var list []string
	if details := apierror.From(err).Status().Details; details != nil {
		for _, cause := range details.Causes {
			list = append(list, string(cause.Type)+" "+cause.Field)
		}
	}
	slices.Sort(list)
	return list
}

func code(err error) int32 {
	if err == nil {
		return http.StatusOK
	}
	return apierror.From(err).Status().Code
}

// TestStrictness is what each of the strictnesses makes of a body: what is refused under Strict is as many
// warnings under Warn, and nothing under Ignore.
func TestStrictness(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		media    string
		body     string
		strict   []string
		warnings int
		name     string
	}{
		{"Spec 2.1", "a good object", codec.JSON, `{"metadata":{"name":"ci"},"spec":{"ttl":5}}`, nil, 0, "ci"},
		{"Spec 2.1", "a good object in YAML", codec.YAML, "metadata:\n  name: ci\nspec: {ttl: 5}\n", nil, 0, "ci"},
		{"Spec 2.1", "an empty object", codec.JSON, `{}`, nil, 0, ""},
		{"Spec 2.1", "values that are null", codec.JSON, `{"metadata":{"name":null},"spec":null}`, nil, 0, ""},
		{"ADR-0003", "an unknown field", codec.JSON, `{"metadata":{"name":"ci"},"colour":1}`, []string{unknown + "colour"}, 1, "ci"},
		{"ADR-0003", "an unknown field inside", codec.JSON, `{"metadata":{"name":"ci"},"spec":{"scope":{"roles":[{"role":"a"},{"rule":1}]}}}`, []string{unknown + "spec.scope.roles[1].rule"}, 1, "ci"},
		{"ADR-0003", "an unknown field in YAML", codec.YAML, "metadata: {name: ci}\nspec: {colour: red}\n", []string{unknown + "spec.colour"}, 1, "ci"},
		{"ADR-0003", "unknown fields are told all at once", codec.JSON, `{"a":1,"metadata":{"name":"ci","b":2},"spec":{"c":{"d":3}}}`, []string{unknown + "a", unknown + "metadata.b", unknown + "spec.c"}, 3, "ci"},
		{"ADR-0003", "names are compared with case", codec.JSON, `{"Metadata":{"name":"x"},"metadata":{"Name":"y","name":"ci"}}`, []string{unknown + "Metadata", unknown + "metadata.Name"}, 2, "ci"},
		{"ADR-0003", "the Go name is no name", codec.JSON, `{"metadata":{"name":"ci"},"spec":{"TTLSeconds":5}}`, []string{unknown + "spec.TTLSeconds"}, 1, "ci"},
		{"ADR-0003", "a duplicate field, of which the last counts", codec.JSON, `{"metadata":{"name":"x","name":"ci"}}`, []string{duplicate + "metadata.name"}, 1, "ci"},
		{"ADR-0003", "a duplicate field in YAML", codec.YAML, "metadata:\n  name: x\n  name: ci\n", []string{duplicate + "name"}, 1, "ci"},
		{"ADR-0003", "duplicate and unknown fields in YAML", codec.YAML, "metadata:\n  name: x\n  name: ci\ncolour: red\n", []string{duplicate + "name", unknown + "colour"}, 2, "ci"},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			_, _, err := read(row.media, row.body, codec.Strict)
			slices.Sort(row.strict)
			if got := causes(err); !slices.Equal(got, row.strict) {
				t.Errorf("Strict: got %q, want %q: %v", got, row.strict, err)
			}
			if err != nil && code(err) != http.StatusBadRequest {
				t.Errorf("Strict: the code is %d", code(err))
			}
			for _, lenient := range []struct {
				strictness codec.Strictness
				warnings   int
			}{{codec.Warn, row.warnings}, {"", row.warnings}, {codec.Ignore, 0}} {
				object, warnings, err := read(row.media, row.body, lenient.strictness)
				if err != nil || len(warnings) != lenient.warnings || object.Name != row.name {
					t.Errorf("%q: name %q, warnings %q, error %v", lenient.strictness, object.Name, warnings, err)
				}
			}
		})
	}
}

// TestRefused is what no strictness accepts.
func TestRefused(t *testing.T) {
	nested := func(depth int) string {
		return `{"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}"
	}
	laughs := `a: &a ["x","x","x","x","x","x","x","x","x","x"]` + "\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), c-1)
	}
	wide := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 200) + "]\n"
	deep := "a: &a {x: " + strings.Repeat("x", 1<<19) + "}\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n"
	for _, row := range []struct {
		section  string
		sentence string
		media    string
		body     string
		code     int32
		causes   []string
	}{
		{"Spec 2.1", "nothing", codec.JSON, ``, 400, nil},
		{"Spec 2.1", "nothing but blanks", codec.JSON, " \t\r\n", 400, nil},
		{"Spec 2.1", "nothing but many blanks", codec.JSON, strings.Repeat(" ", 1000), 400, nil},
		{"Spec 2.1", "null", codec.JSON, `null`, 400, nil},
		{"Spec 2.1", "null and a line break", codec.JSON, "null\n", 400, nil},
		{"Spec 2.1", "null behind many blanks", codec.JSON, strings.Repeat(" ", 1000) + "null", 400, nil},
		{"Spec 2.1", "a list", codec.JSON, `[{}]`, 400, nil},
		{"Spec 2.1", "a list behind many blanks", codec.JSON, strings.Repeat("\n", 1000) + "[]", 400, nil},
		{"Spec 2.1", "a text", codec.JSON, `"{}"`, 400, nil},
		{"Spec 2.1", "a number", codec.JSON, `5`, 400, nil},
		{"Spec 2.1", "half an object", codec.JSON, `{"metadata":{`, 400, nil},
		{"Spec 2.1", "trailing garbage", codec.JSON, `{} x`, 400, nil},
		{"Spec 2.1", "two objects", codec.JSON, `{"metadata":{}}{"metadata":{}}`, 400, nil},
		{"Spec 2.1", "a trailing comma", codec.JSON, `{"metadata":{},}`, 400, nil},
		{"Spec 2.1", "a comment", codec.JSON, "{} // x", 400, nil},
		{"Spec 2.1", "single quotes", codec.JSON, `{'metadata':{}}`, 400, nil},
		{"Spec 2.1", "YAML that says it is JSON", codec.JSON, "metadata: {}\n", 400, nil},
		{"Spec 2.1", "a mark of byte order", codec.JSON, "\ufeff{}", 400, nil},
		{"Spec 2.1", "bytes that are no UTF-8", codec.JSON, "{\"metadata\":{\"name\":\"\xff\"}}", 400, nil},
		{"Spec 2.1", "bytes that are no UTF-8, in YAML", codec.YAML, "metadata: {name: \"\xc3\x28\"}", 400, nil},
		{"Spec 2.1", "UTF-16", codec.YAML, "\xff\xfem\x00:\x00", 400, nil},
		{"Spec 2.1", "too deep", codec.JSON, nested(10_000), 400, nil},
		{"Spec 2.1", "far too deep", codec.JSON, nested(1_000_000), 400, nil},
		{"Spec 2.1", "half of something far too deep", codec.JSON, `{"x":` + strings.Repeat(`{"x":`, 100_000), 400, nil},
		{"Spec 2.1", "too deep in YAML", codec.YAML, nested(20_000), 400, nil},

		{"Spec 2.1", "a text for an object", codec.JSON, `{"metadata":"ci"}`, 400, []string{wrongType + "metadata"}},
		{"Spec 2.1", "a list for an object", codec.JSON, `{"spec":[]}`, 400, []string{wrongType + "spec"}},
		{"Spec 2.5", "a text for a number", codec.JSON, `{"spec":{"ttl":"5"}}`, 400, []string{wrongType + "spec.ttl"}},
		{"Spec 2.5", "a fraction for a whole number", codec.JSON, `{"spec":{"ttl":5.5}}`, 400, []string{wrongType + "spec.ttl"}},
		{"Spec 2.5", "a number beyond 64 bits", codec.JSON, `{"spec":{"ttl":9223372036854775808}}`, 400, []string{wrongType + "spec.ttl"}},
		{"Spec 2.5", "a text for a boolean", codec.JSON, `{"spec":{"disabled":"yes"}}`, 400, []string{wrongType + "spec.disabled"}},
		{"Spec 2.5", "an object for a text", codec.JSON, `{"spec":{"user":{}}}`, 400, []string{wrongType + "spec.user"}},
		{"Spec 2.5", "a text for a list", codec.JSON, `{"spec":{"groups":"ops"}}`, 400, []string{wrongType + "spec.groups"}},
		{"Spec 2.5", "a number in YAML for a text", codec.YAML, "spec: {user: 5}", 400, []string{wrongType + "spec.user"}},
		{"Spec 2.5", "a boolean in YAML for a text", codec.YAML, "spec: {user: yes}", 400, []string{wrongType + "spec.user"}},
		{"Spec 2.2", "what is no time", codec.JSON, `{"metadata":{"creationTimestamp":"now"}}`, 400, nil},
		{"Spec 2.5", "connector data that is no text", codec.JSON, `{"spec":{"identity":{"connectorData":7}}}`, 400, []string{wrongType + "spec.identity.connectorData"}},

		{"Spec 2.1", "nothing in YAML", codec.YAML, ``, 400, nil},
		{"Spec 2.1", "a comment in YAML", codec.YAML, "# nothing\n", 400, nil},
		{"Spec 2.1", "null in YAML", codec.YAML, "~", 400, nil},
		{"Spec 2.1", "a list in YAML", codec.YAML, "- a\n", 400, nil},
		{"Spec 2.1", "a text in YAML", codec.YAML, "hello", 400, nil},
		{"Spec 2.1", "a tab in YAML", codec.YAML, "metadata:\n\tname: ci\n", 400, nil},
		{"Spec 2.1", "an alias of nothing", codec.YAML, "metadata: *a\n", 400, nil},
		{"Spec 2.1", "an alias of itself", codec.YAML, "metadata: &a [*a]\n", 400, nil},
		{"Spec 2.1", "a number that JSON does not have", codec.YAML, "spec: {ttl: .nan}", 400, nil},
		{"Spec 2.1", "two documents", codec.YAML, "metadata: {name: a}\n---\nmetadata: {name: b}\n", 400, nil},
		{"Spec 2.1", "two documents with an end between", codec.YAML, "metadata: {name: a}\n...\n---\nmetadata: {name: b}\n", 400, nil},
		{"Spec 2.1", "three documents of which the second is empty", codec.YAML, "metadata: {name: a}\n---\n---\nmetadata: {name: b}\n", 400, nil},
		{"Spec 2.1", "an empty document and another one", codec.YAML, "---\n---\nmetadata: {name: b}\n", 400, nil},
		{"Spec 2.1", "a second document that cannot be read", codec.YAML, "metadata: {name: a}\n---\n\t{", 400, nil},
		{"Spec 2.1", "two documents in JSON", codec.YAML, "{}\n---\n{}\n", 400, nil},
		{"Spec 2.1", "a billion laughs", codec.YAML, laughs, 400, nil},
		{"Spec 2.1", "a long text two hundred times", codec.YAML, wide, 413, nil},
		{"Spec 2.1", "a long text at several levels", codec.YAML, deep, 413, nil},

		{"Spec 2.1", "another media type", "text/plain", `{}`, 415, nil},
		{"Spec 2.1", "a form", "application/x-www-form-urlencoded", `{}`, 415, nil},
		{"Spec 2.1", "protobuf", codec.Protobuf, "k8s\x00", 415, nil},
		{"Spec 2.1", "no media type at all", "json", `{}`, 415, nil},
		{"Spec 2.1", "a media type that cannot be read", "application/json;;", `{}`, 415, nil},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			for _, strictness := range []codec.Strictness{codec.Ignore, codec.Warn, codec.Strict} {
				_, _, err := read(row.media, row.body, strictness)
				if code(err) != row.code {
					t.Errorf("%s: got %d, want %d: %.200v", strictness, code(err), row.code, err)
				}
				if got := causes(err); row.causes != nil && !slices.Equal(got, row.causes) {
					t.Errorf("%s: got %q, want %q", strictness, got, row.causes)
				}
			}
		})
	}
}

// TestAccepted is what is odd and good all the same.
func TestAccepted(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		media    string
		body     string
	}{
		{"Spec 4", "no media type means JSON", "", `{"metadata":{"name":"ci"}}`},
		{"Spec 4", "a media type with parameters", "application/json; charset=utf-8", `{"metadata":{"name":"ci"}}`},
		{"Spec 4", "a media type in upper case", "Application/JSON", `{"metadata":{"name":"ci"}}`},
		{"Spec 4", "YAML", codec.YAML, "metadata: {name: ci}"},
		{"Spec 4", "YAML by its older names", "application/x-yaml", "metadata: {name: ci}"},
		{"Spec 4", "YAML as a text", "text/yaml", "metadata: {name: ci}"},
		{"Spec 4", "JSON is YAML", codec.YAML, `{"metadata":{"name":"ci"}}`},
		{"Spec 2.1", "blanks around it", codec.JSON, strings.Repeat("\n", 1000) + `{"metadata":{"name":"ci"}}` + strings.Repeat(" ", 1000)},
		{"Spec 2.1", "one document with its mark", codec.YAML, "---\nmetadata: {name: ci}\n"},
		{"Spec 2.1", "one document with its end", codec.YAML, "metadata: {name: ci}\n...\n"},
		{"Spec 2.1", "a mark behind the document, with nothing after it", codec.YAML, "metadata: {name: ci}\n---\n"},
		{"Spec 2.1", "a comment behind the document", codec.YAML, "metadata: {name: ci}\n---\n# the end\n"},
		{"Spec 2.1", "a text that looks like two documents", codec.YAML, "metadata: {name: ci}\nspec:\n  description: |\n    a\n    ---\n    b\n"},
		{"Spec 2.1", "anchors of a size that is sensible", codec.YAML, "metadata: {name: &n ci, labels: {a: *n, b: *n}}\n"},
		{"Spec 2.1", "merged keys", codec.YAML, "metadata: {name: ci, labels: &l {a: b}, annotations: {<<: *l, c: d}}\n"},
		{"Spec 2.1", "characters of every length", codec.JSON, `{"metadata":{"name":"ci"},"spec":{"displayName":"aé€😀\u00e9\ud83d\ude00"}}`},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			object, warnings, err := read(row.media, row.body, codec.Strict)
			if err != nil || len(warnings) > 0 || object.Name != "ci" {
				t.Errorf("name %q, warnings %q, error %v", object.GetName(), warnings, err)
			}
		})
	}
}

// However many duplicates there are, an answer names a hundred, and each once, in both forms.
// Source: ADR-0003.
func TestManyDuplicates(t *testing.T) {
	var json, yaml strings.Builder
	json.WriteString("{")
	for i := range 1000 {
		fmt.Fprintf(&json, `"x%d":1,"x%d":2,"x%d":3,`, i, i, i)
		fmt.Fprintf(&yaml, "x%d: 1\nx%d: 2\nx%d: 3\n", i, i, i)
	}
	json.WriteString(`"spec":{}}`)
	for media, body := range map[string]string{codec.JSON: json.String(), codec.YAML: yaml.String()} {
		_, warnings, err := read(media, body, codec.Warn)
		if err != nil || len(warnings) > 200 {
			t.Errorf("%s: %d warnings, %v", media, len(warnings), err)
		}
		seen := map[string]bool{}
		for _, warning := range warnings {
			if seen[warning] {
				t.Errorf("%s: %q twice", media, warning)
			}
			seen[warning] = true
		}
		if _, _, err := read(media, body, codec.Strict); code(err) != http.StatusBadRequest || len(causes(err)) > 200 {
			t.Errorf("%s: %d causes", media, len(causes(err)))
		}
	}
}

// Numbers of 64 bits come through both forms as they are. Source: Spec 2.5 (ttl).
func TestNumbers(t *testing.T) {
	for media, body := range map[string]string{codec.JSON: `{"spec":{"ttl":9223372036854775807}}`, codec.YAML: "spec: {ttl: 9223372036854775807}"} {
		object, _, err := read(media, body, codec.Strict)
		if err != nil || object.Spec.TTLSeconds != 1<<63-1 {
			t.Errorf("%s: ttl %d, %v", media, object.Spec.TTLSeconds, err)
		}
	}
}

func TestIsProtobuf(t *testing.T) {
	for contentType, want := range map[string]bool{
		codec.Protobuf: true, codec.Protobuf + ";type=x": true, codec.JSON: false, "": false, ";": false,
	} {
		if codec.IsProtobuf(contentType) != want {
			t.Errorf("%q: not %v", contentType, want)
		}
	}
}

// envelope is a review as client-go sends it.
func envelope(t testing.TB, raw []byte) []byte {
	t.Helper()
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}, Raw: raw}
	text, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), text...)
}

func review(t testing.TB) []byte {
	t.Helper()
	text, err := (&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDecodeProtobuf(t *testing.T) {
	good := envelope(t, review(t))
	for _, row := range []struct {
		sentence string
		data     []byte
		code     int32
	}{
		{"a review", good, 200},
		{"nothing", nil, 400},
		{"the mark alone", []byte("k8s\x00"), 200},
		{"another mark", append([]byte("k8s\x01"), good[4:]...), 400},
		{"JSON", []byte(`{"kind":"TokenReview"}`), 400},
		{"no mark", good[4:], 400},
		{"half an envelope", good[:len(good)-3], 400},
		{"garbage behind the mark", []byte("k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 400},
		{"a length beyond the end", []byte("k8s\x00\x12\xff\xff\xff\xff\x07"), 400},
		{"garbage in the envelope", envelope(t, []byte{0xff, 0xff, 0xff}), 400},
		{"half a review", envelope(t, review(t)[:4]), 400},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			into := &authenticationv1.TokenReview{}
			err := codec.DecodeProtobuf(row.data, into.Unmarshal)
			if code(err) != row.code {
				t.Errorf("got %d, want %d: %v", code(err), row.code, err)
			}
		})
	}
	into := &authenticationv1.TokenReview{}
	if err := codec.DecodeProtobuf(good, into.Unmarshal); err != nil || into.Spec.Token != "t" {
		t.Errorf("the token is %q, %v", into.Spec.Token, err)
	}
}

// All values of a wrong type are named at once, by their place, whatever reads them. Source: D1 of the design.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text string
		want []string
	}{
		{`{"apiVersion":7,"kind":[]}`, []string{"apiVersion", "kind"}},
		{`{"metadata":7,"spec":"x"}`, []string{"metadata", "spec"}},
		{`{"metadata":{"name":7,"labels":{"a":1,"b.c/d":true,"e":"f"},"finalizers":["x",1]}}`,
			[]string{"metadata.finalizers[1]", "metadata.labels[a]", "metadata.labels[b.c/d]", "metadata.name"}},
		{`{"metadata":{"creationTimestamp":"yesterday","ownerReferences":[{"controller":"x"}]},"spec":{"identityRefresh":1}}`,
			[]string{"metadata.creationTimestamp", "metadata.ownerReferences[0].controller", "spec.identityRefresh"}},
		{`{"spec":{"ttl":"60","disabled":1,"groups":"a","user":{},"scope":[]}}`,
			[]string{"spec.disabled", "spec.groups", "spec.scope", "spec.ttl", "spec.user"}},
		{`{"spec":{"ttl":60.0}}`, []string{"spec.ttl"}},
		{`{"spec":{"ttl":9223372036854775808}}`, []string{"spec.ttl"}},
		{`{"spec":{"scope":{"clusters":[{"cluster":"a"},{"cluster":1}],"rules":[{"resources":[{"resources":["a",2]}]}]}}}`,
			[]string{"spec.scope.clusters[1].cluster", "spec.scope.rules[0].resources[0].resources[1]"}},
		{`{"spec":{"identity":{"connectorData":["a"],"extraClaims":{"a":1}}}}`, []string{"spec.identity.connectorData", "spec.identity.extraClaims[a]"}},
		{`{"spec":{"identity":{"connectorData":7}}}`, []string{"spec.identity.connectorData"}},
		{`{"spec":{"ttl":"x","identity":null,"user":null,"unknown":1}}`, []string{"spec.ttl"}},
		{`{"spec":{"ttl":"x","ttl":5}}`, []string{"spec.ttl"}},
	} {
		var want []string
		for _, name := range row.want {
			want = append(want, wrongType+name)
		}
		for _, strictness := range []codec.Strictness{codec.Ignore, codec.Warn, codec.Strict} {
			want := want
			if strictness == codec.Strict && strings.Contains(row.text, "unknown") {
				want = append(slices.Clone(want), unknown+"spec.unknown")
				slices.Sort(want)
			}
			_, _, err := read(codec.JSON, row.text, strictness)
			if got := causes(err); code(err) != http.StatusBadRequest || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d %q, want %q", row.text, strictness, code(err), got, want)
			}
		}
	}
}

// Bytes are base64, and what is none is not quoted. Source: ADR-0003.
func TestBytes(t *testing.T) {
	t.Parallel()
	body, err := codec.Read(codec.JSON, []byte(`{"status":{"ingress":{"caData":"canary!"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = codec.Decode(body, &model.VirtualClusterInstance{}, codec.Warn)
	status := apierror.From(err).Status()
	text, _ := json.Marshal(status)
	if status.Code != 400 || !strings.Contains(string(text), "status.ingress.caData") || strings.Contains(string(text), "canary") {
		t.Errorf("%s", text)
	}
}

// What is of a wrong type may be a secret. Source: D21 of the design.
func TestWrongTypesQuoteNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"spec":{"key":["canary"]}}`, `{"spec":{"key":8675309}}`, `{"spec":{"ttl":"canary"}}`, `{"spec":{"oidcLogin":"canary"}}`,
		`{"spec":{"identity":{"connectorData":["canary!"]}}}`, `{"spec":{"identityRefresh":"canary"}}`, `{"spec":{"ttl":` + strings.Repeat("9", 100) + `}}`,
	} {
		_, _, err := read(codec.JSON, text, codec.Warn)
		status, _ := json.Marshal(apierror.From(err).Status())
		if err == nil || strings.Contains(string(status), "canary") || strings.Contains(string(status), "8675309") || strings.Contains(string(status), strings.Repeat("9", 50)) {
			t.Errorf("%s: %s", text, status)
		}
	}
}

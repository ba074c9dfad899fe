package resource

import (
	"encoding/json"
	"errors"
	"testing"

	"management.platform.sh/shared/model/apierror"
)

const fuzzed = `{"apiVersion":"v1","kind":"K","metadata":{"name":"ci","finalizers":["a","b"]},"spec":{"ttl":1,"scope":{"projects":[{"project":"a"}]}}}`

// FuzzPatch: every patch of a client results in a response below 500 or in JSON, and never in a panic.
func FuzzPatch(f *testing.F) {
	for _, cases := range patchCases(f) {
		for _, c := range cases {
			f.Add(true, []byte(c.Patch), []byte(c.Doc))
		}
	}
	for _, seed := range []string{`{"spec":{"ttl":null}}`, `{"metadata":{"labels":{"a":"b"}}}`, `null`, `[]`, `{"spec":[{"a":null}]}`} {
		f.Add(false, []byte(seed), []byte(fuzzed))
	}
	f.Add(true, []byte(`[{"op":"add","path":"/metadata/labels/a","value":"b"}]`), []byte(fuzzed))
	f.Add(true, []byte(`[{"op":"copy","from":"/spec","path":"/spec/scope/-"}]`), []byte(fuzzed))
	f.Fuzz(func(t *testing.T, isJSONPatch bool, document, doc []byte) {
		var object map[string]json.RawMessage
		if json.Unmarshal(doc, &object) != nil || object == nil {
			doc = []byte(fuzzed)
		}
		kind := MergePatch
		if isJSONPatch {
			kind = JSONPatch
		}
		apply, err := ParsePatch(kind, document)
		if err == nil {
			var got []byte
			if got, err = apply(doc); err == nil && !json.Valid(got) {
				t.Fatalf("%s with %s is no JSON: %s", doc, document, got)
			}
		}
		if err == nil {
			return
		}
		problem, ok := errors.AsType[*apierror.Error](err)
		if !ok {
			// The document of a fuzzer may lack fields that every stored object has. This is not a mistake of the patch.
			if _, whole := object["metadata"]; whole || object == nil {
				var metadata map[string]json.RawMessage
				if object == nil || json.Unmarshal(object["metadata"], &metadata) == nil && metadata != nil {
					t.Fatalf("%s with %s: %v", doc, document, err)
				}
			}
			return
		}
		if code := problem.Status().Code; code < 400 || code >= 500 {
			t.Fatalf("%s with %s: %d", doc, document, code)
		}
	})
}

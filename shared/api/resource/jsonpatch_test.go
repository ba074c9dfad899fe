package resource

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// patchCase is a case of the public suite, json-patch-tests.
type patchCase struct {
	Comment  string          `json:"comment"`
	Doc      json.RawMessage `json:"doc"`
	Patch    json.RawMessage `json:"patch"`
	Expected json.RawMessage `json:"expected"`
	Error    string          `json:"error"`
	Disabled bool            `json:"disabled"`
}

func patchCases(t testing.TB) map[string][]patchCase {
	t.Helper()
	suites := map[string][]patchCase{}
	for _, name := range []string{"tests.json", "spec_tests.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "json-patch", name))
		if err != nil {
			t.Fatal(err)
		}
		var cases []patchCase
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		suites[name] = cases
	}
	return suites
}

// different are the cases that this API answers in another way, by file and number, with the reason.
var different = map[string]string{
	"tests.json 57": "the library takes an empty key for the object itself in a test; no object here has an empty key",
	"tests.json 58": "as case 57: one of its pointers is a lone slash",
	"tests.json 87": "the library reads an index of a test with leading zeros; it changes nothing",
	"tests.json 88": "as case 87",
}

// TestJSONPatchSuite holds PATCH to RFC 6902: each case by itself, and again one level down in an object,
// which is where an API meets it.
func TestJSONPatchSuite(t *testing.T) {
	t.Parallel()
	run := 0
	for name, cases := range patchCases(t) {
		for i, c := range cases {
			if c.Disabled {
				continue
			}
			run++
			about := c.Comment
			if about == "" {
				about = string(c.Patch)
			}
			_, differs := different[fmt.Sprint(name, " ", i)]
			for _, embedded := range []bool{false, true} {
				doc, document, expected := c.Doc, c.Patch, c.Expected
				if embedded {
					doc, document, expected = embed(t, c)
				}
				if len(doc) > 0 && doc[0] != '{' && doc[0] != '[' {
					// Only objects are ever patched.
					continue
				}
				got, err := patched(document, doc)
				if differs {
					if (err != nil) == (c.Error != "") {
						t.Errorf("%s, case %d (%s) does not differ any more", name, i, about)
					}
					continue
				}
				switch {
				case c.Error != "":
					if err == nil {
						t.Errorf("%s, case %d (%s, embedded %v): %s, want an error: %s", name, i, about, embedded, got, c.Error)
					}
				case err != nil:
					t.Errorf("%s, case %d (%s, embedded %v): %v", name, i, about, embedded, err)
				case len(expected) > 0 && !sameJSON(t, got, expected):
					t.Errorf("%s, case %d (%s, embedded %v): %s, want %s", name, i, about, embedded, got, expected)
				}
			}
		}
	}
	if run < 100 {
		t.Errorf("only %d cases were run", run)
	}
}

func patched(document, doc []byte) ([]byte, error) {
	operations, err := decodeJSONPatch(document)
	if err != nil {
		return nil, err
	}
	return applyJSONPatch(operations, doc)
}

// embed puts the document of a case into an object and lengthens the pointers accordingly.
func embed(t testing.TB, c patchCase) (doc, document, expected json.RawMessage) {
	t.Helper()
	wrap := func(inner json.RawMessage) json.RawMessage {
		if len(inner) == 0 {
			return nil
		}
		return json.RawMessage(`{"doc":` + string(inner) + `}`)
	}
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(c.Patch, &operations); err != nil {
		return wrap(c.Doc), c.Patch, wrap(c.Expected)
	}
	for _, operation := range operations {
		for _, name := range []string{"path", "from"} {
			var pointer *string
			if json.Unmarshal(operation[name], &pointer) == nil && pointer != nil && (*pointer == "" || (*pointer)[0] == '/') {
				operation[name], _ = json.Marshal("/doc" + *pointer)
			}
		}
	}
	document, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	return wrap(c.Doc), document, wrap(c.Expected)
}

func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	var values [2]any
	for i, text := range [][]byte{a, b} {
		if err := json.Unmarshal(text, &values[i]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// TestMergePatchRules are the examples of RFC 7396, appendix A, whose target and patch are objects.
func TestMergePatchRules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		apply, err := ParsePatch(MergePatch, []byte(row.patch))
		if err != nil {
			t.Errorf("%s: %v", row.patch, err)
			continue
		}
		got, err := apply([]byte(row.target))
		if err != nil || !sameJSON(t, got, []byte(row.want)) {
			t.Errorf("%s with %s: %s (%v), want %s", row.target, row.patch, got, err, row.want)
		}
	}
}

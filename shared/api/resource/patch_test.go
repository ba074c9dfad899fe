package resource_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
)

const (
	jsonPatch  = resource.JSONPatch
	mergeP     = resource.MergePatch
	strategicP = resource.PatchType("application/strategic-merge-patch+json")
)

func TestPatch(t *testing.T) {
	t.Parallel()
	tooLarge := refusal{code: 413, reason: metav1.StatusReasonRequestEntityTooLarge}
	unsupported := refusal{code: 415, reason: metav1.StatusReasonUnsupportedMediaType}
	many := func(count int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/spec/user","value":"ana"},`, count), ",") + "]"
	}
	// Each copy doubles a text: 30 copies would produce terabytes.
	var doubling strings.Builder
	doubling.WriteString(`[{"op":"add","path":"/metadata/annotations/a","value":"` + strings.Repeat("x", 1<<16) + `"}`)
	for i := range 30 {
		fmt.Fprintf(&doubling, `,{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/c%d"}`, i)
	}
	doubling.WriteString("]")

	for _, row := range []struct {
		about    string
		kind     resource.PatchType
		document string
		wrong    refusal
		changed  func(*key) bool
	}{
		{"a merge patch sets", mergeP, `{"spec":{"description":"x"}}`, refusal{}, func(k *key) bool {
			return k.Spec.Description == "x" && k.Spec.DisplayName == "name" && k.Generation == 2
		}},
		{"a merge patch removes with null", mergeP, `{"spec":{"displayName":null}}`, refusal{}, func(k *key) bool { return k.Spec.DisplayName == "" }},
		{"a merge patch replaces lists", mergeP, `{"metadata":{"finalizers":["a.example/x"]}}`, refusal{}, func(k *key) bool { return len(k.Finalizers) == 1 }},
		{"an empty merge patch changes nothing", mergeP, `{}`, refusal{}, nil},
		{"a merge patch of metadata as a whole", mergeP, `{"metadata":null}`, refusal{}, func(k *key) bool { return k.Name == "ci" && k.UID != "" && k.Labels == nil }},
		{"a merge patch that is no object", mergeP, `[]`, badRequest, nil},
		{"a merge patch that is null", mergeP, `null`, badRequest, nil},
		{"a merge patch that is no JSON", mergeP, `{`, badRequest, nil},
		{"a merge patch with more behind it", mergeP, `{} {}`, badRequest, nil},
		{"a merge patch with a wrong type", mergeP, `{"spec":{"ttl":"soon"}}`, refusal{400, "BadRequest", []string{"spec.ttl"}}, nil},
		{"a merge patch to a bad value", mergeP, `{"spec":{"ttl":-1}}`, invalid("spec.ttl"), nil},
		{"a merge patch of the kind (Spec 2.1)", mergeP, `{"kind":"Secret"}`, badFields("kind"), nil},
		{"a merge patch to a malformed version", mergeP, `{"apiVersion":"management.platform.sh/v1/beta"}`, badFields("apiVersion"), nil},
		{"a merge patch of the version (Spec 2.1, 7)", mergeP, `{"apiVersion":"management.platform.sh/v2"}`, badFields("apiVersion"), nil},

		{"add and replace (Spec 4 row 7)", jsonPatch, `[{"op":"replace","path":"/spec/displayName","value":"y"},{"op":"add","path":"/spec/description","value":"z"}]`,
			refusal{}, func(k *key) bool { return k.Spec.DisplayName == "y" && k.Spec.Description == "z" && k.Generation == 2 }},
		{"an annotation on an object without any (ADR-0004)", jsonPatch, `[{"op":"add","path":"/metadata/annotations/x","value":"y"}]`,
			refusal{}, func(k *key) bool { return k.Annotations["x"] == "y" && k.Generation == 1 }},
		{"a label beside another", jsonPatch, `[{"op":"add","path":"/metadata/labels/x","value":"y"}]`,
			refusal{}, func(k *key) bool { return k.Labels["x"] == "y" && k.Labels["a"] == "b" }},
		{"a name with a slash in it", jsonPatch, `[{"op":"add","path":"/metadata/annotations/example.com~1x","value":"y"}]`,
			refusal{}, func(k *key) bool { return k.Annotations["example.com/x"] == "y" }},
		{"two annotations", jsonPatch, `[{"op":"add","path":"/metadata/annotations/x","value":"1"},{"op":"add","path":"/metadata/annotations/y","value":"2"}]`,
			refusal{}, func(k *key) bool { return len(k.Annotations) == 2 }},
		{"the whole map first", jsonPatch, `[{"op":"add","path":"/metadata/annotations","value":{"w":"0"}},{"op":"add","path":"/metadata/annotations/x","value":"1"}]`,
			refusal{}, func(k *key) bool { return len(k.Annotations) == 2 }},
		{"a test that the map is absent still fails", jsonPatch, `[{"op":"test","path":"/metadata/annotations/x","value":null},{"op":"add","path":"/metadata/annotations/x","value":"1"}]`,
			invalidPatch, nil},
		{"only these two maps are made", jsonPatch, `[{"op":"add","path":"/spec/scope/projects","value":[]}]`, invalidPatch, nil},
		{"a test that holds", jsonPatch, `[{"op":"test","path":"/spec/displayName","value":"name"},{"op":"remove","path":"/spec/displayName"}]`,
			refusal{}, func(k *key) bool { return k.Spec.DisplayName == "" }},
		{"a test that fails", jsonPatch, `[{"op":"remove","path":"/spec/displayName"},{"op":"test","path":"/spec/user","value":"ben"}]`, invalidPatch, nil},
		{"a replacement of nothing", jsonPatch, `[{"op":"replace","path":"/spec/nothing","value":1}]`, invalidPatch, nil},
		{"a removal of nothing", jsonPatch, `[{"op":"remove","path":"/spec/nothing"}]`, invalidPatch, nil},
		{"a negative index", jsonPatch, `[{"op":"add","path":"/metadata/finalizers","value":["a.example/x"]},{"op":"remove","path":"/metadata/finalizers/-1"}]`, invalidPatch, nil},
		{"move and copy", jsonPatch, `[{"op":"copy","from":"/spec/displayName","path":"/spec/description"},{"op":"move","from":"/metadata/labels/a","path":"/metadata/labels/c"}]`,
			refusal{}, func(k *key) bool {
				return k.Spec.Description == "name" && k.Labels["c"] == "b" && k.Labels["a"] == ""
			}},
		{"the root replaced", jsonPatch, `[{"op":"replace","path":"","value":{"spec":{"user":"ana","type":"User"}}}]`,
			refusal{}, func(k *key) bool { return k.Spec.DisplayName == "" && k.Name == "ci" && k.UID != "" }},
		{"the root removed", jsonPatch, `[{"op":"remove","path":""}]`, invalidPatch, nil},
		{"the root a word", jsonPatch, `[{"op":"replace","path":"","value":"x"}]`, invalidPatch, nil},
		{"the root a number", jsonPatch, `[{"op":"replace","path":"","value":5}]`, invalidPatch, nil},
		{"the root a list", jsonPatch, `[{"op":"replace","path":"","value":[1]}]`, badRequest, nil},
		{"no operation changes nothing", jsonPatch, `[]`, refusal{}, nil},
		{"a patch that is no list", jsonPatch, `{"op":"remove","path":"/x"}`, badRequest, nil},
		{"a patch that is null", jsonPatch, `null`, badRequest, nil},
		{"an operation that is null", jsonPatch, `[null]`, badOperation(0), nil},
		{"a patch that is no JSON", jsonPatch, `[`, badRequest, nil},
		{"an empty patch", jsonPatch, ``, badRequest, nil},
		{"an operation that is a list", jsonPatch, `[{"op":"test","path":"","value":1},[]]`, badOperation(1), nil},
		{"an unknown op", jsonPatch, `[{"op":"increment","path":"/spec/ttl","value":1}]`, badOperation(0), nil},
		{"an op that is no word", jsonPatch, `[{"op":1,"path":"/spec/ttl"}]`, badOperation(0), nil},
		{"without an op", jsonPatch, `[{"path":"/spec/ttl"}]`, badOperation(0), nil},
		{"without a path", jsonPatch, `[{"op":"remove"}]`, badOperation(0), nil},
		{"a path that is no pointer", jsonPatch, `[{"op":"remove","path":"spec"}]`, badOperation(0), nil},
		{"without a value", jsonPatch, `[{"op":"add","path":"/spec/ttl"}]`, badOperation(0), nil},
		{"without a from", jsonPatch, `[{"op":"copy","path":"/spec/ttl"}]`, badOperation(0), nil},
		{"10,000 operations", jsonPatch, many(10_000), refusal{}, nil},
		{"10,001 operations", jsonPatch, many(10_001), tooLarge, nil},
		{"copies that grow", jsonPatch, doubling.String(), tooLarge, nil},

		{"a strategic merge patch", strategicP, `{"spec":{}}`, unsupported, nil},
		{"no type at all", "", `{}`, unsupported, nil},

		{"the resourceVersion it was read at", mergeP, `{"metadata":{"resourceVersion":"3"},"spec":{"disabled":true}}`, refusal{}, func(k *key) bool { return k.Spec.Disabled }},
		{"a stale resourceVersion is a precondition", mergeP, `{"metadata":{"resourceVersion":"2"},"spec":{"disabled":true}}`, conflict, nil},
		{"a stale resourceVersion in a JSON patch", jsonPatch, `[{"op":"replace","path":"/metadata/resourceVersion","value":"2"}]`, conflict, nil},
		{"another uid is a precondition", mergeP, `{"metadata":{"uid":"x"}}`, conflict, nil},
		{"another name", mergeP, `{"metadata":{"name":"x"}}`, badFields("metadata.name"), nil},
		{"another creationTimestamp", mergeP, `{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z"}}`, invalid("metadata.creationTimestamp"), nil},
		{"the server's metadata", mergeP, `{"metadata":{"generation":7,"selfLink":"/x",` +
			`"managedFields":[{"manager":"x"}],"uid":null,"creationTimestamp":null}}`, refusal{}, nil},
		{"a deletion of its own", mergeP, `{"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":9}}`,
			invalid("metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"), nil},
		{"the status", mergeP, `{"status":{"lastActivity":"2001-01-01T00:00:00Z"}}`, refusal{}, nil},
		{"another key", mergeP, `{"spec":{"key":"` + secret + `"}}`, invalid("spec.key"), nil},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			create(t, r, ana, grantee("another"))
			object := grantee("ci")
			object.Labels = map[string]string{"a": "b"}
			object.Spec.DisplayName = "name"
			before := create(t, r, ana, object)
			answered, err := patch(t, r, "ci", row.kind, row.document)
			expect(t, err, row.wrong)
			got := get(t, r, "ci")
			if err == nil && fmt.Sprint(answered) != fmt.Sprint(got) {
				t.Errorf("answered\n%+v\nstored\n%+v", answered, got)
			}
			if row.changed == nil {
				if fmt.Sprint(got) != fmt.Sprint(before) {
					t.Errorf("stored\n%+v\nafter\n%+v", got, before)
				}
			} else if !row.changed(got) || got.ResourceVersion == before.ResourceVersion {
				t.Errorf("stored %+v", got)
			}
			if got.UID != before.UID || !got.CreationTimestamp.Equal(&before.CreationTimestamp) || got.DeletionTimestamp != nil {
				t.Errorf("the server's metadata has changed: %+v", got.ObjectMeta)
			}
		})
	}
}

// fieldValidation also applies to fields that a patch adds.
func TestPatchUnknownFields(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		validation codec.Strictness
		wrong      refusal
		warnings   int
	}{
		{codec.Ignore, refusal{}, 0},
		{codec.Warn, refusal{}, 1},
		{"", refusal{}, 1},
		{codec.Strict, refusal{400, "BadRequest", []string{"spec.colour"}}, 0},
	} {
		r := open(t)
		create(t, r, ana, grantee("ci"))
		written, err := resource.Patch(t.Context(), r, resource.PatchInput{
			Caller: ana, Name: "ci", Type: mergeP, Patch: []byte(`{"spec":{"colour":"red"}}`), Validation: row.validation,
		})
		expect(t, err, row.wrong)
		if len(written.Warnings) != row.warnings {
			t.Errorf("%q warns %q", row.validation, written.Warnings)
		}
	}
}

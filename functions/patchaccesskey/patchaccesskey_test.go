package patchaccesskey

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

func TestDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about    string
		kind     resource.PatchType
		document string
		change   func(*model.OwnedAccessKey)
		code     int32
	}{
		{
			"an annotation (Spec 4 row 7)", resource.JSONPatch, `[{"op":"add","path":"/metadata/annotations/a","value":"b"}]`,
			func(k *model.OwnedAccessKey) { k.Annotations = map[string]string{"a": "b"} }, 0,
		},
		{
			"disabled (Spec 3)", resource.MergePatch, `{"spec":{"disabled":true}}`,
			func(k *model.OwnedAccessKey) { k.Spec.Disabled, k.Generation = true, 2 }, 0,
		},
		{"given away", resource.MergePatch, `{"spec":{"user":"ben"}}`, nil, 403},
		{"no patch", resource.MergePatch, `[]`, nil, 400},
		{"of no kind that there is", "application/apply-patch+xml", `{}`, nil, 415},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			deps := Deps{Keys: accesskeytest.New(t).Managed(fieldmanager.New)}
			want := accesskeytest.Seed(t, deps.Keys, "ci")
			got, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, Name: "ci", Manager: "curl", Type: row.kind, Patch: []byte(row.document)})
			if accesskeytest.Code(err) != row.code {
				t.Fatalf("%+v, %v", got.Object, err)
			}
			if err != nil {
				return
			}
			row.change(want)
			want.ResourceVersion = "3"
			if fields := got.Object.ManagedFields; len(fields) != 2 {
				t.Errorf("managedFields are %+v", fields)
			}
			got.Object.ManagedFields = want.ManagedFields
			if !apiequality.Semantic.DeepEqual(got.Object, want) {
				t.Errorf("answered\n%+v\nwant\n%+v", got.Object, want)
			}
		})
	}
	deps := Deps{Keys: accesskeytest.New(t).Managed(fieldmanager.New)}
	accesskeytest.Seed(t, deps.Keys, "ci")
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ben, Name: "ci", Type: resource.MergePatch, Patch: []byte(`{}`)}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's key: %v", err)
	}
}

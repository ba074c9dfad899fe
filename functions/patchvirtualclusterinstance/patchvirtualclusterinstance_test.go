package patchvirtualclusterinstance

import (
	"testing"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
)

// Source: Spec 2.6; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about    string
		document string
		change   func(*Input)
		code     int32
	}{
		{"a display name", `{"spec":{"displayName":"x"}}`, func(*Input) {}, 0},
		{"two owners", `{"spec":{"owner":{"team":"x"}}}`, func(*Input) {}, 422},
		{"an unknown verb", `{"spec":{"access":[{"verbs":["x"],"users":["y"]}]}}`, func(*Input) {}, 422},
		{"by a stranger", `{}`, func(in *Input) { in.Caller = instancetest.Ben }, 404},
		{"the status", `{"spec":{"displayName":"no"},"status":{"phase":"Failed"}}`, func(in *Input) { in.Status = true }, 0},
		{"applied to the status", `{"apiVersion":"management.platform.sh/v1","kind":"VirtualClusterInstance","status":{"phase":"Failed"}}`,
			func(in *Input) { in.Status, in.Type, in.Force = true, resource.ApplyPatch, true }, 0},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := instancetest.New(t)
			w.Seed(t, instancetest.Instance(t, "dev"))
			in := Input{Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Type: resource.MergePatch, Patch: []byte(row.document), Manager: "curl"}
			row.change(&in)
			got, err := Do(t.Context(), Deps{Instances: w.Instances.Managed(fieldmanager.New)}, in)
			if accesskeytest.Code(err) != row.code {
				t.Fatalf("%+v, %v", got.Object, err)
			}
			if err == nil && (got.Object.Spec.DisplayName == "x") == in.Status || err == nil && (got.Object.Status.Phase == "Failed") != in.Status {
				t.Errorf("%+v", got.Object)
			}
		})
	}
}

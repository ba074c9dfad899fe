package updatevirtualclusterinstance

import (
	"testing"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
)

// Source: Spec 2.6; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		change func(*Input)
		code   int32
	}{
		{"a display name", func(in *Input) { in.Object.Spec.DisplayName = "x" }, 0},
		{"another namespace", func(in *Input) { in.Object.Namespace = "p-other" }, 400},
		{"an old version", func(in *Input) { in.Object.ResourceVersion = "1" }, 409},
		{"by a stranger", func(in *Input) { in.Caller = instancetest.Ben }, 404},
		{"the status", func(in *Input) { in.Status, in.Object.Status.Phase = true, "Failed" }, 0},
		{"an unknown phase", func(in *Input) { in.Status, in.Object.Status.Phase = true, "Gone" }, 422},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := instancetest.New(t)
			in := Input{Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Object: w.Seed(t, instancetest.Instance(t, "dev"))}
			row.change(&in)
			got, err := Do(t.Context(), Deps{Instances: w.Instances.Managed(fieldmanager.New)}, in)
			if accesskeytest.Code(err) != row.code {
				t.Fatalf("%+v, %v", got.Object, err)
			}
			if err == nil && (got.Object.Spec.DisplayName != in.Object.Spec.DisplayName || got.Object.Status.Phase != in.Object.Status.Phase) {
				t.Errorf("%+v", got.Object)
			}
		})
	}
}

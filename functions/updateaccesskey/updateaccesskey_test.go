package updateaccesskey

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

func TestDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		caller identity.Caller
		change func(*model.OwnedAccessKey)
		code   int32
	}{
		{"disabled (Spec 3)", accesskeytest.Ana, func(k *model.OwnedAccessKey) { k.Spec.Disabled = true }, 0},
		{"another scope", accesskeytest.Ana, func(k *model.OwnedAccessKey) { k.Spec.Scope = &model.Scope{} }, 0},
		{"given away", accesskeytest.Ana, func(k *model.OwnedAccessKey) { k.Spec.User = "ben" }, 403},
		{"a bad ttl", accesskeytest.Ana, func(k *model.OwnedAccessKey) { k.Spec.TTLSeconds = -1 }, 422},
		{"stale", accesskeytest.Ana, func(k *model.OwnedAccessKey) { k.ResourceVersion = "99" }, 409},
		{"another user's", accesskeytest.Ben, func(k *model.OwnedAccessKey) { k.Spec.Disabled = true }, 404},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			deps := Deps{Keys: accesskeytest.New(t).Managed(fieldmanager.New)}
			want := accesskeytest.Seed(t, deps.Keys, "ci")
			row.change(want)
			got, err := Do(t.Context(), deps, Input{Caller: row.caller, Name: "ci", Manager: "curl", Object: want.DeepCopy()})
			if accesskeytest.Code(err) != row.code {
				t.Fatalf("%+v, %v", got.Object, err)
			}
			if err != nil {
				return
			}
			want.Generation, want.ResourceVersion = 2, "3"
			if fields := got.Object.ManagedFields; len(fields) != 2 {
				t.Errorf("managedFields are %+v", fields)
			}
			got.Object.ManagedFields = want.ManagedFields
			if !apiequality.Semantic.DeepEqual(got.Object, want) {
				t.Errorf("answered\n%+v\nwant\n%+v", got.Object, want)
			}
		})
	}
}

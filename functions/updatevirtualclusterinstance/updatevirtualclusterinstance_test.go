package updatevirtualclusterinstance

import (
	"testing"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.6, 4; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	stored := instancetest.Store(t, kinds.Instances(w.Env), instancetest.Instance(t, "dev"))
	for _, status := range []bool{false, true} {
		given := stored.DeepCopy()
		given.ResourceVersion, given.Spec.DisplayName, given.Status.Phase = "", "x", "Failed"
		got, err := Do(t.Context(), deps, Input{Caller: ana, Namespace: "p-shop", Name: "dev", Object: given, Status: status, Manager: "curl"})
		if err != nil || (got.Object.Status.Phase == "Failed") != status || got.Object.Spec.DisplayName != "x" || !accesskeytest.Manages(got.Object, "curl") {
			t.Errorf("status %v: %+v, %v", status, got.Object, err)
		}
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Namespace: "p-shop", Name: "dev", Object: stored}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's instance: %v", err)
	}
}

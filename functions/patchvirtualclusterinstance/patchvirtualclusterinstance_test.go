package patchvirtualclusterinstance

import (
	"testing"

	"management.platform.sh/shared/api/resource"
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
	instancetest.Store(t, kinds.Instances(w.Env), instancetest.Instance(t, "dev"))
	in := Input{
		Caller: ana, Namespace: "p-shop", Name: "dev", Type: resource.MergePatch, Manager: "curl",
		Patch: []byte(`{"spec":{"displayName":"x"},"status":{"phase":"Failed"}}`),
	}
	for _, in.Status = range []bool{false, true} {
		got, err := Do(t.Context(), deps, in)
		if err != nil || (got.Object.Status.Phase == "Failed") != in.Status || got.Object.Spec.DisplayName != "x" || !accesskeytest.Manages(got.Object, "curl") {
			t.Errorf("status %v: %+v, %v", in.Status, got.Object, err)
		}
	}
	in.Caller = ben
	if _, err := Do(t.Context(), deps, in); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's instance: %v", err)
	}
}

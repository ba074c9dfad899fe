package createvirtualclusterinstance

import (
	"testing"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.6, 4; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	got, err := Do(t.Context(), deps, Input{Caller: ana, Namespace: "p-shop", Object: instancetest.Instance(t, "dev"), Manager: "curl"})
	if err != nil || got.Object.Namespace != "p-shop" || got.Object.Spec.Signer.CA != nil || got.Object.Status.Phase != "Ready" || !accesskeytest.Manages(got.Object, "curl") {
		t.Errorf("%+v, %v", got.Object, err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Namespace: "p-shop", Object: instancetest.Instance(t, "dev")}); accesskeytest.Code(err) != 409 {
		t.Errorf("a taken name: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Namespace: "p-shop", Object: instancetest.Instance(t, "qa")}); accesskeytest.Code(err) != 403 {
		t.Errorf("the owner is somebody else: %v", err)
	}
}

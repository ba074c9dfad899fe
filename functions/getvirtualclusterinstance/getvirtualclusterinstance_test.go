package getvirtualclusterinstance

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
	instancetest.Store(t, kinds.Instances(w.Env), instancetest.Instance(t, "dev"))
	got, err := Do(t.Context(), deps, Input{Caller: ana, Namespace: "p-shop", Name: "dev"})
	if err != nil || got.Name != "dev" || got.Spec.Signer.CA != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Namespace: "p-shop", Name: "dev"}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's instance: %v", err)
	}
}

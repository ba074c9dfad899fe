package getaccesskey

import (
	"testing"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.5, 4.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	if got, err := Do(t.Context(), deps, Input{Caller: ana, Name: "ana"}); err != nil || got.Name != "ana" || got.Spec.Key != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Name: "ana"}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's key: %v", err)
	}
}

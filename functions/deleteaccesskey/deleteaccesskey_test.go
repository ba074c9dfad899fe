package deleteaccesskey

import (
	"testing"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

// A caller who deletes the key of the request deletes no later key of that name. Source: Spec 2.5, 3.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	later := ana
	later.KeyUID = "another"
	if _, err := Do(t.Context(), deps, Input{Caller: later, Name: "ana"}); accesskeytest.Code(err) != 409 {
		t.Errorf("the key of the request is gone, and another has its name: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Name: "ana"}); err != nil {
		t.Error(err)
	}
}

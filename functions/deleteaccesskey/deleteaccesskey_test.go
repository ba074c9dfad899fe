package deleteaccesskey

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.5, 3, 4; ADR-0009.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Name: "ana"}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's key: %v", err)
	}
	later := ana
	later.KeyUID = "another"
	if _, err := Do(t.Context(), deps, Input{Caller: later, Name: "ana"}); accesskeytest.Code(err) != 409 {
		t.Errorf("the key of the request is gone, and another has its name: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Name: "ana"}); err != nil {
		t.Error(err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Name: "ana"}); accesskeytest.Code(err) != 404 {
		t.Errorf("again: %v", err)
	}
	if gone, err := Do(t.Context(), deps, Input{Caller: ben, Selection: &resource.ListInput{Caller: ben}}); err != nil || meta.LenList(gone) != 1 {
		t.Errorf("a selection: %+v, %v", gone, err)
	}
}

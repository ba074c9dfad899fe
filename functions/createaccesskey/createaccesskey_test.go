package createaccesskey

import (
	"strings"
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
	got, err := Do(t.Context(), deps, Input{Caller: ana, Object: &model.OwnedAccessKey{}, Manager: "curl"})
	if err != nil {
		t.Fatal(err)
	}
	if made := got.Object; !got.Created || made.Spec.User != "ana" || !strings.HasPrefix(made.Spec.Key, "pak_") || !accesskeytest.Manages(made, "curl") {
		t.Errorf("%+v", made)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Object: &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{User: "ana"}}}); accesskeytest.Code(err) != 403 {
		t.Errorf("a key for another user: %v", err)
	}
}

package deletetoken

import (
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana, ben := w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	token, other := w.Issue(ana, model.DirectClusterEndpointTokenSpec{}), w.Issue(ana, model.DirectClusterEndpointTokenSpec{})
	deps := open(w.Env)
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Name: token.Name}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's token: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Name: token.Name}); err != nil {
		t.Error(err)
	}
	if !w.Revoked(string(token.UID)) || w.Revoked(string(other.UID)) {
		t.Error("one is revoked, and one alone")
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Selection: &resource.ListInput{Caller: ben}}); err != nil || w.Revoked(string(other.UID)) {
		t.Errorf("all of another user's tokens: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Selection: &resource.ListInput{Caller: ana}}); err != nil || !w.Revoked(string(other.UID)) {
		t.Errorf("all: %v", err)
	}
}

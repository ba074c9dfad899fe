package gettoken

import (
	"testing"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana, ben := w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	token := w.Issue(ana, model.DirectClusterEndpointTokenSpec{})
	got, err := Do(t.Context(), open(w.Env), Input{Caller: ana, Name: token.Name})
	if err != nil || got.UID != token.UID || got.Status.Token != "" || got.Status.AccessKey != "ana" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Do(t.Context(), open(w.Env), Input{Caller: ben, Name: token.Name}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's token: %v", err)
	}
}

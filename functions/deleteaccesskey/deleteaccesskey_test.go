package deleteaccesskey

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model/secret"
)

func TestDo(t *testing.T) {
	t.Parallel()
	deps := Deps{Keys: accesskeytest.New(t)}
	key := accesskeytest.Seed(t, deps.Keys, "ci")
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ben, Name: "ci"}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's key: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, Name: "ci", UID: "other"}); accesskeytest.Code(err) != 409 {
		t.Errorf("another one of that name: %v", err)
	}
	got, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, Name: "ci", UID: key.UID})
	want := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: "ci", Group: "management.platform.sh", Kind: "ownedaccesskeys", UID: key.UID},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := deps.Keys.Store.GetByDigest(t.Context(), accesskey.Digest(secret.String(accesskeytest.Bearer+"ci"))); err == nil {
		t.Error("the key still authenticates")
	}
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, Name: "ci"}); accesskeytest.Code(err) != 404 {
		t.Errorf("once more: %v", err)
	}
}

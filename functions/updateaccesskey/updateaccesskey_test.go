package updateaccesskey

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.5, 4.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	given := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "ana"}, Spec: model.OwnedAccessKeySpec{Description: "x"}}
	got, err := Do(t.Context(), deps, Input{Caller: ana, Name: "ana", Manager: "curl", Object: given.DeepCopy()})
	if err != nil || got.Object.Spec.Description != "x" || got.Object.Spec.Key != "" || !accesskeytest.Manages(got.Object, "curl") {
		t.Errorf("%+v, %v", got.Object, err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ben, Name: "ana", Object: given}); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's key: %v", err)
	}
}

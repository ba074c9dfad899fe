package patchaccesskey

import (
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.5, 4.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	in := Input{Caller: ana, Name: "ana", Manager: "curl", Type: resource.MergePatch, Patch: []byte(`{"spec":{"description":"x"}}`)}
	got, err := Do(t.Context(), deps, in)
	if err != nil || got.Object.Spec.Description != "x" || got.Object.Spec.Key != "" || !accesskeytest.Manages(got.Object, "curl") {
		t.Errorf("%+v, %v", got.Object, err)
	}
	in.Caller = ben
	if _, err := Do(t.Context(), deps, in); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's key: %v", err)
	}
}

package accesskey_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// Only an admin enables a key that an admin disabled, whatever the write. Source: ADR-0022.
func TestDisabledByAdmin(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	keys := kinds.AccessKeys(w.Env).WithFieldManager(fieldmanager.New)
	ana, root := w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("root", "root", model.OwnedAccessKeySpec{Groups: []string{identity.Admins}})
	patch := func(caller identity.Caller, kind resource.PatchType, text string) (*model.OwnedAccessKey, int32) {
		t.Helper()
		written, err := resource.Patch(t.Context(), keys, resource.PatchInput{Caller: caller, Name: "ci", Type: kind, Patch: []byte(text), Manager: caller.Key, Force: true})
		return written.Object, accesskeytest.Code(err)
	}
	const (
		on, off = `{"spec":{"disabled":false}}`, `{"spec":{"disabled":true}}`
		apply   = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","spec":{"disabled":false}}`
		status  = `{"spec":{"disabled":false},"status":{"disabledByAdmin":false}}`
		rename  = `{"spec":{"displayName":"one"}}`
	)
	object := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "ci"}}
	object.Spec = model.OwnedAccessKeySpec{Disabled: true, Key: issuertest.Bearer + "ci"}
	object.Status.DisabledByAdmin = true
	made, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: ana, Object: object})
	if err != nil || made.Object.Status.DisabledByAdmin {
		t.Fatalf("%+v, %v", made.Object, err)
	}
	for i, step := range []struct {
		caller identity.Caller
		kind   resource.PatchType
		text   string
		code   int32
		marked bool
	}{
		{ana, resource.MergePatch, on, 0, false},
		{ana, resource.MergePatch, off, 0, false},
		{ana, resource.MergePatch, on, 0, false},
		{root, resource.MergePatch, off, 0, true},
		{ana, resource.MergePatch, on, 403, true},
		{ana, resource.MergePatch, status, 403, true},
		{ana, resource.MergePatch, `{"spec":{"disabled":null}}`, 403, true},
		{ana, resource.JSONPatch, `[{"op":"remove","path":"/spec/disabled"}]`, 403, true},
		{ana, resource.ApplyPatch, apply, 403, true},
		{ana, resource.MergePatch, rename, 0, true},
		{root, resource.MergePatch, on, 0, false},
		{ana, resource.MergePatch, off, 0, false},
		{root, resource.MergePatch, `{"spec":{"description":"looked at"}}`, 0, true},
		{ana, resource.MergePatch, on, 403, true},
	} {
		object, code := patch(step.caller, step.kind, step.text)
		if code != step.code || code == 0 && object.Status.DisabledByAdmin != step.marked {
			t.Fatalf("step %d: %d, %+v", i, code, object)
		}
	}
	got, err := resource.Get(t.Context(), keys, resource.GetInput{Caller: ana, Name: "ci"})
	if err != nil || !got.Spec.Disabled || !got.Status.DisabledByAdmin {
		t.Fatalf("%+v, %v", got, err)
	}
	got.Spec.Disabled, got.Status.DisabledByAdmin = false, false
	if _, err := resource.Update(t.Context(), keys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: ana, Name: "ci", Object: got}); accesskeytest.Code(err) != 403 {
		t.Errorf("a replacement: %v", err)
	}
	// The owner may delete the key. No new key may have its text.
	if _, err := resource.Delete(t.Context(), keys, resource.DeleteInput{Caller: ana, Name: "ci"}); err != nil {
		t.Fatal(err)
	}
	// The same holds for a key that an admin created disabled.
	other := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	other.Spec = model.OwnedAccessKeySpec{User: "ana", Disabled: true, Key: issuertest.Bearer + "other"}
	if _, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: other}); err != nil {
		t.Fatal(err)
	}
	if _, err := resource.Delete(t.Context(), keys, resource.DeleteInput{Caller: ana, Name: "other"}); err != nil {
		t.Fatal(err)
	}
	other.Spec.Disabled = false
	if _, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: ana, Object: other}); accesskeytest.Code(err) != 422 {
		t.Errorf("the text of a key that was created disabled becomes a key again: %v", err)
	}
	object.Spec.Disabled = false
	if _, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: ana, Object: object}); accesskeytest.Code(err) != 422 {
		t.Errorf("its text becomes a key again: %v", err)
	}
}

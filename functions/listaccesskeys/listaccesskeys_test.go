package listaccesskeys

import (
	"testing"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// Source: Spec 2.5, 4.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	for _, caller := range []identity.Caller{ana, ben} {
		got, err := Do(t.Context(), deps, Input{Caller: caller})
		if list, ok := got.(*model.OwnedAccessKeyList); err != nil || !ok || len(list.Items) != 1 || list.Items[0].Name != caller.Key {
			t.Errorf("%s sees %+v, %v", caller.Key, got, err)
		}
		watcher, err := Watch(t.Context(), deps, WatchInput{Caller: caller})
		if err != nil {
			t.Fatal(err)
		}
		events, err := watcher.Next(t.Context(), 0)
		if err != nil || len(events) != 1 {
			t.Fatalf("%s sees %d events, %v", caller.Key, len(events), err)
		}
		if object, err := events[0].Object(); err != nil || object.Name != caller.Key {
			t.Errorf("%s sees %+v, %v", caller.Key, object, err)
		}
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Continue: "x"}); accesskeytest.Code(err) != 400 {
		t.Errorf("a list with a bad token: %v", err)
	}
	if _, err := Watch(t.Context(), deps, WatchInput{Caller: ana, ResourceVersion: "99"}); accesskeytest.Code(err) != 410 {
		t.Errorf("a watch ahead of the state: %v", err)
	}
}

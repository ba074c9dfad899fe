package listtokens

import (
	"testing"
	"time"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/model"
)

func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana, ben := w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	token := w.Issue(ana, model.DirectClusterEndpointTokenSpec{})
	w.Issue(ben, model.DirectClusterEndpointTokenSpec{})
	list, err := Do(t.Context(), open(w.Env), Input{Caller: ana})
	if err != nil {
		t.Fatal(err)
	}
	if items := list.(*model.DirectClusterEndpointTokenList).Items; len(items) != 1 || items[0].Name != token.Name || items[0].Status.Token != "" {
		t.Errorf("%+v", items)
	}
}

// A watch shows records come and go, and no token.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	deps := open(w.Env)
	watcher, err := Watch(t.Context(), deps, WatchInput{Caller: ana})
	if err != nil {
		t.Fatal(err)
	}
	token := w.Issue(ana, model.DirectClusterEndpointTokenSpec{})
	events, err := watcher.Next(t.Context(), 30*time.Second)
	if err != nil || len(events) != 1 {
		t.Fatalf("%v, %v", events, err)
	}
	object, err := events[0].Object()
	if err != nil || events[0].Type != "ADDED" || object.Name != token.Name || object.Status.Token != "" {
		t.Errorf("%s %+v, %v", events[0].Type, object, err)
	}
}

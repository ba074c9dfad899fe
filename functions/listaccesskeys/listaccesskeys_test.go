package listaccesskeys

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

func TestDo(t *testing.T) {
	t.Parallel()
	deps := Deps{Keys: accesskeytest.New(t)}
	first, second := accesskeytest.Seed(t, deps.Keys, "a"), accesskeytest.Seed(t, deps.Keys, "b")
	got, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana})
	want := &model.OwnedAccessKeyList{
		TypeMeta: metav1.TypeMeta{APIVersion: "management.platform.sh/v1", Kind: "OwnedAccessKeyList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "3"}, Items: []model.OwnedAccessKey{*first, *second},
	}
	if err != nil || !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	got, err = Do(t.Context(), deps, Input{Caller: accesskeytest.Ben})
	if list, ok := got.(*model.OwnedAccessKeyList); err != nil || !ok || len(list.Items) != 0 {
		t.Errorf("ben sees %+v, %v", got, err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, Continue: "x"}); accesskeytest.Code(err) != 400 {
		t.Errorf("a bad token: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, ResourceVersion: "2", Exact: true}); accesskeytest.Code(err) != 410 {
		t.Errorf("an old state: %v", err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	deps := Deps{Keys: accesskeytest.New(t)}
	first := accesskeytest.Seed(t, deps.Keys, "a")
	for caller, want := range map[string]int{"ana": 1, "ben": 0} {
		who := accesskeytest.Ana
		if caller == "ben" {
			who = accesskeytest.Ben
		}
		watcher, err := Watch(t.Context(), deps, resource.WatchInput{Caller: who})
		if err != nil {
			t.Fatal(err)
		}
		events, err := watcher.Next(t.Context(), 0)
		if err != nil || len(events) != want {
			t.Fatalf("%s sees %d events, %v", caller, len(events), err)
		}
		if want == 0 {
			continue
		}
		if got, err := events[0].Object(); err != nil || !apiequality.Semantic.DeepEqual(got, first) {
			t.Errorf("%+v, %v, want %+v", got, err, first)
		}
	}
	if _, err := Watch(t.Context(), deps, resource.WatchInput{Caller: accesskeytest.Ana, ResourceVersion: "9"}); accesskeytest.Code(err) != 410 {
		t.Errorf("ahead of the state: %v", err)
	}
}

package listaccesskeys

import (
	"math/rand/v2"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/accesskey"
	"management.platform.sh/shared/apierror"
	"management.platform.sh/shared/identity"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/resource"
	"management.platform.sh/shared/store/redisstore"
	"management.platform.sh/shared/store/redisstore/redistest"
)

var now = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)

// newDeps is the operation on an empty state, with a fixed clock and seeded random text.
func newDeps(t testing.TB) Deps {
	t.Helper()
	client, err := redisstore.Open(redistest.Embedded(t), redisstore.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return Deps{Keys: accesskey.NewRegistry(client.Resource("ownedaccesskeys"),
		func() time.Time { return now }, rand.NewChaCha8([32]byte{1}), func() time.Duration { return 0 })}
}

var (
	ana = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	ben = identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
)

func code(err error) int32 {
	if err == nil {
		return 0
	}
	return apierror.From(err).Status().Code
}

// seed stores a key of ana's.
func seed(t testing.TB, deps Deps, name string) *model.OwnedAccessKey {
	t.Helper()
	given := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.OwnedAccessKeySpec{DisplayName: "Seed", Key: bearer}}
	given.Spec.Key += name
	written, err := resource.Create(t.Context(), deps.Keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: ana, Object: given})
	if err != nil {
		t.Fatal(err)
	}
	written.Object.Spec.Key = ""
	return written.Object
}

const bearer = "0123456789-0123456789-0123456789-0123456789"

func TestDo(t *testing.T) {
	t.Parallel()
	deps := newDeps(t)
	first, second := seed(t, deps, "a"), seed(t, deps, "b")
	got, err := Do(t.Context(), deps, Input{Caller: ana})
	want := &model.OwnedAccessKeyList{
		TypeMeta: metav1.TypeMeta{APIVersion: "management.platform.sh/v1", Kind: "OwnedAccessKeyList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "2"}, Items: []model.OwnedAccessKey{*first, *second},
	}
	if err != nil || !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	got, err = Do(t.Context(), deps, Input{Caller: ben})
	if list, ok := got.(*model.OwnedAccessKeyList); err != nil || !ok || len(list.Items) != 0 {
		t.Errorf("ben sees %+v, %v", got, err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Continue: "x"}); code(err) != 400 {
		t.Errorf("a bad token: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, ResourceVersion: "1", Exact: true}); code(err) != 410 {
		t.Errorf("an old state: %v", err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	deps := newDeps(t)
	first := seed(t, deps, "a")
	for caller, want := range map[string]int{"ana": 1, "ben": 0} {
		who := ana
		if caller == "ben" {
			who = ben
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
	if _, err := Watch(t.Context(), deps, resource.WatchInput{Caller: ana, ResourceVersion: "9"}); code(err) != 410 {
		t.Errorf("ahead of the state: %v", err)
	}
}

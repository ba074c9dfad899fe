package accesskey_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// bearerOf returns the bearer text of a key that make makes.
func bearerOf(name string) secret.String {
	return secret.String(accesskey.Digest(secret.String(name)))
}

// make makes a key as a caller.
func (w *world) make(caller identity.Caller, name string, spec model.OwnedAccessKeySpec) (*model.OwnedAccessKey, error) {
	w.t.Helper()
	spec.Key = bearerOf(name).Reveal()
	written, err := resource.Create(w.t.Context(), w.keys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: caller, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
	})
	return written.Object, err
}

// caller authenticates with a key.
func (w *world) caller(name string) (identity.Caller, error) {
	w.t.Helper()
	bearers := &accesskey.Bearers{Keys: w.keys, Now: func() time.Time { return w.now }, Limits: w.limits, Log: slog.New(slog.DiscardHandler)}
	found, err := bearers.Identify(w.t.Context(), bearerOf(name), store.Ref{})
	return found.Caller, err
}

// made makes a key as a caller and authenticates with the key.
func (w *world) made(caller identity.Caller, name string, spec model.OwnedAccessKeySpec) identity.Caller {
	w.t.Helper()
	if _, err := w.make(caller, name, spec); err != nil {
		w.t.Fatal(err)
	}
	made, err := w.caller(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

func (w *world) get(name string) *model.OwnedAccessKey {
	w.t.Helper()
	key, err := resource.Get(w.t.Context(), w.keys, resource.GetInput{Caller: admin, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}

func (w *world) merge(caller identity.Caller, name, patch string) error {
	w.t.Helper()
	_, err := resource.Patch(w.t.Context(), w.keys, resource.PatchInput{
		Caller: caller, Name: name, Type: resource.MergePatch, Patch: []byte(patch),
	})
	return err
}

// The server says who made a key, whatever clients send, and selectors find it. Source: ADR-0021.
func TestCreatedBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maker := w.made(admin, "maker", model.OwnedAccessKeySpec{User: "ana"})
	forged := model.OwnedAccessKeyStatus{
		CreatedBy: &model.AccessKeyReference{Name: "other", UID: "1"},
		Lineage:   []model.AccessKeyAncestor{{Name: "other", UID: "1", Bounds: true}},
	}
	object := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Status: forged}
	if _, err := resource.Create(t.Context(), w.keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: maker, Object: object}); err != nil {
		t.Fatal(err)
	}
	expect := func(after string) {
		t.Helper()
		key := w.get("made")
		if by := key.Status.CreatedBy; by == nil || by.Name != "maker" || by.UID != maker.KeyUID || len(key.Status.Lineage) != 1 {
			t.Errorf("after %s: %+v", after, key.Status)
		}
	}
	expect("a create")
	update := w.get("made")
	update.Status = forged
	update.Spec.DisplayName = "new"
	if _, err := resource.Update(t.Context(), w.keys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: maker, Name: "made", Object: update}); err != nil {
		t.Fatal(err)
	}
	expect("an update")
	for _, patch := range []string{`{"status":{"createdBy":{"name":"other"},"lineage":[]}}`, `{"status":null,"spec":{"displayName":"newer"}}`} {
		if err := w.merge(maker, "made", patch); err != nil {
			t.Fatal(err)
		}
		expect("a patch")
	}
	for selector, want := range map[string]int{
		"status.createdBy.uid=" + maker.KeyUID: 1, "status.createdBy.name=maker": 1, "status.createdBy.uid=1": 0, "status.createdBy.name=": 1,
		"status.lineage.uid=" + maker.KeyUID: 1, "status.lineage.uid!=" + maker.KeyUID: 1, "status.lineage.uid=": 0, "status.lineage.uid=*": 0, "status.lineage.uid!=x": 2,
	} {
		list, err := resource.List(t.Context(), w.keys, resource.ListInput{Caller: admin, Fields: fields.ParseSelectorOrDie(selector)})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(list.(*model.OwnedAccessKeyList).Items); got != want {
			t.Errorf("%s selects %d keys, want %d", selector, got, want)
		}
	}
}

// A narrowed key narrows the credentials that are bound to it at their next request, and the credentials that they make. Widening
// the key again restores their rights. Source: ADR-0021.
func TestNarrowedMaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	projects := func(names ...string) *model.Scope {
		s := &model.Scope{}
		for _, name := range names {
			s.Projects = append(s.Projects, model.ScopeProject{Project: name})
		}
		return s
	}
	first := w.made(admin, "first", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 3600})
	second := w.made(first, "second", model.OwnedAccessKeySpec{Scope: projects("a", "b")})
	w.made(second, "third", model.OwnedAccessKeySpec{Scope: projects("a", "b")})
	free := w.made(admin, "free", model.OwnedAccessKeySpec{User: "ana"})
	w.made(free, "unbound", model.OwnedAccessKeySpec{})
	allowed := func(name, project string) bool {
		t.Helper()
		caller, err := w.caller(name)
		if err != nil {
			t.Fatal(err)
		}
		return auth.Decide(caller, scope.Request{
			Verb: "get", Group: model.GroupName, Resource: "virtualclusterinstances", Namespace: "p-" + project, Project: project, Name: "dev",
		}).Allowed
	}
	change := func(name string, narrow *model.Scope) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"scope": narrow}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.merge(admin, name, string(text)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, a, b bool) {
		t.Helper()
		if allowed("third", "a") != a || allowed("third", "b") != b {
			t.Errorf("%s: not %v and %v", when, a, b)
		}
	}
	expect("at first", true, true)
	change("first", projects("a"))
	expect("first is narrow", true, false)
	change("second", projects("b"))
	expect("first and second have nothing in common", false, false)
	stale, err := w.caller("third")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.make(stale, "wide", model.OwnedAccessKeySpec{Scope: projects("b")}); accesskeytest.Code(err) != 403 {
		t.Errorf("a child beyond the scope of a maker: %v", err)
	}
	if _, err := w.make(stale, "empty", model.OwnedAccessKeySpec{Scope: projects()}); err != nil {
		t.Errorf("a child within all scopes: %v", err)
	}
	change("first", projects("a", "b"))
	change("second", projects("a", "b"))
	expect("both are as before", true, true)
	// The keys of an owner that bind nothing do not narrow each other.
	change("free", projects("a"))
	if !allowed("unbound", "b") {
		t.Error("a key is narrowed that is not bound")
	}
}

// If a caller's makers are narrowed between authentication and a write, and the caller's own record changed as well, the caller
// must repeat the request: the new key was checked against the earlier scopes. Source: ADR-0021.
func TestNarrowedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.made(admin, "first", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 3600})
	second := w.made(first, "second", model.OwnedAccessKeySpec{})
	if err := w.merge(admin, "second", `{"spec":{"displayName":"renamed"}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.make(second, "renamed", model.OwnedAccessKeySpec{}); err != nil {
		t.Errorf("the key was only renamed: %v", err)
	}
	if err := w.merge(admin, "first", `{"spec":{"scope":{"projects":[{"project":"a"}]}}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.make(second, "wide", model.OwnedAccessKeySpec{}); accesskeytest.Code(err) != 409 {
		t.Errorf("the scope of its maker has changed: %v", err)
	}
	if err := w.merge(admin, "first", `{"spec":{"disabled":true}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.make(second, "late", model.OwnedAccessKeySpec{}); accesskeytest.Code(err) != 401 {
		t.Errorf("its maker is disabled: %v", err)
	}
}

// A refusal says that another key has ended, and not which key. If the bearer's own key is the reason, the refusal says so.
// Source: ADR-0005, ADR-0021.
func TestWhyRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maker := w.made(admin, "maker", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 60})
	w.made(maker, "child", model.OwnedAccessKeySpec{})
	refused := func(name string, want error) {
		t.Helper()
		if _, err := w.caller(name); !errors.Is(err, want) {
			t.Errorf("%s is refused with %v, want %v", name, err, want)
		}
	}
	if err := w.merge(admin, "maker", `{"spec":{"disabled":true}}`); err != nil {
		t.Fatal(err)
	}
	refused("maker", auth.ErrDisabled)
	refused("child", auth.ErrBound)
	if err := w.merge(admin, "maker", `{"spec":{"disabled":false}}`); err != nil {
		t.Fatal(err)
	}
	refused("child", nil)
	w.now = born.Add(time.Minute)
	refused("maker", auth.ErrExpired)
	refused("child", auth.ErrBound)
	if err := w.merge(admin, "maker", `{"spec":{"ttl":3600}}`); err != nil {
		t.Fatal(err)
	}
	refused("child", nil)
}

// If the maker was deleted, disabled or narrowed after the request was authenticated, the key is not made. If only a text of the
// maker changed, the key is made. Source: ADR-0021.
func TestMakerIsGone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		what   string
		change func(w *world) error
		code   int32
	}{
		{"deleted", func(w *world) error { w.delete("maker", 0, ""); return nil }, 401},
		{"marked", func(w *world) error { w.delete("maker", 0, metav1.DeletePropagationForeground); return nil }, 401},
		{"replaced", func(w *world) error {
			w.delete("maker", 0, "")
			_, err := w.make(admin, "maker", model.OwnedAccessKeySpec{User: "ana"})
			return err
		}, 401},
		{"disabled", func(w *world) error { return w.merge(admin, "maker", `{"spec":{"disabled":true}}`) }, 401},
		{"narrowed", func(w *world) error { return w.merge(admin, "maker", `{"spec":{"scope":{}}}`) }, 409},
		{"given an end", func(w *world) error { return w.merge(admin, "maker", `{"spec":{"ttl":60}}`) }, 409},
		{"given away", func(w *world) error { return w.merge(admin, "maker", `{"spec":{"user":"ben"}}`) }, 409},
		{"renamed", func(w *world) error { return w.merge(admin, "maker", `{"spec":{"displayName":"new"}}`) }, 0},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			maker := w.made(admin, "maker", model.OwnedAccessKeySpec{User: "ana"})
			if err := row.change(w); err != nil {
				t.Fatal(err)
			}
			_, err := w.make(maker, "child", model.OwnedAccessKeySpec{})
			if accesskeytest.Code(err) != row.code {
				t.Errorf("%v, want %d", err, row.code)
			}
			if _, err := w.keys.Store.Get(t.Context(), "child"); (err == nil) != (row.code == 0) {
				t.Errorf("the child is stored: %v", err == nil)
			}
		})
	}
}

// A caller whose key ends cannot give any key a later end. Source: ADR-0021.
func TestLaterEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forever := w.made(admin, "forever", model.OwnedAccessKeySpec{User: "ana"})
	w.made(admin, "short", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 60})
	hour := w.made(admin, "hour", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 3600})
	for i, row := range []struct {
		caller identity.Caller
		name   string
		spec   string
		code   int32
	}{
		{hour, "hour", `{"ttl":0}`, 403},
		{hour, "hour", `{"ttl":null}`, 403},
		{hour, "hour", `{"ttl":3601}`, 403},
		{hour, "hour", `{"ttlAfterLastActivity":true}`, 403},
		{hour, "short", `{"ttl":3601}`, 403},
		{hour, "short", `{"ttl":0}`, 403},
		{hour, "short", `{"ttl":3600}`, 0},
		{hour, "short", `{"ttl":60}`, 0},
		{hour, "hour", `{"displayName":"new"}`, 0},
		{hour, "forever", `{"ttl":7200}`, 0},
		{forever, "hour", `{"ttl":7200}`, 0},
		{forever, "short", `{"ttl":0}`, 0},
	} {
		if err := w.merge(row.caller, row.name, fmt.Sprintf(`{"spec":%s}`, row.spec)); accesskeytest.Code(err) != row.code {
			t.Errorf("row %d: %s of %s: %v, want %d", i, row.spec, row.name, err, row.code)
		}
	}
}

// When a deletion in the foreground is answered, all keys of the tree are refused, also if a member was deleted before, and
// whatever finalizers and grace periods hold the members. Source: ADR-0021.
func TestForegroundTakesTheTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.made(admin, "first", model.OwnedAccessKeySpec{User: "ana"})
	second := w.made(first, "second", model.OwnedAccessKeySpec{})
	third := w.made(second, "third", model.OwnedAccessKeySpec{})
	w.made(third, "fourth", model.OwnedAccessKeySpec{Scope: &model.Scope{}})
	w.made(admin, "other", model.OwnedAccessKeySpec{User: "ana"})
	w.delete("second", 0, "")
	if _, err := w.caller("third"); err != nil {
		t.Fatalf("a key that is not bound ended with its maker: %v", err)
	}
	w.delete("fourth", 3600, "")
	if err := w.merge(admin, "third", `{"metadata":{"finalizers":["example.com/hold"]}}`); err != nil {
		t.Fatal(err)
	}
	w.delete("first", 0, metav1.DeletePropagationForeground)
	for _, name := range []string{"first", "second", "third", "fourth"} {
		if _, err := w.caller(name); !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.caller("other"); err != nil {
		t.Errorf("another key: %v", err)
	}
	if got := fmt.Sprint(w.names()); got != "[other third]" {
		t.Errorf("the keys are %s", got)
	}
}

// A list and a watch show the end that a key has with its lineage. Source: ADR-0021.
func TestEndInLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maker := w.made(admin, "maker", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 600})
	for i := range 3 {
		w.made(maker, fmt.Sprint("child-", i), model.OwnedAccessKeySpec{TTLSeconds: 3600})
	}
	if err := w.merge(admin, "maker", `{"spec":{"ttl":300}}`); err != nil {
		t.Fatal(err)
	}
	want := born.Add(300 * time.Second)
	for _, limit := range []int64{0, 2} {
		list, err := resource.List(t.Context(), w.keys, resource.ListInput{Caller: admin, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range list.(*model.OwnedAccessKeyList).Items {
			if end := key.Status.ExpirationTimestamp; end == nil || !end.Time.Equal(want) {
				t.Errorf("limit %d: %s ends at %v, want %v", limit, key.Name, end, want)
			}
		}
	}
	watcher, err := resource.Watch(t.Context(), w.keys, resource.WatchInput{Caller: admin})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watcher.Next(t.Context(), 0)
	if err != nil || len(events) != 4 {
		t.Fatalf("%d events: %v", len(events), err)
	}
	if err := w.merge(admin, "child-1", `{"spec":{"displayName":"new"}}`); err != nil {
		t.Fatal(err)
	}
	more, err := watcher.Next(t.Context(), 0)
	if err != nil || len(more) != 1 {
		t.Fatalf("%d events: %v", len(more), err)
	}
	for _, event := range append(events, more...) {
		key, err := event.Object()
		if err != nil {
			t.Fatal(err)
		}
		if end := key.Status.ExpirationTimestamp; end == nil || !end.Time.Equal(want) {
			t.Errorf("the watch shows that %s ends at %v, want %v", key.Name, end, want)
		}
	}
}

// The end of a sign-in does not end the keys that the person makes. A person can extend their keys, but not the sign-in.
// Source: ADR-0021.
func TestSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.login = time.Hour
	w.made(admin, "login", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 600})
	w.made(admin, "short", model.OwnedAccessKeySpec{User: "ana", TTLSeconds: 60})
	// Only the server gives the type, and nothing signs in yet.
	record, err := w.keys.Store.Get(t.Context(), "login")
	if err != nil {
		t.Fatal(err)
	}
	record.Object = bytes.Replace(record.Object, []byte(`"type":"User"`), []byte(`"type":"Login"`), 1)
	if _, err := w.keys.Store.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	person, err := w.caller("login")
	if err != nil || person.KeyType != model.AccessKeyTypeLogin || person.KeyExpires.IsZero() {
		t.Fatalf("%+v: %v", person, err)
	}
	w.made(person, "own", model.OwnedAccessKeySpec{})
	w.delete("login", 3600, "")
	if err := w.merge(person, "short", `{"spec":{"ttl":0}}`); err != nil {
		t.Error(err)
	}
	if err := w.merge(person, "login", `{"spec":{"ttl":0}}`); accesskeytest.Code(err) != 403 {
		t.Errorf("the sign-in was prolonged: %v", err)
	}
	w.delete("login", 0, "")
	if own, err := w.caller("own"); err != nil || !own.KeyExpires.IsZero() {
		t.Errorf("the key ended with the sign-in: %v, %v", own.KeyExpires, err)
	}
}

// The tokens of kubeconfigs that were rendered before the type Kubeconfig existed can do as little as new tokens. Other keys with
// such owners and labels are not affected. Source: ADR-0021.
func TestEarlierKubeconfigs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, row := range []struct{ prefix, kind, want string }{
		{"kubeconfig-dev-", model.AccessKeyTypeOther, model.AccessKeyTypeKubeconfig},
		{"kubeconfig-prod-", model.AccessKeyTypeOther, model.AccessKeyTypeOther},
		{"ci-", model.AccessKeyTypeOther, model.AccessKeyTypeOther},
		{"kubeconfig-dev-", model.AccessKeyTypeUser, model.AccessKeyTypeUser},
	} {
		name := fmt.Sprint(row.prefix, i)
		key := &model.OwnedAccessKey{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, GenerateName: row.prefix,
				Labels: map[string]string{accesskey.OwnerNamespaceLabel: "p-shop", accesskey.OwnerNameLabel: "dev"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: model.SchemeGroupVersion.String(), Kind: "VirtualClusterInstance", Name: "dev", UID: "1",
				}},
			},
			Spec: model.OwnedAccessKeySpec{Type: row.kind, Key: bearerOf(name).Reveal()},
		}
		if _, err := resource.Create(t.Context(), w.keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: admin, Object: key}); err != nil {
			t.Fatal(err)
		}
		if caller, err := w.caller(name); err != nil || caller.KeyType != row.want {
			t.Errorf("row %d: the type is %q, %v, want %q", i, caller.KeyType, err, row.want)
		}
	}
}

// A deletion of a collection in the foreground deletes the trees of all its keys, also of the keys on later pages.
// Source: ADR-0021.
func TestForegroundOfCollections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range limits.PageObjects {
		w.create(fmt.Sprintf("ana-%03d", i), model.OwnedAccessKeySpec{User: "ana"})
	}
	last := w.made(admin, "last", model.OwnedAccessKeySpec{User: "ana", Groups: []string{identity.Admins}})
	w.made(last, "made", model.OwnedAccessKeySpec{User: "ben"})
	_, err := resource.Delete(t.Context(), w.keys, resource.DeleteInput{
		Caller: admin, Propagation: metav1.DeletePropagationForeground,
		Selection: &resource.ListInput{Caller: admin, Fields: fields.ParseSelectorOrDie("spec.user=ana")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if left := w.names(); len(left) != 0 {
		t.Errorf("%d keys are left: %.5q", len(left), left)
	}
	if _, err := w.caller("made"); !errors.Is(err, auth.ErrUnknown) {
		t.Errorf("what a key on the second page made: %v", err)
	}
}

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// widget is a made-up kind that lives in namespaces: nothing in the graph is made for access keys.
type widget = metav1.PartialObjectMetadata

var widgetDefinition = &resource.Definition[*widget]{
	Resource: schema.GroupVersionResource{Group: "test.example", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true,
	NamePrefix: "widget-", New: func() *widget { return &widget{} },
	NewList: func(meta metav1.ListMeta, items []*widget) runtime.Object {
		return &metav1.PartialObjectMetadataList{ListMeta: meta, Items: resource.Values(items)}
	},
}

// widgetRules have no restrictions: callers own every widget whose label owner names them.
type widgetRules struct{}

func (widgetRules) Default(caller identity.Caller, object, old *widget) {
	if old == nil {
		object.Labels = map[string]string{"owner": caller.Owner.Name}
	}
}
func (widgetRules) Validate(_, _ *widget) field.ErrorList                       { return nil }
func (widgetRules) Grants(*widget) []auth.Grant                                 { return nil }
func (widgetRules) Authorize(identity.Caller, *widget, *widget) field.ErrorList { return nil }
func (widgetRules) Seal(*widget, store.Record) (resource.Sealed[*widget], field.ErrorList) {
	return resource.Sealed[*widget]{}, nil
}
func (widgetRules) Index(object *widget, _ time.Time) (string, time.Time) {
	return identity.Owner{Kind: identity.User, Name: object.Labels["owner"]}.String(), time.Time{}
}
func (widgetRules) Observe(*widget, store.Record) {}
func (widgetRules) Warn(*widget) []string         { return nil }

// world has two resources of one API, and a clock that tests move.
type world struct {
	testing.TB
	clock   atomic.Int64 // seconds after now
	keys    *registry
	widgets *resource.Registry[*widget]
	graph   *gc.Graph
	// forbidden are the objects that a caller may not delete: "resource namespace/name" or "resource /name".
	forbidden map[string]bool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	return worldOver(t, client)
}

func worldOver(t testing.TB, client *redisstore.Client) *world {
	w := &world{TB: t, forbidden: map[string]bool{}}
	clock := func() time.Time { return now.Add(time.Duration(w.clock.Load()) * time.Second) }
	w.keys = accesskey.NewRegistry(client.Resource("ownedaccesskeys"), clock, seeded(1), func() accesskey.Limits { return accesskey.Limits{} })
	w.widgets = &resource.Registry[*widget]{
		Definition: widgetDefinition, Strategy: resource.Strategy[*widget]{Rules: widgetRules{}}, Store: client.Resource("widgets"), Now: clock, Random: seeded(2),
	}
	w.graph = gc.NewGraph(func(_ identity.Caller, verb string, at schema.GroupVersionResource, namespace, name string) bool {
		return verb != "delete" || !w.forbidden[at.Resource+" "+namespace+"/"+name]
	})
	w.keys, w.widgets = resource.Join(w.graph, w.keys), resource.Join(w.graph, w.widgets)
	return w
}

// form describes a test object.
type form func(metav1.Object)

// owned adds a reference, which blocks when the name of the owner is followed by an exclamation mark.
func (w *world) owned(by ...string) form {
	return func(object metav1.Object) {
		references := object.GetOwnerReferences()
		for _, name := range by {
			references = append(references, w.reference(name))
		}
		object.SetOwnerReferences(references)
	}
}

func held(finalizers ...string) form {
	return func(object metav1.Object) { object.SetFinalizers(finalizers) }
}

// reference returns a reference to the object of that name: "key", or "namespace/widget".
func (w *world) reference(name string) metav1.OwnerReference {
	w.Helper()
	name, blocks := strings.CutSuffix(name, "!")
	object := w.get(name)
	if object == nil {
		w.Fatalf("there is no %s to refer to", name)
	}
	reference := metav1.OwnerReference{APIVersion: "management.platform.sh/v1", Kind: "OwnedAccessKey", Name: object.GetName(), UID: object.GetUID()}
	if strings.Contains(name, "/") {
		reference.APIVersion, reference.Kind = "test.example/v1", "Widget"
	}
	if blocks {
		reference.BlockOwnerDeletion = new(true)
	}
	return reference
}

// make creates an object: "key", or "namespace/widget".
func (w *world) make(name string, forms ...form) {
	w.Helper()
	if err := w.create(admin, name, forms...); err != nil {
		w.Fatalf("creating %s: %v", name, err)
	}
}

func (w *world) create(caller identity.Caller, name string, forms ...form) error {
	namespace, short, isWidget := strings.Cut(name, "/")
	if isWidget {
		object := &widget{ObjectMeta: metav1.ObjectMeta{Name: short, Namespace: namespace}}
		for _, apply := range forms {
			apply(object)
		}
		_, err := resource.Create(w.Context(), w.widgets, resource.CreateInput[*widget]{Caller: caller, Namespace: namespace, Object: object})
		return err
	}
	object := grantee(name)
	for _, apply := range forms {
		apply(object)
	}
	_, err := resource.Create(w.Context(), w.keys, resource.CreateInput[*key]{Caller: caller, Object: object})
	return err
}

// get returns the object of that name, or nil if it does not exist.
func (w *world) get(name string) metav1.Object {
	w.Helper()
	var object metav1.Object
	var err error
	if namespace, short, isWidget := strings.Cut(name, "/"); isWidget {
		object, err = resource.Get(w.Context(), w.widgets, resource.GetInput{Caller: admin, Namespace: namespace, Name: short})
	} else {
		object, err = resource.Get(w.Context(), w.keys, resource.GetInput{Caller: admin, Name: name})
	}
	if refusalOf(err).code == 404 {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return object
}

// change rewrites an object as an admin does.
func (w *world) change(name string, forms ...form) error {
	w.Helper()
	object := w.get(name)
	for _, apply := range forms {
		apply(object)
	}
	var err error
	switch object := object.(type) {
	case *widget:
		_, err = resource.Update(w.Context(), w.widgets, resource.UpdateInput[*widget]{
			Caller: admin, Namespace: object.Namespace, Name: object.Name, Object: object})
	case *key:
		_, err = resource.Update(w.Context(), w.keys, resource.UpdateInput[*key]{Caller: admin, Name: object.Name, Object: object})
	}
	return err
}

func (w *world) mustChange(name string, forms ...form) {
	w.Helper()
	if err := w.change(name, forms...); err != nil {
		w.Fatalf("changing %s: %v", name, err)
	}
}

func (w *world) remove(ctx context.Context, name string, policy metav1.DeletionPropagation, grace int64) error {
	in := resource.DeleteInput{Caller: admin, Name: name, Propagation: policy, GracePeriodSeconds: &grace}
	var err error
	if namespace, short, isWidget := strings.Cut(name, "/"); isWidget {
		in.Namespace, in.Name = namespace, short
		_, err = resource.Delete(ctx, w.widgets, in)
	} else {
		_, err = resource.Delete(ctx, w.keys, in)
	}
	return err
}

func (w *world) mustRemove(name string, policy metav1.DeletionPropagation) {
	w.Helper()
	if err := w.remove(w.Context(), name, policy, 0); err != nil {
		w.Fatalf("deleting %s: %v", name, err)
	}
}

func (w *world) sweep() gc.Collected {
	w.Helper()
	done, err := w.graph.Sweep(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return done
}

// left are the objects that are stored, in the order of their names, with a minus for those being deleted.
func (w *world) left() string {
	w.Helper()
	var names []string
	for _, r := range []struct {
		state store.Store
		isDel func(store.Record) bool
	}{
		{w.keys.Store, func(record store.Record) bool {
			o, err := w.keys.Parse(record)
			return err == nil && o.DeletionTimestamp != nil
		}},
		{w.widgets.Store, func(record store.Record) bool {
			o, err := w.widgets.Parse(record)
			return err == nil && o.DeletionTimestamp != nil
		}},
	} {
		page, err := r.state.List(w.Context(), store.Query{})
		if err != nil {
			w.Fatal(err)
		}
		for _, record := range page.Records {
			mark := ""
			if r.isDel(record) {
				mark = "-"
			}
			names = append(names, mark+record.Name)
		}
	}
	return strings.Join(names, " ")
}

func (w *world) expectLeft(when, want string) {
	w.Helper()
	if got := w.left(); got != want {
		w.Errorf("%s there are %q, want %q", when, got, want)
	}
}

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
	hold       = "test.example/hold"
)

// build makes the objects of a graph, such as "a b<a!,c=hold": b has the owners a, which it blocks, and c, and a finalizer.
// Naming an object again adds owners to it, and "-b" deletes b.
func (w *world) build(objects string) {
	w.Helper()
	made := map[string]bool{}
	for text := range strings.FieldsSeq(objects) {
		if name, deleted := strings.CutPrefix(text, "-"); deleted {
			w.mustRemove(name, "")
			continue
		}
		text, finalizer, isHeld := strings.Cut(text, "=")
		name, owners, isOwned := strings.Cut(text, "<")
		var forms []form
		if isOwned {
			forms = append(forms, w.owned(strings.Split(owners, ",")...))
		}
		if isHeld {
			forms = append(forms, held(map[string]string{"hold": hold, "orphan": metav1.FinalizerOrphanDependents}[finalizer]))
		}
		if made[name] {
			w.mustChange(name, forms...)
		} else {
			w.make(name, forms...)
		}
		made[name] = true
	}
}

// Each row is a graph, a deletion, the objects left by its request and those left by the schedule. Source: Spec 2.2; ADR-0009.
func TestCollect(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about, graph, delete string
		policy               metav1.DeletionPropagation
		then, swept          string
	}{
		{"nothing is owned", "a b", "a", background, "b", "b"},
		{"what is owned goes", "a b<a c", "a", background, "c", "c"},
		{"by default", "a b<a", "a", "", "", ""},
		{"a chain goes", "a b<a c<b d<c", "a", background, "", ""},
		{"an owner is not collected with what it owns", "a b<a", "b", background, "a", "a"},
		{"one of two owners is left", "a b c<a,b", "a", background, "b c", "b c"},
		{"across resources and namespaces", "a n/w<a n/x<n/w m/w<a m/y", "a", background, "m/y", "m/y"},
		{"one of the same name elsewhere is another", "n/w m/w n/x<n/w m/x<m/w", "n/w", background, "m/w m/x", "m/w m/x"},
		{"a cycle goes", "a b<a a<b", "a", background, "", ""},
		{"one that owns itself goes", "a a<a!", "a", foreground, "", ""},
		{"what is held stays, marked", "a b<a=hold c<b", "a", background, "-b c", "-b c"},
		{"the owned follow their own finalizers", "a b<a=orphan c<b", "a", background, "c", "c"},

		{"foreground: nothing is owned", "a", "a", foreground, "", ""},
		{"foreground: what blocks goes first", "a b<a! n/w<a!", "a", foreground, "", ""},
		{"foreground: a chain", "a b<a! c<b! d<c!", "a", foreground, "", ""},
		{"foreground: what is held and blocks holds the owner", "a b<a!=hold c<a!", "a", foreground, "-a -b", "-a -b"},
		{"foreground: what is held far below holds all above", "a b<a! c<b!=hold", "a", foreground, "-a -b -c", "-a -b -c"},
		{"foreground: what does not block holds nobody", "a b<a=hold", "a", foreground, "-b", "-b"},
		{"foreground: what has another owner stays and holds nobody", "a b c<a!,b!", "a", foreground, "b c", "b c"},
		{"foreground: a cycle of two", "a b<a! a<b!", "a", foreground, "", ""},
		{"foreground: a cycle of three, across resources", "a b<a! c<b! a<c! n/w<b!", "a", foreground, "", ""},
		{"foreground: the owner's own finalizers stay", "a=hold b<a!", "a", foreground, "-a", "-a"},

		{"orphan: nothing is owned", "a", "a", orphan, "", ""},
		{"orphan: what is owned stays", "a b<a! c<b n/w<a", "a", orphan, "b c n/w", "b c n/w"},
		{"orphan: what is being deleted, too", "a b<a!=hold -b", "a", orphan, "-b", "-b"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.build(row.graph)
			w.mustRemove(row.delete, row.policy)
			w.expectLeft("after the request", row.then)
			w.sweep()
			w.expectLeft("after the schedule", row.swept)
			before := revision(t, w.keys.Store) + revision(t, w.widgets.Store)
			if done := w.sweep(); done != (gc.Collected{}) || revision(t, w.keys.Store)+revision(t, w.widgets.Store) != before {
				t.Errorf("a second run did %+v", done)
			}
		})
	}
}

// References to deleted owners are removed. Source: ADR-0009.
func TestReferencesAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.build("a b c<a!,b")
	w.mustRemove("a", background)
	if got := w.get("c").GetOwnerReferences(); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("after one of two owners the references are %+v", got)
	}
	if generation := w.get("c").GetGeneration(); generation != 1 {
		t.Errorf("the generation is %d", generation)
	}
	w.mustRemove("b", orphan)
	if got := w.get("c").GetOwnerReferences(); len(got) != 0 {
		t.Errorf("an orphan refers to %+v", got)
	}
	page, err := w.keys.Store.List(t.Context(), store.Query{})
	if err != nil || len(page.Records) != 1 || len(page.Records[0].References) != 0 {
		t.Errorf("stored are %+v, %v", page.Records, err)
	}
}

// Owners of kinds that this API does not serve always count as existing. Source: ADR-0009.
func TestForeignOwners(t *testing.T) {
	t.Parallel()
	foreign := func(object metav1.Object) {
		object.SetOwnerReferences(append(object.GetOwnerReferences(),
			metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u"},
			metav1.OwnerReference{APIVersion: "management.platform.sh/v9", Kind: "OwnedAccessKey", Name: "x", UID: "v"}))
	}
	w := newWorld(t)
	w.make("a")
	w.make("b", foreign)
	w.make("c", foreign, w.owned("a"))
	w.mustRemove("a", background)
	w.sweep()
	w.expectLeft("after the schedule", "b c")
	if got := w.get("c").GetOwnerReferences(); len(got) != 2 {
		t.Errorf("the references are %+v", got)
	}
}

// The request that removes the last finalizer continues the pending deletion. Source: Spec 2.2.
func TestReleaseGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.build("a b<a!=hold n/w<b")
	w.mustRemove("a", foreground)
	w.sweep()
	w.expectLeft("while it is held", "-a -b")
	w.mustChange("b", held())
	w.expectLeft("when it is released", "")

	w.build("a=hold b<a")
	w.mustRemove("a", background)
	w.expectLeft("while the owner is held", "-a b")
	w.mustChange("a", held())
	w.expectLeft("when the owner is released", "")
}

// A request does a bounded part, the schedule the rest. Source: ADR-0009.
func TestFanOut(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			const many = 250
			w.make("a")
			by := w.owned("a!")
			for i := range many {
				w.make(fmt.Sprintf("n/w%03d", i), by)
			}
			w.mustRemove("a", policy)
			begun := 0
			page, err := w.widgets.Store.List(t.Context(), store.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range page.Records {
				if len(record.References) == 0 {
					begun++
				}
			}
			if policy != orphan {
				begun = many - len(page.Records)
			}
			// The time of the request is bounded too: a busy machine does fewer.
			if begun < 1 || begun > 100 {
				t.Errorf("the request did %d", begun)
			}
			if gone := w.get("a") == nil; gone != (policy == background) {
				t.Errorf("the owner is gone: %v", gone)
			}
			if done := w.sweep(); done.Unfinished || done.Removed+done.Changed < many-begun {
				t.Errorf("the schedule did %+v", done)
			}
			want := 0
			if policy == orphan {
				want = many
			}
			if page, err := w.widgets.Store.List(t.Context(), store.Query{}); err != nil || len(page.Records) != want {
				t.Errorf("%d are left, %v", len(page.Records), err)
			}
			if w.get("a") != nil {
				t.Error("the owner is left")
			}
		})
	}
}

// dying is a store whose process dies after a number of writes. From then on every call fails.
type dying struct {
	store.Store
	left *atomic.Int64
}

var errDead = fmt.Errorf("%w: the process died", store.ErrUnavailable)

func (d dying) alive() bool { return d.left.Load() > 0 }

func (d dying) write(do func() (int64, error)) (int64, error) {
	if d.left.Add(-1) < 0 {
		return 0, errDead
	}
	return do()
}

func (d dying) Update(ctx context.Context, record store.Record) (int64, error) {
	return d.write(func() (int64, error) { return d.Store.Update(ctx, record) })
}

func (d dying) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	return d.write(func() (int64, error) { return d.Store.Delete(ctx, name, revision) })
}

func (d dying) Get(ctx context.Context, name string) (store.Record, error) {
	if !d.alive() {
		return store.Record{}, errDead
	}
	return d.Store.Get(ctx, name)
}

func (d dying) List(ctx context.Context, query store.Query) (store.Page, error) {
	if !d.alive() {
		return store.Page{}, errDead
	}
	return d.Store.List(ctx, query)
}

// Whichever write is the last one, later runs find the remaining work: runs that die as well, and one that does
// not. Source: ADR-0009.
func TestDeathBetweenWrites(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			for writes := int64(1); ; writes++ {
				w := newWorld(t)
				w.build("a z b<a! c<b! n/w<a! n/x<n/w,c n/y<a,z")
				w.mustChange("a", w.owned("c!"))
				left := &atomic.Int64{}
				keys, widgets := w.keys.Store, w.widgets.Store
				w.keys.Store, w.widgets.Store = dying{keys, left}, dying{widgets, left}
				left.Store(writes)
				if err := w.remove(t.Context(), "a", policy, 0); err != nil {
					t.Fatalf("%d writes: %v", writes, err)
				}
				died := !(dying{left: left}).alive()
				// The next run dies as well.
				left.Store(writes%3 + 1)
				_, _ = w.graph.Sweep(t.Context())
				w.keys.Store, w.widgets.Store = keys, widgets
				w.sweep()
				want := "z n/y"
				if policy == orphan {
					want = "b c z n/w n/x n/y"
				}
				if got := w.left(); got != want {
					t.Errorf("after %d writes there are %q in the end, want %q", writes, got, want)
				}
				if owners := w.get("n/y").GetOwnerReferences(); len(owners) != 1 {
					t.Errorf("after %d writes the references are %+v", writes, owners)
				}
				if !died {
					if writes < 5 {
						t.Errorf("it took %d writes only", writes)
					}
					return
				}
			}
		})
	}
}

// Collectors that run at the same time as each other and as requests have the same result. Source: ADR-0009.
func TestCollectorsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const groups, size = 6, 15
	w.make("keep")
	for i := range groups {
		owner := fmt.Sprintf("owner-%d", i)
		w.make(owner)
		for j := range size {
			w.make(fmt.Sprintf("n/w-%d-%02d", i, j), w.owned(owner+"!"))
			w.make(fmt.Sprintf("n/x-%d-%02d", i, j), w.owned(fmt.Sprintf("n/w-%d-%02d!", i, j)))
		}
		w.make(fmt.Sprintf("n/kept-%d", i), w.owned(owner+"!", "keep"))
	}
	var all sync.WaitGroup
	for i := range groups {
		policy := []metav1.DeletionPropagation{background, foreground}[i%2]
		all.Go(func() {
			if err := w.remove(t.Context(), fmt.Sprintf("owner-%d", i), policy, 0); err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		all.Go(func() {
			for range 3 {
				if _, err := w.graph.Sweep(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for range 3 {
		w.sweep()
	}
	want := "keep"
	for i := range groups {
		want += fmt.Sprintf(" n/kept-%d", i)
		if owners := w.get(fmt.Sprintf("n/kept-%d", i)).GetOwnerReferences(); len(owners) != 1 {
			t.Errorf("the references are %+v", owners)
		}
	}
	w.expectLeft("in the end", want)
}

// An unreadable object does not stop the deletion of objects that do not depend on it. Source: ADR-0009.
func TestUnreadableDependent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.build("a z n/broken<a n/w<a n/x<z")
	record, err := w.widgets.Store.Get(t.Context(), "n/broken")
	if err != nil {
		t.Fatal(err)
	}
	record.Object = []byte(`{"metadata":7}`)
	if _, err := w.widgets.Store.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	w.mustRemove("a", background)
	if err := w.remove(t.Context(), "z", background, 0); err != nil {
		t.Fatal(err)
	}
	done, err := w.graph.Sweep(t.Context())
	if err == nil || done.Broken == 0 || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%+v, %v", done, err)
	}
	w.expectLeft("in the end", "n/broken")
}

// The walk begins anywhere and reaches everything, however many dependents one owner has. Source: ADR-0009.
func TestWalkReachesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.build("a b")
	one, two := w.owned("a"), w.owned("b")
	for i := range 30 {
		w.make(fmt.Sprintf("n/a%02d", i), one)
		w.make(fmt.Sprintf("n/b%02d", i), two)
	}
	// As if the process had died after its first write.
	record, err := w.keys.Store.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.keys.Store.Delete(t.Context(), "a", record.Revision); err != nil {
		t.Fatal(err)
	}
	if done := w.sweep(); done.Removed != 30 {
		t.Errorf("the run did %+v", done)
	}
	if page, err := w.widgets.Store.List(t.Context(), store.Query{}); err != nil || len(page.Records) != 30 || !strings.HasPrefix(page.Records[0].Name, "n/b") {
		t.Errorf("%d are left, %v", len(page.Records), err)
	}
}

// Valid and invalid references. Source: Spec 2.2, 7; ADR-0009.
func TestOwnerReferences(t *testing.T) {
	t.Parallel()
	const path = "metadata.ownerReferences"
	w := newWorld(t)
	w.build("root n/w m/x")
	if err := w.create(ana, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := w.create(ana, "n/mine"); err != nil {
		t.Fatal(err)
	}
	with := func(name string, change func(*metav1.OwnerReference)) []metav1.OwnerReference {
		reference := w.reference(name)
		if change != nil {
			change(&reference)
		}
		return []metav1.OwnerReference{reference}
	}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u", BlockOwnerDeletion: new(true)}
	for _, row := range []struct {
		about      string
		caller     identity.Caller
		name       string
		references []metav1.OwnerReference
		forbidden  string
		wrong      refusal
	}{
		{"one's own", ana, "x", with("mine", nil), "", refusal{}},
		{"blocking one's own", ana, "x", with("mine!", nil), "", refusal{}},
		{"a widget and a key", ana, "n/x", append(with("mine", nil), with("n/mine!", nil)...), "", refusal{}},
		{"somebody else's", ana, "x", with("root", nil), "", invalid(path + "[0].name")},
		{"somebody else's, to an admin", admin, "x", with("mine!", nil), "", refusal{}},
		{"an absent one", ana, "x", with("mine", func(r *metav1.OwnerReference) { r.Name = "absent" }), "", invalid(path + "[0].name")},
		{"a name that nothing can have", ana, "x", with("mine", func(r *metav1.OwnerReference) { r.Name = "n/../x" }), "", invalid(path + "[0].name")},
		{"another uid", ana, "x", with("mine", func(r *metav1.OwnerReference) { r.UID = "u" }), "", invalid(path + "[0].uid")},
		{"another uid, to an admin", admin, "x", with("mine!", func(r *metav1.OwnerReference) { r.UID = "u" }), "", invalid(path + "[0].uid")},
		{"a uid with a blank", ana, "x", with("mine", func(r *metav1.OwnerReference) { r.UID = "u v" }), "", invalid(path + "[0].uid")},
		{"a uid with a comma, of a foreign owner", ana, "x", []metav1.OwnerReference{{APIVersion: "v1", Kind: "K", Name: "x", UID: "u,v"}}, "", invalid(path + "[0].uid")},
		{"a long uid", ana, "x", with("mine", func(r *metav1.OwnerReference) {
			r.UID = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
		}), "", invalid(path + "[0].uid")},
		{"nothing but a name", ana, "x", []metav1.OwnerReference{{Name: "mine"}}, "", invalid(path+"[0].apiVersion", path+"[0].kind", path+"[0].uid")},
		{"no name", ana, "x", with("mine", func(r *metav1.OwnerReference) { r.Name = "" }), "", invalid(path + "[0].name")},
		{"a malformed apiVersion", ana, "x", with("mine", func(r *metav1.OwnerReference) { r.APIVersion = "a/b/c" }), "", invalid(path + "[0].apiVersion")},
		{"an event", ana, "x", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Event", Name: "x", UID: "u"}}, "", invalid(path + "[0]")},
		{"two that manage", ana, "x", append(with("mine", func(r *metav1.OwnerReference) { r.Controller = new(true) }),
			metav1.OwnerReference{APIVersion: "v1", Kind: "K", Name: "x", UID: "u", Controller: new(true)}), "", invalid(path)},
		{"all that is wrong at once", ana, "x", append(with("root", nil), with("mine", func(r *metav1.OwnerReference) { r.UID = "u" })...), "",
			invalid(path+"[0].name", path+"[1].uid")},
		{"a foreign one", ana, "x", []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u"}}, "", refusal{}},
		{"blocking a foreign one", ana, "x", []metav1.OwnerReference{foreign}, "", invalid(path + "[0].blockOwnerDeletion")},
		{"blocking a foreign one, as an admin", admin, "x", []metav1.OwnerReference{foreign}, "", refusal{}},
		{"one in a namespace, from outside", admin, "x", with("n/w", nil), "", invalid(path + "[0].kind")},
		{"one in another namespace", admin, "n/y", with("m/x", nil), "", invalid(path + "[0].name")},
		{"blocking without permission to delete", ana, "x", with("mine!", nil), "ownedaccesskeys /mine", invalid(path + "[0].blockOwnerDeletion")},
		{"blocking without permission to delete, as an admin", admin, "n/x", with("n/w!", nil), "widgets n/w", invalid(path + "[0].blockOwnerDeletion")},
		{"without blocking nobody asks for it", ana, "x", with("mine", nil), "ownedaccesskeys /mine", refusal{}},
	} {
		w.forbidden = map[string]bool{row.forbidden: true}
		err := w.create(row.caller, row.name, func(object metav1.Object) { object.SetOwnerReferences(row.references) })
		t.Run(row.about, func(t *testing.T) { expect(t, err, row.wrong) })
		if err == nil {
			w.mustRemove(row.name, background)
		}
	}

	w.forbidden = map[string]bool{}
	w.make("x", w.owned("root"))
	t.Run("later: what is there is not checked again", func(t *testing.T) {
		record, err := w.keys.Store.Get(t.Context(), "root")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.keys.Store.Delete(t.Context(), "root", record.Revision); err != nil {
			t.Fatal(err)
		}
		w.mustChange("x", func(object metav1.Object) { object.SetLabels(map[string]string{"a": "b"}) })
		expect(t, w.change("x", func(object metav1.Object) {
			references := object.GetOwnerReferences()
			references[0].BlockOwnerDeletion = new(true)
			object.SetOwnerReferences(references)
		}), invalid(path+"[0].blockOwnerDeletion"))
	})
	t.Run("later: a new one needs permission to delete the object", func(t *testing.T) {
		w.forbidden = map[string]bool{"ownedaccesskeys /x": true}
		expect(t, w.change("x", w.owned("mine")), invalid(path+"[1]"))
		w.forbidden = map[string]bool{}
		w.mustChange("x", w.owned("mine!"))
		w.forbidden = map[string]bool{"ownedaccesskeys /x": true, "ownedaccesskeys /mine": true}
		w.mustChange("x", func(object metav1.Object) { object.SetOwnerReferences(object.GetOwnerReferences()[1:]) })
	})
	t.Run("without state nothing is decided", func(t *testing.T) {
		in := w.reference("mine")
		state := w.keys.Store
		w.keys.Store = dying{state, &atomic.Int64{}}
		err := w.create(ana, "n/new", func(object metav1.Object) { object.SetOwnerReferences([]metav1.OwnerReference{in}) })
		w.keys.Store = state
		if got := refusalOf(err); got.code != 503 {
			t.Errorf("refused with %+v", got)
		}
	})
}

// An object past its end is absent for every verb, and the first verb that finds it removes it. Source: Spec 3; ADR-0009.
func TestEndedIsAbsent(t *testing.T) {
	t.Parallel()
	for about, verb := range map[string]func(w *world) error{
		"get": func(w *world) error {
			_, err := resource.Get(w.Context(), w.keys, resource.GetInput{Caller: ana, Name: "ci"})
			return err
		},
		"update": func(w *world) error {
			_, err := resource.Update(w.Context(), w.keys, resource.UpdateInput[*key]{Caller: ana, Name: "ci", Object: grantee("ci")})
			return err
		},
		"patch": func(w *world) error {
			_, err := resource.Patch(w.Context(), w.keys, resource.PatchInput{Caller: ana, Name: "ci", Type: resource.MergePatch, Patch: []byte(`{}`)})
			return err
		},
		"delete": func(w *world) error {
			_, err := resource.Delete(w.Context(), w.keys, resource.DeleteInput{Caller: ana, Name: "ci"})
			return err
		},
		"list": func(w *world) error {
			list, err := resource.List(w.Context(), w.keys, resource.ListInput{Caller: ana})
			if err == nil && strings.Contains(fmt.Sprint(list), "ci") {
				w.Errorf("it is listed: %v", list)
			}
			return err
		},
		"create": func(w *world) error {
			given := grantee("ci")
			given.Spec.Key = secret
			_, err := resource.Create(w.Context(), w.keys, resource.CreateInput[*key]{Caller: ana, Object: given, DryRun: true})
			if err == nil {
				_, err = resource.Create(w.Context(), w.keys, resource.CreateInput[*key]{Caller: ana, Object: given})
			}
			return err
		},
		"create of its key": func(w *world) error {
			given := grantee("another")
			given.Spec.Key = secret
			_, err := resource.Create(w.Context(), w.keys, resource.CreateInput[*key]{Caller: ana, Object: given})
			return err
		},
		"the schedule": func(w *world) error { w.sweep(); return nil },
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			given := grantee("ci")
			given.Spec.Key = secret
			created := create(t, w.keys, ana, given)
			if err := w.remove(t.Context(), "ci", "", 60); err != nil {
				t.Fatal(err)
			}
			w.clock.Store(59)
			if got := w.get("ci"); got == nil || got.GetDeletionTimestamp() == nil {
				t.Fatalf("before its end: %+v", got)
			}
			w.clock.Store(60)
			err := verb(w)
			want := notFound
			if strings.HasPrefix(about, "create") || about == "list" || about == "the schedule" {
				want = refusal{}
			}
			expect(t, err, want)
			record, err := w.keys.Store.Get(t.Context(), "ci")
			if err == nil {
				if object, _ := w.keys.Decode(record); object.UID == created.UID {
					t.Error("it is still stored")
				}
			}
		})
	}
}

// An object with finalizers keeps its grace period. After it, the object is neither due nor removed. Source: Spec 2.2, 3.
func TestGraceWithFinalizers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.make("ci", held(hold, "test.example/b"))
	if err := w.remove(t.Context(), "ci", "", 60); err != nil {
		t.Fatal(err)
	}
	w.clock.Store(61)
	w.sweep()
	if due, err := w.keys.Store.Due(t.Context(), store.DueQuery{Until: now.Add(time.Hour)}); err != nil || len(due) != 0 {
		t.Errorf("%d are due, %v", len(due), err)
	}
	expect(t, w.change("ci", held(hold, "test.example/new")), invalid("metadata.finalizers"))
	w.mustChange("ci", held("test.example/b"))
	w.expectLeft("with one left", "-ci")
	w.mustChange("ci", held())
	w.expectLeft("with none left", "")

	// Released before its time, it stays until then.
	w.make("ci", held(hold))
	if err := w.remove(t.Context(), "ci", "", 60); err != nil {
		t.Fatal(err)
	}
	w.mustChange("ci", held())
	w.expectLeft("before its end", "-ci")
	if done := w.sweep(); done.Removed != 0 {
		t.Errorf("before its end the schedule did %+v", done)
	}
	w.clock.Store(121)
	if done := w.sweep(); done.Removed != 1 {
		t.Errorf("after its end the schedule did %+v", done)
	}
	w.expectLeft("after its end", "")
}

// Finalizers are qualified names. Source: Spec 2.2.
func TestFinalizerNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, bad := range [][]string{{""}, {"a b"}, {"/a"}, {"a/"}, {"a/b/c"}, {"A_B.c/x"}, {strings.Repeat("a", 64)}, {"orphan", "foregroundDeletion"}} {
		got := refusalOf(w.create(admin, "x", held(bad...)))
		if got.code != 422 || len(slices.Compact(got.fields)) != 1 || got.fields[0] != "metadata.finalizers" {
			t.Errorf("%q: refused with %+v", bad, got)
		}
	}
	for _, good := range [][]string{{"a"}, {"test.example/a-b_c.d"}, {"orphan", "a.b/c"}} {
		if err := w.create(admin, "x"+fmt.Sprint(len(good[0])), held(good...)); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// A collection contains the objects that a list shows to the caller. Source: Spec 3; ADR-0009.
func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		caller identity.Caller
		in     resource.DeleteInput
		list   resource.ListInput
		answer string
		left   string
		wrong  refusal
	}{
		{"all of one's own", ben, resource.DeleteInput{}, resource.ListInput{}, "b1 b2", "-gone a1 a2 a3", refusal{}},
		{"all, with what is held", ana, resource.DeleteInput{}, resource.ListInput{}, "a1 a2 a3 gone", "-a3 -gone b1 b2", refusal{}},
		{"a dry run", ana, resource.DeleteInput{DryRun: true}, resource.ListInput{}, "a1 a2 a3 gone", "-gone a1 a2 a3 b1 b2", refusal{}},
		{"a page", ana, resource.DeleteInput{}, resource.ListInput{Limit: 1}, "a1", "-gone a2 a3 b1 b2", refusal{}},
		{"with a grace period", ben, resource.DeleteInput{GracePeriodSeconds: new(int64(5))}, resource.ListInput{}, "b1 b2", "-b1 -b2 -gone a1 a2 a3", refusal{}},
		{"of another version", ben, resource.DeleteInput{ResourceVersion: "1"}, resource.ListInput{}, "", "-gone a1 a2 a3 b1 b2", conflict},
		{"of another uid", ben, resource.DeleteInput{UID: "x"}, resource.ListInput{}, "", "-gone a1 a2 a3 b1 b2", conflict},
		{"after a token of somebody else", ben, resource.DeleteInput{}, resource.ListInput{Continue: "x"}, "", "-gone a1 a2 a3 b1 b2",
			refusal{code: 400, reason: metav1.StatusReasonBadRequest, fields: []string{"continue"}}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, name := range []string{"a1", "a2", "a3", "gone", "b1", "b2"} {
				caller, forms := ana, []form{}
				if strings.HasPrefix(name, "b") {
					caller = ben
				}
				if name == "a3" || name == "gone" {
					forms = append(forms, held(hold))
				}
				if err := w.create(caller, name, forms...); err != nil {
					t.Fatal(err)
				}
			}
			w.mustRemove("gone", "")
			row.list.Caller, row.in.Caller, row.in.Selection = row.caller, row.caller, &row.list
			before := revision(t, w.keys.Store)
			list, err := resource.Delete(t.Context(), w.keys, row.in)
			expect(t, err, row.wrong)
			if err == nil {
				if got := names(list.(*keyList)); got != row.answer {
					t.Errorf("answered %q, want %q", got, row.answer)
				}
			}
			left := strings.Fields(w.left())
			slices.Sort(left)
			if got := strings.Join(left, " "); got != row.left {
				t.Errorf("left are %q, want %q", got, row.left)
			}
			if after := revision(t, w.keys.Store); row.in.DryRun && after != before {
				t.Errorf("a dry run moved the revision from %d to %d", before, after)
			}
		})
	}
}

// Without a limit, the dependents of the objects of every page are deleted with them. Source: ADR-0020.
func TestDeleteCollectionCollectsEachPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.build("a b c d e n/v<a n/w<c n/x<d n/y<e")
	w.keys.Store = &narrow{Store: w.keys.Store, objects: 2}
	selection := resource.ListInput{Caller: admin}
	if _, err := resource.Delete(t.Context(), w.keys, resource.DeleteInput{Caller: admin, Selection: &selection}); err != nil {
		t.Fatal(err)
	}
	w.expectLeft("after the request", "")
}

// The dependents of the objects of a collection are deleted as well. Source: ADR-0009.
func TestDeleteCollectionCollects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.build("a b n/w<a,b n/x<a")
	if _, err := resource.Delete(t.Context(), w.keys, resource.DeleteInput{
		Caller: admin, Propagation: foreground, Selection: &resource.ListInput{Caller: admin},
	}); err != nil {
		t.Fatal(err)
	}
	w.expectLeft("after the request", "")
}

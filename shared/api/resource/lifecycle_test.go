package resource_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// life is what a test knows of one object from its own requests.
type life struct {
	name string
	// asked reports whether its deletion was requested, held whether it has another program's finalizer.
	asked, held bool
	// until is the earliest end that was requested.
	until time.Time
	// owners are the uids that it has referred to since its creation.
	owners map[types.UID]bool
}

// Random lives: created, owned, held, released, deleted in every way, while the clock goes on and the schedule
// runs. No object ends unless its end was requested, and no object that should have ended is left.
// Source: Spec 2.2, 3; ADR-0009.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	client := redistest.Open(t, redistest.Embedded(t))
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		rounds++
		w := worldOver(t, client)
		w.keys.Store, w.widgets.Store = client.Resource(fmt.Sprint("keys-", rounds)), client.Resource(fmt.Sprint("widgets-", rounds))
		// Rounds do not share texts.
		w.keys.Random, w.widgets.Random = seeded(byte(rounds)), seeded(byte(rounds+1))
		lives := map[types.UID]*life{}
		ended := map[types.UID]bool{}
		foregrounds := map[types.UID]bool{}
		clock := func() time.Time { return w.keys.Now() }
		all := []string{"a", "b", "c", "n/a", "n/b"}
		name := rapid.SampledFrom(all)
		exists := func() []string {
			return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return w.get(name) == nil })
		}
		some := func(rt *rapid.T) string {
			present := exists()
			if len(present) == 0 {
				rt.Skip("there is nothing")
			}
			return rapid.SampledFrom(present).Draw(rt, "name")
		}
		owners := func(rt *rapid.T, of string) form {
			var list []string
			for _, owner := range exists() {
				if (of[0] == 'n' && len(of) > 1 || len(owner) == 1) && rapid.IntRange(0, 2).Draw(rt, "owned by "+owner) == 0 {
					list = append(list, owner+rapid.SampledFrom([]string{"", "!"}).Draw(rt, "blocks"))
				}
			}
			return w.owned(list...)
		}
		note := func(name string) {
			object := w.get(name)
			if object == nil {
				return
			}
			l := lives[object.GetUID()]
			if l == nil {
				l = &life{name: name, owners: map[types.UID]bool{}}
				lives[object.GetUID()] = l
			}
			l.held = slices.Contains(object.GetFinalizers(), hold)
			for _, owner := range object.GetOwnerReferences() {
				l.owners[owner.UID] = true
			}
		}
		// stored returns all stored objects.
		stored := func() map[types.UID]metav1.Object {
			objects := map[types.UID]metav1.Object{}
			for _, name := range all {
				if object := w.get(name); object != nil {
					objects[object.GetUID()] = object
				}
			}
			return objects
		}
		// justified reports whether an object may end: its deletion was requested, or its owners ended or wait for it.
		justified := func(uid types.UID) bool {
			l := lives[uid]
			if l.asked {
				return true
			}
			for owner := range l.owners {
				if ended[owner] || foregrounds[owner] {
					return true
				}
			}
			return false
		}
		observe := func(rt *rapid.T) {
			objects := stored()
			// Several may end in one step: each by one that ended with it.
			for uid := range lives {
				if objects[uid] == nil {
					ended[uid] = true
				}
			}
			for uid, object := range objects {
				if object.GetDeletionTimestamp() == nil {
					continue
				}
				// An object that ended with its owner may have waited for its dependents. It no longer waits.
				if !lives[uid].asked || slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
					foregrounds[uid] = true
				}
			}
			for uid, l := range lives {
				object := objects[uid]
				deleting := object == nil || object.GetDeletionTimestamp() != nil
				if deleting && !justified(uid) {
					rt.Fatalf("%s ends, and nobody asked for it", l.name)
				}
				if object == nil && l.held {
					rt.Fatalf("%s is gone with a finalizer", l.name)
				}
				if object == nil && l.asked && clock().Before(l.until) && !slices.ContainsFunc(slices.Collect(maps.Keys(l.owners)), func(owner types.UID) bool {
					return ended[owner] || foregrounds[owner]
				}) {
					rt.Fatalf("%s is gone before its time", l.name)
				}
				if object != nil && l.asked {
					if object.GetDeletionTimestamp() == nil {
						rt.Fatalf("the deletion of %s was taken back", l.name)
					}
					if object.GetDeletionTimestamp().After(l.until) {
						rt.Fatalf("the end of %s has moved from %v to %v", l.name, l.until, object.GetDeletionTimestamp())
					}
					l.until = object.GetDeletionTimestamp().Time
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": observe,
			"create": func(rt *rapid.T) {
				name := name.Draw(rt, "name")
				forms := []form{owners(rt, name)}
				if rapid.IntRange(0, 3).Draw(rt, "held") == 0 {
					forms = append(forms, held(hold))
				}
				there := w.get(name) != nil
				if err := w.create(admin, name, forms...); (err == nil) == there {
					rt.Fatalf("creating %s, which was there: %v: %v", name, there, err)
				}
				note(name)
			},
			"own": func(rt *rapid.T) {
				name := some(rt)
				if err := w.change(name, func(object metav1.Object) { object.SetOwnerReferences(nil) }, owners(rt, name)); err != nil {
					rt.Fatalf("changing the owners of %s: %v", name, err)
				}
				note(name)
			},
			"hold": func(rt *rapid.T) {
				name := some(rt)
				deleting := w.get(name).GetDeletionTimestamp() != nil
				had := w.get(name).GetFinalizers()
				err := w.change(name, held(append(slices.Clone(had), hold)...))
				if refused := refusalOf(err).code == 422; refused != (deleting && !slices.Contains(had, hold)) {
					rt.Fatalf("holding %s, which is being deleted: %v: %v", name, deleting, err)
				}
				note(name)
			},
			"release": func(rt *rapid.T) {
				name := some(rt)
				object := w.get(name)
				lives[object.GetUID()].held = false
				err := w.change(name, held(slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == hold })...))
				if err != nil {
					rt.Fatalf("releasing %s: %v", name, err)
				}
			},
			"delete": func(rt *rapid.T) {
				name := some(rt)
				object := w.get(name)
				grace := rapid.SampledFrom([]int64{0, 0, 5, 20}).Draw(rt, "grace")
				policy := rapid.SampledFrom([]metav1.DeletionPropagation{"", background, foreground, orphan}).Draw(rt, "policy")
				l := lives[object.GetUID()]
				l.asked = true
				if end := object.GetDeletionTimestamp(); end == nil {
					l.until = clock().Truncate(time.Second).Add(time.Duration(grace) * time.Second)
				} else {
					// It counts from the first request.
					l.until = end.Time
					if shorter := grace - *object.GetDeletionGracePeriodSeconds(); shorter < 0 && clock().Before(end.Time) {
						l.until = end.Add(time.Duration(shorter) * time.Second)
					}
				}
				if policy == foreground {
					foregrounds[object.GetUID()] = true
				}
				if err := w.remove(t.Context(), name, policy, grace); err != nil {
					rt.Fatalf("deleting %s: %v", name, err)
				}
			},
			"wait": func(rt *rapid.T) { w.clock.Add(int64(rapid.IntRange(1, 10).Draw(rt, "seconds"))) },
			"sweep": func(rt *rapid.T) {
				if done, err := w.graph.Sweep(t.Context()); err != nil || done.Busy != 0 || done.Broken != 0 {
					rt.Fatalf("the schedule did %+v: %v", done, err)
				}
			},
		})

		// Time goes on until nothing is left to do.
		w.clock.Add(100)
		for i := 0; ; i++ {
			done, err := w.graph.Sweep(t.Context())
			if err != nil || i > 20 {
				rt.Fatalf("the schedule does not come to an end: %+v, %v", done, err)
			}
			if done == (gc.Collected{}) {
				break
			}
		}
		observe(rt)
		found := stored()
		for _, object := range found {
			settled(rt, object, found)
		}
	})
}

// settled fails if something is left to do for an object.
func settled(rt *rapid.T, object metav1.Object, objects map[types.UID]metav1.Object) {
	finalizers, name := object.GetFinalizers(), object.GetNamespace()+"/"+object.GetName()
	if object.GetDeletionTimestamp() != nil {
		if len(finalizers) == 0 {
			rt.Fatalf("%s has ended and is left", name)
		}
		if slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
			rt.Fatalf("%s has not let go what it owns", name)
		}
		if slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
			blocked := false
			for _, other := range objects {
				for _, reference := range other.GetOwnerReferences() {
					if reference.UID == object.GetUID() && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion && other.GetUID() != object.GetUID() {
						blocked = true
						if other.GetDeletionTimestamp() == nil {
							rt.Fatalf("%s waits for %s, which nobody deletes", name, other.GetName())
						}
					}
				}
			}
			if !blocked {
				rt.Fatalf("%s waits for nobody", name)
			}
		}
		return
	}
	var solid, gone int
	for _, reference := range object.GetOwnerReferences() {
		if objects[reference.UID] == nil {
			gone++
		} else {
			solid++
		}
	}
	if gone > 0 {
		rt.Fatalf("%s has %d owners and refers to %d that are gone", name, solid, gone)
	}
}

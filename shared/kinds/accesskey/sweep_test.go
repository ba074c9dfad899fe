package accesskey_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// world has the keys over real state, with a clock and limits that a test sets.
type world struct {
	t            *testing.T
	client       *redisstore.Client
	keys         *accesskey.Registry
	now          time.Time
	limit, login time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	w := &world{t: t, client: client, now: born}
	w.keys = accesskey.NewRegistry(client.Resource(accesskey.Definition.Resource.Resource),
		func() time.Time { return w.now }, rand.NewChaCha8([32]byte{5}), w.limits)
	return w
}

func (w *world) limits() accesskey.Limits { return accesskey.Limits{Max: w.limit, Login: w.login} }

// create makes a key at the clock's time.
func (w *world) create(name string, spec model.OwnedAccessKeySpec, finalizers ...string) {
	w.t.Helper()
	if _, err := resource.Create(context.Background(), w.keys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: admin, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}, Spec: spec},
	}); err != nil {
		w.t.Fatalf("creating %s: %v", name, err)
	}
}

// delete requests the deletion of a key.
func (w *world) delete(name string, grace int64, propagation metav1.DeletionPropagation) {
	w.t.Helper()
	if _, err := resource.Delete(context.Background(), w.keys, resource.DeleteInput{
		Caller: admin, Name: name, GracePeriodSeconds: &grace, Propagation: propagation,
	}); err != nil {
		w.t.Fatal(err)
	}
}

// refer lets a key block the deletion of another key, and gives it finalizers.
func (w *world) refer(name, owner string, finalizers ...string) {
	w.t.Helper()
	key, err := resource.Get(context.Background(), w.keys, resource.GetInput{Caller: admin, Name: owner})
	if err != nil {
		w.t.Fatal(err)
	}
	other, err := resource.Get(context.Background(), w.keys, resource.GetInput{Caller: admin, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	other.Finalizers = finalizers
	other.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: key.APIVersion, Kind: key.Kind, Name: key.Name, UID: key.UID, BlockOwnerDeletion: new(true),
	}}
	if _, err := resource.Update(context.Background(), w.keys, resource.UpdateInput[*model.OwnedAccessKey]{
		Caller: admin, Name: name, Object: other,
	}); err != nil {
		w.t.Fatal(err)
	}
}

// touch records a use as an authentication does.
func (w *world) touch(name string, duration time.Duration) {
	w.t.Helper()
	record, err := w.keys.Store.Get(context.Background(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := w.keys.Decode(record)
	if err != nil {
		w.t.Fatal(err)
	}
	activity := born.Add(duration)
	if err := w.keys.Store.Touch(context.Background(), record, activity, accesskey.OwnExpiry(key, activity)); err != nil {
		w.t.Fatal(err)
	}
}

// names returns the names of the stored keys.
func (w *world) names() []string {
	w.t.Helper()
	names := []string{}
	for _, record := range w.page().Records {
		names = append(names, record.Name)
	}
	return names
}

func (w *world) page() store.Page {
	w.t.Helper()
	page, err := w.keys.Store.List(context.Background(), store.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return page
}

func (w *world) sweep() accesskey.Swept {
	w.t.Helper()
	audited := 0
	done, err := accesskey.Sweep(resource.ObserveRemovals(context.Background(), func(resource.Change) { audited++ }), w.keys, w.limits)
	if audited < done.Removed {
		w.t.Errorf("%d are removed, and the audit log has %d", done.Removed, audited)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

func ttl(seconds int64) model.OwnedAccessKeySpec {
	return model.OwnedAccessKeySpec{TTLSeconds: seconds}
}

func sliding(seconds int64) model.OwnedAccessKeySpec {
	return model.OwnedAccessKeySpec{TTLSeconds: seconds, TTLAfterLastActivity: true}
}

// Each row is a state, a time and the keys that are left after a run. Source: Spec 2.5, 5.2; ADR-0005.
func TestSweep(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		prepare  func(w *world)
		at       time.Duration
		limit    time.Duration
		want     accesskey.Swept
		left     []string
	}{
		{"ADR-0005", "nothing is due", func(*world) {}, time.Hour, 0, accesskey.Swept{}, nil},
		{"Spec 2.5", "keys whose ttl has passed go, the rest stay", func(w *world) {
			w.create("over", ttl(60))
			w.create("later", ttl(61))
			w.create("never", ttl(0))
		}, time.Minute, 0, accesskey.Swept{Removed: 1}, []string{"later", "never"}},
		{"ADR-0005", "before its end a key stays", func(w *world) { w.create("over", ttl(60)) }, time.Minute - time.Millisecond, 0, accesskey.Swept{}, []string{"over"}},
		{"Spec 5.2", "keys beyond the cap go", func(w *world) {
			w.create("old", ttl(0))
			w.create("older", ttl(3600))
			w.now = born.Add(time.Second)
			w.create("young", ttl(3600))
		}, time.Minute, time.Minute, accesskey.Swept{Removed: 2}, []string{"young"}},
		{"Spec 8", "without a cap age does not matter", func(w *world) { w.create("old", ttl(0)) }, 1 << 60, 0, accesskey.Swept{}, []string{"old"}},
		{"Spec 5.2", "a key that has ended by both goes once", func(w *world) { w.create("over", ttl(60)) }, time.Hour, time.Minute, accesskey.Swept{Removed: 1}, nil},
		{"Spec 3", "a disabled key goes like any other", func(w *world) { w.create("off", model.OwnedAccessKeySpec{TTLSeconds: 60, Disabled: true}) },
			time.Minute, 0, accesskey.Swept{Removed: 1}, nil},
		{"Spec 2.5", "a sliding key that was used stays", func(w *world) {
			w.create("used", sliding(60))
			w.create("unused", sliding(60))
			w.touch("used", 30*time.Second)
		}, time.Minute, 0, accesskey.Swept{Removed: 1}, []string{"used"}},
		{"ADR-0005", "a sliding key goes with the cap, used or not", func(w *world) {
			w.create("used", sliding(60))
			w.touch("used", 30*time.Second)
		}, time.Minute, time.Minute, accesskey.Swept{Removed: 1}, nil},
		{"Spec 2.2", "a key with finalizers is held", func(w *world) {
			w.create("held", ttl(60), "a.b/c")
			w.create("over", ttl(60))
		}, time.Minute, 0, accesskey.Swept{Removed: 1, Held: 1}, []string{"held"}},
		{"Spec 2.2", "a key that the cap ends and finalizers hold is read past", func(w *world) {
			w.create("held", ttl(0), "a.b/c")
			w.create("old", ttl(0))
		}, time.Minute, time.Minute, accesskey.Swept{Removed: 1, Held: 1}, []string{"held"}},
		{"Spec 3", "a key goes when its grace period is over", func(w *world) {
			w.create("over", ttl(0))
			w.create("held", ttl(0), "a.b/c")
			w.create("later", ttl(0))
			w.delete("over", 60, "")
			w.delete("held", 60, "")
			w.delete("later", 61, "")
		}, time.Minute, 0, accesskey.Swept{Removed: 1}, []string{"held", "later"}},
		{"Spec 2.5", "a key whose lifetime ends in its grace period goes", func(w *world) {
			w.create("over", ttl(60))
			w.delete("over", 3600, "")
		}, time.Minute, 0, accesskey.Swept{Removed: 1}, nil},
		{"ADR-0009", "a key that waits for the objects it owns is left to the collector", func(w *world) {
			w.create("owner", ttl(0))
			w.create("other", ttl(0))
			w.refer("other", "owner", "a.b/c")
			w.delete("owner", 0, metav1.DeletePropagationForeground)
		}, time.Minute, 0, accesskey.Swept{Held: 1}, []string{"other", "owner"}},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			w := newWorld(t)
			row.prepare(w)
			w.now, w.limit = born.Add(row.at), row.limit
			if done := w.sweep(); done != row.want {
				t.Errorf("got %+v, want %+v", done, row.want)
			}
			if names := w.names(); !slices.Equal(names, append([]string{}, row.left...)) {
				t.Errorf("left are %q, want %q", names, row.left)
			}
			// A second run finds nothing and writes nothing: keys with finalizers become due again when these are removed.
			before := w.page().Revision
			if done := w.sweep(); done.Held > row.want.Held || done != (accesskey.Swept{Held: done.Held}) {
				t.Errorf("the second run did %+v", done)
			}
			if after := w.page().Revision; after != before {
				t.Errorf("the second run moved the revision from %d to %d", before, after)
			}
		})
	}
}

// Login keys are removed after the platform's limit for them, and become due later if the limit was raised.
// Source: Spec 2.7, 8.
func TestSweepLoginKeys(t *testing.T) {
	w := newWorld(t)
	w.login = time.Minute
	for _, name := range []string{"a", "b"} {
		w.create(name, ttl(0))
		record, err := w.keys.Store.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		// Only logins write this type.
		record.Object = bytes.Replace(record.Object, []byte(`"type":"User"`), []byte(`"type":"Login"`), 1)
		if name == "a" {
			record.Expires = born.Add(time.Minute)
		}
		if _, err := w.keys.Store.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	w.create("other", ttl(0))
	w.now, w.login = born.Add(time.Minute), time.Hour
	if done := w.sweep(); done != (accesskey.Swept{Later: 1}) {
		t.Errorf("with a limit that was raised it did %+v", done)
	}
	w.now = born.Add(time.Hour)
	if done := w.sweep(); done != (accesskey.Swept{Removed: 1}) || !slices.Equal(w.names(), []string{"b", "other"}) {
		t.Errorf("it did %+v, and left %q", done, w.names())
	}
}

// If an update that had read the key before a use lost the new due time, the run corrects it.
// Source: ADR-0002, ADR-0005.
func TestSweepDueTimeIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.create("used", sliding(60))
	stale, err := w.keys.Store.Get(context.Background(), "used")
	if err != nil {
		t.Fatal(err)
	}
	w.touch("used", 50*time.Second)
	if _, err := w.keys.Store.Update(context.Background(), stale); err != nil {
		t.Fatal(err)
	}
	w.now = born.Add(time.Minute)
	before := w.page().Revision
	if done := w.sweep(); done != (accesskey.Swept{Later: 1}) {
		t.Errorf("got %+v", done)
	}
	if done := w.sweep(); done != (accesskey.Swept{}) {
		t.Errorf("it is still due: %+v", done)
	}
	record, err := w.keys.Store.Get(context.Background(), "used")
	if err != nil || !record.Expires.Equal(born.Add(110*time.Second)) || record.Revision != before {
		t.Errorf("due at %v, revision %d, %v", record.Expires, record.Revision, err)
	}
	w.now = born.Add(110 * time.Second)
	if done := w.sweep(); done != (accesskey.Swept{Removed: 1}) {
		t.Errorf("at its end: %+v", done)
	}
}

// Keys with finalizers are at the head of the queue: more than one page of them must not block the rest. Source: Spec 2.2
// (finalizers); ADR-0005.
func TestSweepHeldKeysStarveNobody(t *testing.T) {
	w := newWorld(t)
	const held, due = 250, 250
	for i := range held {
		w.create(fmt.Sprintf("held-%03d", i), ttl(1), "a.b/c")
	}
	for i := range due {
		w.create(fmt.Sprintf("over-%03d", i), ttl(60))
	}
	w.create("stays", ttl(3600))
	w.now = born.Add(time.Minute)
	if done := w.sweep(); done != (accesskey.Swept{Removed: due, Held: held}) {
		t.Errorf("got %+v", done)
	}
	if got := len(w.names()); got != held+1 {
		t.Errorf("%d keys are left", got)
	}
	// Each key was marked once, has left the queue, and is removed with its last finalizer.
	before := w.page().Revision
	if done := w.sweep(); done != (accesskey.Swept{}) || w.page().Revision != before {
		t.Errorf("the second run did %+v and moved the revision to %d", done, w.page().Revision)
	}
	if _, err := resource.Patch(context.Background(), w.keys, resource.PatchInput{
		Caller: admin, Name: "held-000", Type: resource.MergePatch, Patch: []byte(`{"metadata":{"finalizers":null}}`),
	}); err != nil {
		t.Fatal(err)
	}
	if names := w.names(); slices.Contains(names, "held-000") || len(names) != held {
		t.Errorf("a key without finalizers is still there, or more has gone: %d", len(names))
	}
}

// Simultaneous runs remove each key only once. Source: ADR-0005.
func TestSweepConcurrentRuns(t *testing.T) {
	w := newWorld(t)
	const due = 300
	for i := range due {
		w.create(fmt.Sprintf("over-%03d", i), ttl(60))
	}
	w.create("held", ttl(60), "a.b/c")
	w.create("stays", ttl(3600))
	before := w.page().Revision
	w.now = born.Add(time.Minute)
	var runs sync.WaitGroup
	outputs := make([]accesskey.Swept, 4)
	for i := range outputs {
		runs.Go(func() {
			var err error
			if outputs[i], err = accesskey.Sweep(context.Background(), w.keys, w.limits); err != nil {
				t.Errorf("run %d: %v", i, err)
			}
		})
	}
	runs.Wait()
	removed := 0
	for _, output := range outputs {
		removed += output.Removed
		if output.Later != 0 {
			t.Errorf("a run did %+v", output)
		}
	}
	if removed != due {
		t.Errorf("%d keys were removed: %+v", removed, outputs)
	}
	if names := w.names(); !slices.Equal(names, []string{"held", "stays"}) {
		t.Errorf("left are %q", names)
	}
	if after := w.page().Revision; after != before+due+1 {
		t.Errorf("%d writes", after-before)
	}
}

// stopping is a store that cancels the context after a number of calls.
type stopping struct {
	store.Store
	left   int
	cancel context.CancelFunc
}

func (s *stopping) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	if s.left--; s.left == 0 {
		s.cancel()
	}
	return s.Store.Delete(ctx, name, revision)
}

// A stopped run reports what it has done, and the next run continues. Source: ADR-0005.
func TestSweepStoppedRun(t *testing.T) {
	w := newWorld(t)
	const due = 150
	for i := range due {
		w.create(fmt.Sprintf("over-%03d", i), ttl(60))
	}
	w.now = born.Add(time.Minute)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	state := w.keys.Store
	w.keys.Store = &stopping{Store: state, left: 121, cancel: cancel}
	done, err := accesskey.Sweep(ctx, w.keys, w.limits)
	if !errors.Is(err, context.Canceled) || done != (accesskey.Swept{Removed: 120}) {
		t.Errorf("the run did %+v: %v", done, err)
	}
	w.keys.Store = state
	if left := len(w.names()); left != due-120 {
		t.Errorf("%d keys are left", left)
	}
	if _, err := accesskey.Sweep(ctx, w.keys, w.limits); !errors.Is(err, context.Canceled) {
		t.Errorf("a run whose context is over: %v", err)
	}
	if done := w.sweep(); done != (accesskey.Swept{Removed: due - 120}) {
		t.Errorf("the next run did %+v", done)
	}
}

// Without the state a run fails with an error. Source: ADR-0002.
func TestSweepWithoutState(t *testing.T) {
	w := newWorld(t)
	if err := w.client.Close(); err != nil {
		t.Fatal(err)
	}
	if done, err := accesskey.Sweep(context.Background(), w.keys, w.limits); !errors.Is(err, store.ErrUnavailable) || done != (accesskey.Swept{}) {
		t.Errorf("the run did %+v: %v", done, err)
	}
}

// endless is a store in which more keys are always due.
type endless struct {
	store.Store
	made, removed int
}

func (e *endless) record(name string) store.Record {
	return store.Record{
		Name: name, Revision: 1, Owner: "user:a", Created: born, Expires: born.Add(time.Minute),
		Object: fmt.Appendf(nil, `{"metadata":{"name":%q,"creationTimestamp":"2026-03-01T12:00:00Z"},"spec":{"user":"a","ttl":60}}`, name),
	}
}

func (e *endless) Due(_ context.Context, query store.DueQuery) ([]store.Record, error) {
	due := make([]store.Record, query.Limit)
	for i := range due {
		e.made++
		due[i] = e.record(fmt.Sprintf("over-%d", e.made))
	}
	return due, nil
}

func (e *endless) Trim(context.Context, time.Time) error { return nil }

func (e *endless) Name() string { return "ownedaccesskeys" }

func (e *endless) Referred(_ context.Context, asked []store.Referral) ([]bool, error) {
	return make([]bool, len(asked)), nil
}

func (e *endless) Get(_ context.Context, name string) (store.Record, error) {
	return e.record(name), nil
}

func (e *endless) List(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, nil
}

func (e *endless) Delete(context.Context, string, int64) (int64, error) {
	e.removed++
	return 2, nil
}

// A run ends, however many keys are due, and the next run continues. Source: ADR-0005.
func TestSweepBounded(t *testing.T) {
	w := newWorld(t)
	state := &endless{}
	w.keys.Store = state
	w.now = born.Add(time.Minute)
	if done := w.sweep(); done.Removed < 10_000 || done.Removed > 10_100 || state.removed != done.Removed {
		t.Errorf("the run did %+v", done)
	}
}

// A key is refused before it is swept. Afterwards its name and its text are free again. Source: ADR-0005.
func TestSweptKeyIsGone(t *testing.T) {
	w := newWorld(t)
	brought := "brought-along-by-the-client-0123456789"
	w.create("ci", model.OwnedAccessKeySpec{TTLSeconds: 60, Key: brought})
	w.now = born.Add(time.Minute)
	w.sweep()
	if _, err := w.keys.Store.GetByDigest(context.Background(), accesskey.Digest("brought-along-by-the-client-0123456789")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the digest is still known: %v", err)
	}
	w.create("ci", model.OwnedAccessKeySpec{Key: brought})
	if done := w.sweep(); done != (accesskey.Swept{}) {
		t.Errorf("the new key inherits the old one's end: %+v", done)
	}
}

// An unreadable key does not prevent the removal of other keys.
func TestSweepBrokenKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", ttl(10))
	w.create("b", ttl(20))
	record, err := w.keys.Store.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	record.Object = []byte(`{"spec":{"ttl":"long"}}`)
	if _, err := w.keys.Store.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	w.now = born.Add(time.Minute)
	done, err := accesskey.Sweep(t.Context(), w.keys, w.limits)
	if err == nil || done.Broken != 1 || done.Removed != 1 {
		t.Errorf("done: %+v, %v", done, err)
	}
	if got := w.names(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q are left", got)
	}
}

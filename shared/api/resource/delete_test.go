package resource_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

func TestDelete(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		in    func(*key) resource.DeleteInput
		wrong refusal
		gone  bool
	}{
		{"without conditions", func(*key) resource.DeleteInput { return resource.DeleteInput{} }, refusal{}, true},
		{"the uid", func(k *key) resource.DeleteInput { return resource.DeleteInput{UID: k.UID} }, refusal{}, true},
		{"another uid", func(*key) resource.DeleteInput { return resource.DeleteInput{UID: "x"} }, conflict, false},
		{"the resourceVersion", func(k *key) resource.DeleteInput {
			return resource.DeleteInput{ResourceVersion: k.ResourceVersion}
		}, refusal{}, true},
		{"another resourceVersion", func(*key) resource.DeleteInput { return resource.DeleteInput{ResourceVersion: "1"} }, conflict, false},
		{"a dry run", func(*key) resource.DeleteInput { return resource.DeleteInput{DryRun: true} }, refusal{}, false},
		{"a dry run with another uid", func(*key) resource.DeleteInput { return resource.DeleteInput{DryRun: true, UID: "x"} }, conflict, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			create(t, r, ana, grantee("another"))
			given := grantee("ci")
			given.Spec.Key = secret
			object := create(t, r, ana, given)
			in := row.in(object)
			in.Caller, in.Name = ana, "ci"
			answer, err := resource.Delete(t.Context(), r, in)
			expect(t, err, row.wrong)
			want := &metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
				Details: &metav1.StatusDetails{Name: "ci", Group: "management.platform.sh", Kind: "ownedaccesskeys", UID: object.UID},
			}
			if err == nil && !apiequality.Semantic.DeepEqual(answer, want) {
				t.Errorf("answered %+v, want %+v", answer, want)
			}
			_, err = resource.Get(t.Context(), r, resource.GetInput{Caller: ana, Name: "ci"})
			if gone := refusalOf(err).code == 404; gone != row.gone {
				t.Errorf("then: %v", err)
			}
			// A deleted key authenticates nobody.
			if _, err := r.Store.GetByDigest(t.Context(), accesskey.Digest(secret)); errors.Is(err, store.ErrNotFound) != row.gone {
				t.Errorf("its digest: %v", err)
			}
		})
	}
}

// Spec 2.2 finalizers, 3: deletion is pending until the last entry is taken away.
func TestFinalizers(t *testing.T) {
	t.Parallel()
	r := open(t)
	given := grantee("ci")
	given.Finalizers = []string{"example.com/a", "example.com/b"}
	created := create(t, r, ana, given)

	remove := func(dryRun bool) *key {
		t.Helper()
		answer, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci", DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		object, ok := answer.(*key)
		if !ok {
			t.Fatalf("answered %+v", answer)
		}
		return object
	}
	if dry := remove(true); dry.DeletionTimestamp == nil {
		t.Errorf("a dry run answers %+v", dry)
	}
	if stored := get(t, r, "ci"); stored.DeletionTimestamp != nil || stored.ResourceVersion != created.ResourceVersion {
		t.Errorf("a dry run stores %+v", stored)
	}
	marked := remove(false)
	if !marked.DeletionTimestamp.Time.Equal(now.Truncate(time.Second)) || *marked.DeletionGracePeriodSeconds != 0 || marked.Generation != 2 {
		t.Errorf("marked with %+v", marked.ObjectMeta)
	}
	if again := remove(false); again.ResourceVersion != marked.ResourceVersion || again.Generation != 2 {
		t.Errorf("asked for again: %+v", again.ObjectMeta)
	}

	// Entries can only be removed, in any order, and only the server sets the mark.
	next := get(t, r, "ci")
	next.Finalizers = append(next.Finalizers, "example.com/c")
	_, err := update(t, r, next)
	expect(t, err, invalid("metadata.finalizers"))
	next = get(t, r, "ci")
	next.DeletionTimestamp, next.DeletionGracePeriodSeconds, next.Finalizers = nil, nil, []string{"example.com/b"}
	if next, err = update(t, r, next); err != nil {
		t.Fatal(err)
	}
	if next.DeletionTimestamp == nil || next.DeletionGracePeriodSeconds == nil {
		t.Errorf("the mark was taken away: %+v", next.ObjectMeta)
	}
	next, err = patch(t, r, "ci", resource.MergePatch, `{"metadata":{"deletionTimestamp":"2099-01-01T00:00:00Z","deletionGracePeriodSeconds":null}}`)
	if err != nil || !next.DeletionTimestamp.Equal(marked.DeletionTimestamp) || *next.DeletionGracePeriodSeconds != 0 {
		t.Errorf("the mark was changed: %+v, %v", next, err)
	}
	written, err := resource.Patch(t.Context(), r, resource.PatchInput{
		Caller: ana, Name: "ci", Type: resource.JSONPatch, Patch: []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), DryRun: true,
	})
	if err != nil || len(written.Object.Finalizers) != 0 {
		t.Errorf("a dry run of the last removal: %+v, %v", written.Object, err)
	}
	if last := get(t, r, "ci"); len(last.Finalizers) != 1 {
		t.Errorf("a dry run stores %+v", last)
	}
	if _, err := patch(t, r, "ci", resource.JSONPatch, `[{"op":"remove","path":"/metadata/finalizers/0"}]`); err != nil {
		t.Fatal(err)
	}
	_, err = resource.Get(t.Context(), r, resource.GetInput{Caller: ana, Name: "ci"})
	expect(t, err, notFound)
	events, err := r.Store.Events(t.Context(), store.Beginning, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	if last := events[len(events)-1]; last.Type != store.Deleted {
		t.Errorf("the last event is %+v", last)
	}
}

// racing lets another writer write before a removal, a number of times.
type racing struct {
	store.Store
	times int
}

func (r *racing) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	if r.times > 0 {
		r.times--
		record, err := r.Get(ctx, name)
		if err != nil {
			return 0, err
		}
		if _, err := r.Update(ctx, record); err != nil {
			return 0, err
		}
	}
	return r.Store.Delete(ctx, name, revision)
}

func TestDeleteWhileOthersWrite(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		times int
		rv    string
		wrong refusal
	}{
		{"an unconditional one insists", 5, "", refusal{}},
		{"but not for ever", 1000, "", conflict},
		{"a resourceVersion is a condition", 1, "1", conflict},
	} {
		r := open(t)
		create(t, r, ana, grantee("ci"))
		r.Store = &racing{Store: r.Store, times: row.times}
		_, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci", ResourceVersion: row.rv})
		expect(t, err, row.wrong)
	}
}

// unsure is a store whose removals are done but reported as failed. It counts them.
type unsure struct {
	store.Store
	removals int
}

func (u *unsure) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	u.removals++
	if _, err := u.Store.Delete(ctx, name, revision); err != nil {
		return 0, err
	}
	return 0, store.ErrUnavailable
}

// An object that was read together with the caller is deleted without another read. If it has changed, or would be refused, it
// is read again.
func TestDeletePrefetched(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		caller identity.Caller
		// change is what happens to the object after it was prefetched.
		change func(r *registry, record store.Record) error
		// in has conditions on the object as it is after the change.
		in    func(now *key) resource.DeleteInput
		reads int
		wrong refusal
	}{
		{about: "as it was read", caller: ana},
		{about: "changed", caller: ana, reads: 1, change: func(r *registry, record store.Record) error {
			_, err := r.Store.Update(t.Context(), record)
			return err
		}},
		{about: "changed, with its present resourceVersion", caller: ana, reads: 1, change: func(r *registry, record store.Record) error {
			_, err := r.Store.Update(t.Context(), record)
			return err
		}, in: func(now *key) resource.DeleteInput { return resource.DeleteInput{ResourceVersion: now.ResourceVersion} }},
		{about: "another uid", caller: ana, reads: 1, wrong: conflict, in: func(*key) resource.DeleteInput {
			return resource.DeleteInput{UID: "x"}
		}},
		{about: "removed", caller: ana, reads: 1, wrong: notFound, change: func(r *registry, record store.Record) error {
			_, err := r.Store.Delete(t.Context(), record.Name, record.Revision)
			return err
		}},
		{about: "of somebody else", caller: ben, reads: 1, wrong: notFound},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			create(t, r, ana, grantee("ci"))
			record, err := r.Store.Get(t.Context(), "ci")
			if err != nil {
				t.Fatal(err)
			}
			if row.change != nil {
				if err := row.change(r, record); err != nil {
					t.Fatal(err)
				}
			}
			var in resource.DeleteInput
			if row.in != nil {
				in = row.in(get(t, r, "ci"))
			}
			in.Caller, in.Name, in.Prefetched = row.caller, "ci", map[string]store.Record{"ci": record}
			counted := &reading{Store: r.Store}
			r.Store = counted
			_, err = resource.Delete(t.Context(), r, in)
			expect(t, err, row.wrong)
			if counted.reads != row.reads {
				t.Errorf("%d reads, want %d", counted.reads, row.reads)
			}
		})
	}

	r := open(t)
	create(t, r, ana, grantee("ci"))
	record, err := r.Store.Get(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	state := &unsure{Store: r.Store}
	r.Store = state
	_, err = resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci", Prefetched: map[string]store.Record{"ci": record}})
	if refusalOf(err).code < 500 || state.removals != 1 {
		t.Errorf("after a removal whose outcome is not known: %v, %d removals", err, state.removals)
	}
}

// reading counts the objects that are read by name.
type reading struct {
	store.Store
	reads int
}

func (r *reading) Get(ctx context.Context, name string) (store.Record, error) {
	r.reads++
	return r.Store.Get(ctx, name)
}

// A dry run does everything but the write (Spec 4; ADR-0004).
func TestDryRun(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("ci"))
	before := revision(t, r.Store)

	created, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: grantee("new"), DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if o := created.Object; o.UID == "" || o.CreationTimestamp.IsZero() || o.ResourceVersion != "" || o.Spec.Key != "" || o.Spec.User != "ana" {
		t.Errorf("create answers %+v", o)
	}
	_, err = resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: grantee("ci"), DryRun: true})
	expect(t, err, alreadyExists)
	bad := grantee("bad")
	bad.Spec.TTLSeconds = -1
	_, err = resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: bad, DryRun: true})
	expect(t, err, invalid("spec.ttl"))

	changed := get(t, r, "ci")
	changed.Spec.Disabled = true
	updated, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: "ci", Object: changed, DryRun: true})
	if err != nil || !updated.Object.Spec.Disabled || updated.Object.Generation != 2 {
		t.Errorf("update answers %+v, %v", updated.Object, err)
	}
	patched, err := resource.Patch(t.Context(), r, resource.PatchInput{
		Caller: ana, Name: "ci", Type: resource.MergePatch, Patch: []byte(`{"spec":{"disabled":true}}`), DryRun: true,
	})
	if err != nil || !patched.Object.Spec.Disabled || patched.Object.Generation != 2 {
		t.Errorf("patch answers %+v, %v", patched.Object, err)
	}
	if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci", DryRun: true}); err != nil {
		t.Error(err)
	}
	if after := revision(t, r.Store); after != before {
		t.Errorf("revision %d after %d", after, before)
	}
}

package resource_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// An object that was read together with the caller is written without another read. What would be refused, or would write
// nothing, is read again, and so is an object that has changed since.
func TestRewritePrefetched(t *testing.T) {
	t.Parallel()
	described := func(text string) func(*registry, store.Record) error {
		return func(r *registry, _ store.Record) error {
			_, err := patch(t, r, "ci", resource.MergePatch, `{"spec":{"description":"`+text+`"}}`)
			return err
		}
	}
	const (
		one   = `{"spec":{"description":"one"}}`
		apply = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"ci"},"spec":{"description":"one"}}`
	)
	for _, row := range []struct {
		about string
		in    resource.PatchInput
		// change is what happens to the object after it was prefetched.
		change func(*registry, store.Record) error
		reads  int
		wrong  refusal
		// description is that of the object after the request; empty: the object does not exist, or has none.
		description string
	}{
		{about: "a merge patch", in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(one)}, description: "one"},
		{about: "an apply", in: resource.PatchInput{Type: resource.ApplyPatch, Patch: []byte(apply)}, description: "one"},
		{about: "a dry run", in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(one), DryRun: true}, reads: 1},
		{
			about: "nothing to write", in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(`{"metadata":{"labels":null}}`)},
			reads: 1,
		},
		{
			about: "nothing to write when it was read, but now",
			in:    resource.PatchInput{Type: resource.MergePatch, Patch: []byte(`{"spec":{"description":""}}`)}, change: described("two"), reads: 2,
		},
		{
			about: "changed", in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(one)}, change: described("two"), reads: 1,
			description: "one",
		},
		{
			about: "a test of the present value", change: described("two"), reads: 2, description: "one",
			in: resource.PatchInput{Type: resource.JSONPatch, Patch: []byte(`[{"op":"test","path":"/spec/description","value":"two"},` +
				`{"op":"replace","path":"/spec/description","value":"one"}]`)},
		},
		{
			about: "the resourceVersion that was read", change: described("two"), reads: 1, wrong: conflict, description: "two",
			in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(`{"metadata":{"resourceVersion":"2"},"spec":{"description":"one"}}`)},
		},
		{
			about: "the present resourceVersion", change: described("two"), reads: 2, description: "one",
			in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(`{"metadata":{"resourceVersion":"3"},"spec":{"description":"one"}}`)},
		},
		{
			about: "refused", in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(`{"spec":{"ttl":-1}}`)}, reads: 1,
			wrong: invalid("spec.ttl"),
		},
		{
			about: "the key of another user", in: resource.PatchInput{Caller: ben, Type: resource.MergePatch, Patch: []byte(one)}, reads: 1,
			wrong: notFound,
		},
		{
			about: "removed", in: resource.PatchInput{Type: resource.MergePatch, Patch: []byte(one)}, wrong: notFound,
			change: func(r *registry, record store.Record) error {
				_, err := r.Store.Delete(t.Context(), record.Name, record.Revision)
				return err
			},
		},
		{
			about: "removed before an apply", in: resource.PatchInput{Type: resource.ApplyPatch, Patch: []byte(apply)}, description: "one",
			change: func(r *registry, record store.Record) error {
				_, err := r.Store.Delete(t.Context(), record.Name, record.Revision)
				return err
			},
		},
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
			in := row.in
			if in.Caller.Owner == (identity.Owner{}) {
				in.Caller = ana
			}
			in.Name, in.Manager, in.Prefetched = "ci", "me", map[string]store.Record{"ci": record}
			counted := &reading{Store: r.Store}
			r.Store = counted
			_, err = resource.Patch(t.Context(), r, in)
			expect(t, err, row.wrong)
			if counted.reads != row.reads {
				t.Errorf("%d reads, want %d", counted.reads, row.reads)
			}
			found, err := counted.Store.Get(t.Context(), "ci")
			if err != nil {
				if row.wrong.code != notFound.code {
					t.Error(err)
				}
				return
			}
			object, err := r.Decode(found)
			if err != nil || object.Spec.Description != row.description {
				t.Errorf("%+v, %v", object, err)
			}
		})
	}
}

// An update of an object that was read together with the caller needs no other read, and one whose outcome is not known is not
// repeated. The caller's own key is read again, because its use was noted after it was read.
func TestUpdatePrefetched(t *testing.T) {
	t.Parallel()
	r := open(t)
	made := create(t, r, ana, grantee("ci"))
	record, err := r.Store.Get(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	prefetched := map[string]store.Record{"ci": record}
	counted := &reading{Store: r.Store}
	r.Store = counted
	made.Spec.Description = "x"
	result, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: "ci", Object: made, Prefetched: prefetched})
	if err != nil || counted.reads != 0 || result.Object.Spec.Description != "x" {
		t.Errorf("%+v, %v, %d reads", result.Object, err, counted.reads)
	}

	caller := ana
	caller.Key = "ci"
	if record, err = r.Store.Get(t.Context(), "ci"); err != nil {
		t.Fatal(err)
	}
	used := now.Add(-time.Minute).UTC().Truncate(time.Second)
	if err := r.Store.Touch(t.Context(), record, used, time.Time{}); err != nil {
		t.Fatal(err)
	}
	prefetched["ci"] = record
	result, err = resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: caller, Name: "ci", Object: grantee("ci"), Prefetched: prefetched})
	if err != nil || result.Object.Status.LastActivity == nil || !result.Object.Status.LastActivity.Time.Equal(used) {
		t.Errorf("the caller's own key: %+v, %v", result.Object, err)
	}

	if record, err = r.Store.Get(t.Context(), "ci"); err != nil {
		t.Fatal(err)
	}
	prefetched["ci"] = record
	made.ResourceVersion = ""
	state := &undecided{Store: r.Store}
	r.Store = state
	_, err = resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: "ci", Object: made, Prefetched: prefetched})
	if refusalOf(err).code < 500 || state.writes != 1 {
		t.Errorf("after a write whose outcome is not known: %v, %d writes", err, state.writes)
	}
}

// undecided is a store whose updates are done but reported as failed. It counts them.
type undecided struct {
	store.Store
	writes int
}

func (u *undecided) Update(ctx context.Context, record store.Record) (int64, error) {
	u.writes++
	if _, err := u.Store.Update(ctx, record); err != nil {
		return 0, err
	}
	return 0, store.ErrUnavailable
}

// Only names that an object can have are read: a name is never the part of a path to an object in a namespace.
func TestRef(t *testing.T) {
	t.Parallel()
	global := &resource.Definition[*key]{Resource: model.SchemeGroupVersion.WithResource("keys")}
	namespaced := &resource.Definition[*key]{Resource: model.SchemeGroupVersion.WithResource("spacedkeys"), Namespaced: true}
	for _, row := range []struct {
		definition            *resource.Definition[*key]
		namespace, name, want string
	}{
		{global, "", "ci", "ci"},
		{global, "", "", ""},
		{global, "", "a/ci", ""},
		{global, "", "CI", ""},
		{global, "", strings.Repeat("a", 254), ""},
		{namespaced, "a", "ci", "a/ci"},
		{namespaced, "", "ci", ""},
		{namespaced, "", "a/ci", ""},
		{namespaced, "a/b", "ci", ""},
		{namespaced, "a", "b/ci", ""},
		{namespaced, "a.b", "ci", ""},
	} {
		want := store.Ref{}
		if row.want != "" {
			want = store.Ref{Resource: row.definition.Resource.Resource, Name: row.want}
		}
		if got := row.definition.Ref(row.namespace, row.name); got != want {
			t.Errorf("%q in %q: %+v, want %+v", row.name, row.namespace, got, want)
		}
	}
}

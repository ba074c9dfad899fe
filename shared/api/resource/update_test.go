package resource_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

func TestUpdate(t *testing.T) {
	t.Parallel()
	hour := metav1.Time{Time: now.Add(time.Hour)}
	for _, row := range []struct {
		about string
		// change turns the object as read into the one that is put.
		change     func(*key)
		wrong      refusal
		generation int64
		written    bool
	}{
		{"a changed spec is a new generation (Spec 2.2 generation)", func(k *key) { k.Spec.Description = "x" }, refusal{}, 2, true},
		{"changed metadata is not", func(k *key) { k.Labels = map[string]string{"a": "b"} }, refusal{}, 1, true},
		{"nothing changed writes nothing", func(*key) {}, refusal{}, 1, false},
		{"a status is ignored", func(k *key) { k.Status.LastActivity = &hour }, refusal{}, 1, false},
		{"without a resourceVersion it is unconditional", func(k *key) { k.ResourceVersion, k.Spec.Disabled = "", true }, refusal{}, 2, true},
		{"with resourceVersion 0, too", func(k *key) { k.ResourceVersion, k.Spec.Disabled = "0", true }, refusal{}, 2, true},
		{"a stale resourceVersion (Spec 2.2 resourceVersion)", func(k *key) { k.ResourceVersion = "2" }, conflict, 1, false},
		{"a resourceVersion that is no number", func(k *key) { k.ResourceVersion = "x" }, conflict, 1, false},
		{"another uid (Spec 2.2 uid)", func(k *key) { k.UID = "other" }, conflict, 1, false},
		{"without a uid", func(k *key) { k.UID = "" }, refusal{}, 1, false},
		{"another name (Spec 2.2 name)", func(k *key) { k.Name = "other" }, badFields("metadata.name"), 1, false},
		{"without a name", func(k *key) { k.Name = "" }, refusal{}, 1, false},
		{"another namespace (Spec 2.2 namespace)", func(k *key) { k.Namespace = "p-a" }, badFields("metadata.namespace"), 1, false},
		{"another creationTimestamp (Spec 2.2)", func(k *key) { k.CreationTimestamp = hour }, invalid("metadata.creationTimestamp"), 1, false},
		{"without a creationTimestamp", func(k *key) { k.CreationTimestamp = metav1.Time{} }, refusal{}, 1, false},
		{"generation is the server's", func(k *key) { k.Generation = 99 }, refusal{}, 1, false},
		{"deletionTimestamp is not the client's to set (Spec 2.2)", func(k *key) { k.DeletionTimestamp = &hour },
			invalid("metadata.deletionTimestamp"), 1, false},
		{"nor its grace period", func(k *key) { k.DeletionGracePeriodSeconds = new(int64) },
			invalid("metadata.deletionGracePeriodSeconds"), 1, false},
		{"selfLink is the server's, and managedFields that cannot be read say nothing", func(k *key) {
			k.SelfLink, k.ManagedFields = "/x", []metav1.ManagedFieldsEntry{{Manager: "me", Operation: "Update"}}
		}, refusal{}, 1, false},
		{"spec.key left out is kept", func(k *key) { k.Spec.Key = "" }, refusal{}, 1, false},
		{"spec.key repeated is kept", func(k *key) { k.Spec.Key = secret }, refusal{}, 1, false},
		{"another spec.key", func(k *key) { k.Spec.Key = strings.Repeat("z", 40) }, invalid("spec.key"), 1, false},
		{"all that is wrong at once", func(k *key) {
			k.Labels, k.CreationTimestamp, k.Spec.TTLSeconds = map[string]string{"a": "not ok"}, hour, -1
		}, invalid("metadata.labels", "metadata.creationTimestamp", "spec.ttl"), 1, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			create(t, r, ana, grantee("another"))
			given := grantee("ci")
			given.Spec.Key = secret
			old := create(t, r, ana, given)
			put := old.DeepCopy()
			row.change(put)
			result, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: "ci", Object: put})
			expect(t, err, row.wrong)
			if err == nil && result.Object.Spec.Key != "" {
				t.Error("the answer shows the key")
			}
			got := get(t, r, "ci")
			if err == nil && fmt.Sprint(result.Object) != fmt.Sprint(got) {
				t.Errorf("answered\n%+v\nstored\n%+v", result.Object, got)
			}
			if (got.ResourceVersion != old.ResourceVersion) != row.written {
				t.Errorf("resourceVersion %s after %s, want a write: %v", got.ResourceVersion, old.ResourceVersion, row.written)
			}
			if got.Generation != row.generation {
				t.Errorf("generation %d, want %d", got.Generation, row.generation)
			}
			if got.UID != old.UID || !got.CreationTimestamp.Equal(&old.CreationTimestamp) || got.DeletionTimestamp != nil ||
				got.SelfLink != "" || len(got.ManagedFields) != 1 || got.ManagedFields[0].Manager != "unknown" {
				t.Errorf("the server's metadata has changed: %+v", got.ObjectMeta)
			}
			if record, err := r.Store.Get(t.Context(), "ci"); err != nil || strings.Contains(string(record.Object), secret) {
				t.Errorf("the key is in the state (%v)", err)
			}
		})
	}
}

const secret = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"

func TestAbsentAndForeignNamesAreOne(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ben, grantee("ben-s"))
	for _, name := range []string{"absent", "ben-s", "Not A Name", "a/b", ""} {
		object := grantee("")
		_, getErr := resource.Get(t.Context(), r, resource.GetInput{Caller: ana, Name: name})
		_, updateErr := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: name, Object: object})
		_, patchErr := resource.Patch(t.Context(), r, resource.PatchInput{Caller: ana, Name: name, Type: resource.MergePatch, Patch: []byte(`{}`)})
		_, deleteErr := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: name})
		for verb, err := range map[string]error{"get": getErr, "update": updateErr, "patch": patchErr, "delete": deleteErr} {
			if got := refusalOf(err); got.code != 404 || got.reason != metav1.StatusReasonNotFound {
				t.Errorf("%s of %q: %v", verb, name, err)
			}
			want, have := refusalOf(getErr), refusalOf(err)
			if want.code != have.code || apierrors.ReasonForError(getErr) != apierrors.ReasonForError(err) {
				t.Errorf("%s of %q tells more than get: %v", verb, name, err)
			}
		}
	}
	if object := get(t, r, "ben-s"); object.Generation != 1 {
		t.Errorf("a stranger has changed %+v", object)
	}
}

// Promise: two writers never lose an update of each other.
func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	const writers, increments = 16, 8
	r := open(t)
	create(t, r, ana, grantee("ci"))
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for done := 0; done < increments; {
				object, err := resource.Get(t.Context(), r, resource.GetInput{Caller: admin, Name: "ci"})
				if err != nil {
					t.Error(err)
					return
				}
				object.Spec.TTLSeconds++
				_, err = resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: admin, Name: "ci", Object: object})
				switch {
				case err == nil:
					done++
				case !apierrors.IsConflict(err):
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	got := get(t, r, "ci")
	if want := int64(writers * increments); got.Spec.TTLSeconds != want || got.Generation != want+1 {
		t.Errorf("ttl %d and generation %d after %d increments", got.Spec.TTLSeconds, got.Generation, want)
	}
}

// A patch without a resourceVersion is applied again if others write in between (ADR-0004).
func TestConcurrentPatches(t *testing.T) {
	t.Parallel()
	const writers = 16
	r := open(t)
	create(t, r, ana, grantee("ci"))
	var wait sync.WaitGroup
	for i := range writers {
		wait.Go(func() {
			if _, err := patch(t, r, "ci", resource.MergePatch, fmt.Sprintf(`{"metadata":{"labels":{"w%d":"x"}}}`, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := get(t, r, "ci"); len(got.Labels) != writers {
		t.Errorf("%d labels of %d", len(got.Labels), writers)
	}
}

// busy is a state in which another writer is always faster.
type busy struct {
	store.Store
	attempts int
}

func (b *busy) Update(context.Context, store.Record) (int64, error) {
	b.attempts++
	return 0, store.ErrConflict
}

func TestUnconditionalWritesEnd(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("ci"))
	state := &busy{Store: r.Store}
	r.Store = state
	_, err := patch(t, r, "ci", resource.MergePatch, `{"spec":{"disabled":true}}`)
	expect(t, err, conflict)
	if state.attempts < 16 {
		t.Errorf("gave up after %d attempts", state.attempts)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = resource.Patch(ctx, newRegistry(impatient{state}, seeded(1)),
		resource.PatchInput{Caller: admin, Name: "ci", Type: resource.MergePatch, Patch: []byte(`{"spec":{"disabled":true}}`)})
	expect(t, err, refusal{code: 504, reason: metav1.StatusReasonTimeout})
}

// impatient reads even after the end of the request, so that only the write fails.
type impatient struct{ *busy }

func (i impatient) Get(ctx context.Context, name string) (store.Record, error) {
	return i.busy.Get(context.WithoutCancel(ctx), name)
}

// outOfReach is a state that cannot be reached.
type outOfReach struct{ store.Store }

func (outOfReach) Get(context.Context, string) (store.Record, error) {
	return store.Record{}, store.ErrUnavailable
}

func (outOfReach) Create(context.Context, store.Record) (int64, error) {
	return 0, store.ErrUnavailable
}

func (outOfReach) List(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, store.ErrUnavailable
}

func TestStateOutOfReach(t *testing.T) {
	t.Parallel()
	r := newRegistry(outOfReach{}, seeded(1))
	_, createErr := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: grantee("ci")})
	_, dryErr := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: grantee("ci"), DryRun: true})
	_, getErr := resource.Get(t.Context(), r, resource.GetInput{Caller: ana, Name: "ci"})
	_, updateErr := update(t, r, grantee("ci"))
	_, patchErr := patch(t, r, "ci", resource.MergePatch, `{}`)
	_, deleteErr := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci"})
	_, listErr := list(t, r, resource.ListInput{})
	for verb, err := range map[string]error{
		"create": createErr, "dry run": dryErr, "get": getErr, "update": updateErr, "patch": patchErr, "delete": deleteErr, "list": listErr,
	} {
		if got := refusalOf(err); got.code != 503 || got.reason != metav1.StatusReasonServiceUnavailable {
			t.Errorf("%s: %v", verb, err)
		}
		if seconds, again := apierrors.SuggestsClientDelay(err); !again || seconds < 1 {
			t.Errorf("%s does not say when to come again", verb)
		}
	}
}

// Functions are deployed one by one: an older one keeps what a newer one wrote (ADR-0002).
func TestUnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	const stored = `{
		"kind": "OwnedAccessKey", "apiVersion": "management.platform.sh/v1", "later": {"a": [1, 12345678901234567890]},
		"metadata": {"name": "ci", "uid": "u", "generation": 1, "creationTimestamp": "2027-03-04T05:06:07Z", "shard": "x",
			"ownerReferences": [{"apiVersion": "v1", "kind": "T", "name": "o", "uid": "1", "weight": 3}]},
		"spec": {"user": "ana", "type": "User", "quota": 1.50, "groups": ["one", "two"],
			"scope": {"virtualClusters": null, "tags": ["t"], "projects": [
				{"project": "a", "tier": "gold"}, {"project": "b", "tier": "tin"}, {"project": "c", "tier": "lead"}]}},
		"status": {}
	}`
	for _, row := range []struct {
		about  string
		change func(*key)
		// want changes the stored object as expected.
		want func(map[string]any)
	}{
		{"another field of spec", func(k *key) { k.Spec.DisplayName = "n" }, func(o map[string]any) {
			at(o, "spec")["displayName"] = "n"
			at(o, "metadata")["generation"] = json.Number("2")
		}},
		{"a label", func(k *key) { k.Labels = map[string]string{"a": "b"} }, func(o map[string]any) {
			at(o, "metadata")["labels"] = map[string]any{"a": "b"}
		}},
		{"a field set to its zero value", func(k *key) { k.Spec.User, k.Spec.Team = "", "core" }, func(o map[string]any) {
			delete(at(o, "spec"), "user")
			at(o, "spec")["team"] = "core"
			at(o, "metadata")["generation"] = json.Number("2")
		}},
		{"an entry added before others", func(k *key) {
			k.Spec.Scope.Projects = append([]model.ScopeProject{{Project: "z"}}, k.Spec.Scope.Projects...)
		}, func(o map[string]any) {
			scope := at(o, "spec", "scope")
			scope["projects"] = append([]any{map[string]any{"project": "z"}}, scope["projects"].([]any)...)
			at(o, "metadata")["generation"] = json.Number("2")
		}},
		{"an entry removed", func(k *key) { k.Spec.Scope.Projects = k.Spec.Scope.Projects[1:] }, func(o map[string]any) {
			scope := at(o, "spec", "scope")
			scope["projects"] = scope["projects"].([]any)[1:]
			at(o, "metadata")["generation"] = json.Number("2")
		}},
		{"a list emptied", func(k *key) { k.Spec.Scope.Projects = nil }, func(o map[string]any) {
			delete(at(o, "spec", "scope"), "projects")
			at(o, "metadata")["generation"] = json.Number("2")
		}},
		{"an object removed takes its fields along", func(k *key) { k.Spec.Scope = nil }, func(o map[string]any) {
			delete(at(o, "spec"), "scope")
			at(o, "metadata")["generation"] = json.Number("2")
		}},
		{"a list of words", func(k *key) { k.Spec.Groups = []string{"two"} }, func(o map[string]any) {
			at(o, "spec")["groups"] = []any{"two"}
			at(o, "metadata")["generation"] = json.Number("2")
		}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			want := decode(t, []byte(stored))
			row.want(want)
			for _, verb := range []string{"PUT", "merge patch"} {
				r := open(t)
				if _, err := r.Store.Create(t.Context(), store.Record{
					Name: "ci", Owner: "user:ana", Digest: "d", Created: now, Object: []byte(stored),
				}); err != nil {
					t.Fatal(err)
				}
				object := get(t, r, "ci")
				before := object.DeepCopy()
				row.change(object)
				var err error
				if verb == "PUT" {
					_, err = update(t, r, object)
				} else {
					_, err = patch(t, r, "ci", resource.MergePatch, mergePatch(t, before, object))
				}
				if err != nil {
					t.Fatalf("%s: %v", verb, err)
				}
				record, err := r.Store.Get(t.Context(), "ci")
				if err != nil {
					t.Fatal(err)
				}
				if got := decode(t, record.Object); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s stored\n%v\nwant\n%v", verb, got, want)
				}
			}
		})
	}
}

func at(object map[string]any, path ...string) map[string]any {
	for _, step := range path {
		object = object[step].(map[string]any)
	}
	return object
}

// decode reads an object and keeps its numbers as written.
func decode(t testing.TB, text []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	return object
}

// A requested deletion is a write as well.
func TestUnknownFieldsSurviveDeletion(t *testing.T) {
	t.Parallel()
	r := open(t)
	if _, err := r.Store.Create(t.Context(), store.Record{Name: "ci", Owner: "user:ana", Created: now, Object: []byte(
		`{"metadata":{"name":"ci","finalizers":["example.com/a"],"shard":"x"},"spec":{"user":"ana","type":"User","quota":1}}`,
	)}); err != nil {
		t.Fatal(err)
	}
	if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci"}); err != nil {
		t.Fatal(err)
	}
	record, err := r.Store.Get(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	got := decode(t, record.Object)
	if at(got, "metadata")["shard"] != "x" || at(got, "spec")["quota"] != json.Number("1") || at(got, "metadata")["deletionTimestamp"] == nil {
		t.Errorf("stored %s", record.Object)
	}
}

// A record that this build cannot read is refused and left alone (ADR-0002).
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		state func(testing.TB) store.Store
	}{
		{"a format of the future", func(t testing.TB) store.Store { return future{newStore(t)} }},
		{"an object that is no object", func(t testing.TB) store.Store {
			state := newStore(t)
			if _, err := state.Create(t.Context(), store.Record{Name: "ci", Owner: "user:ana", Created: now, Object: []byte(`[1]`)}); err != nil {
				t.Fatal(err)
			}
			return state
		}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			state := row.state(t)
			r := newRegistry(state, seeded(1))
			before := revision(t, state)
			_, getErr := resource.Get(t.Context(), r, resource.GetInput{Caller: admin, Name: "ci"})
			_, updateErr := update(t, r, grantee("ci"))
			_, patchErr := patch(t, r, "ci", resource.MergePatch, `{}`)
			_, deleteErr := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: admin, Name: "ci"})
			for verb, err := range map[string]error{"get": getErr, "update": updateErr, "patch": patchErr, "delete": deleteErr} {
				if got := refusalOf(err); got.code != 500 {
					t.Errorf("%s: %v", verb, err)
				}
			}
			if after := revision(t, state); after != before {
				t.Errorf("revision %d after %d: the record was rewritten", after, before)
			}
		})
	}
}

// future is a state in which a newer build has written.
type future struct{ store.Store }

func (future) Get(context.Context, string) (store.Record, error) {
	return store.Record{}, fmt.Errorf("reading record %q: %w", "ci", store.ErrFormat)
}

// mergePatch is the patch that kubectl would send for a change.
func mergePatch(t testing.TB, before, after *key) string {
	t.Helper()
	var sides [2]map[string]any
	for i, object := range []*key{before, after} {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = decode(t, text)
	}
	text, err := json.Marshal(difference(sides[0], sides[1]))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func difference(before, after map[string]any) map[string]any {
	changes := map[string]any{}
	for name := range before {
		if _, kept := after[name]; !kept {
			changes[name] = nil
		}
	}
	for name, value := range after {
		was, now := before[name], value
		wasMap, ok1 := was.(map[string]any)
		nowMap, ok2 := now.(map[string]any)
		if ok1 && ok2 {
			if inner := difference(wasMap, nowMap); len(inner) > 0 {
				changes[name] = inner
			}
		} else if fmt.Sprint(was) != fmt.Sprint(now) {
			changes[name] = now
		}
	}
	return changes
}

package resource_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

// sized are the parts of metadata that have a bound. Set gives an object a part of a size.
var sized = []struct {
	field string
	limit int
	set   func(meta *metav1.ObjectMeta, size int)
}{
	{"metadata.annotations", limits.AnnotationBytes, func(meta *metav1.ObjectMeta, size int) {
		meta.Annotations = map[string]string{"a": strings.Repeat("x", size-len("a"))}
	}},
	{"metadata.labels", limits.Labels, func(meta *metav1.ObjectMeta, size int) {
		meta.Labels = map[string]string{}
		for i := range size {
			meta.Labels[fmt.Sprint("l", i)] = ""
		}
	}},
	{"metadata.finalizers", limits.Finalizers, func(meta *metav1.ObjectMeta, size int) {
		meta.Finalizers = nil
		for i := range size {
			meta.Finalizers = append(meta.Finalizers, fmt.Sprint("example.com/f", i))
		}
	}},
	{"metadata.ownerReferences", limits.Owners, func(meta *metav1.ObjectMeta, size int) {
		meta.OwnerReferences = nil
		for i := range size {
			meta.OwnerReferences = append(meta.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "x", UID: types.UID(fmt.Sprint(i))})
		}
	}},
}

// Metadata is bounded in every write: one below, at and one above. What is above the bound is refused before anything is
// written, with the field, the limit and what was found. Source: ADR-0020.
func TestMetadataBounds(t *testing.T) {
	t.Parallel()
	for _, part := range sized {
		t.Run(part.field, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			create(t, r, ana, grantee("ci"))
			for _, over := range []int{-1, 0, 1, part.limit} {
				object := grantee(fmt.Sprint("new", over))
				part.set(&object.ObjectMeta, part.limit+over)
				text, err := json.Marshal(map[string]any{"metadata": map[string]any{
					strings.TrimPrefix(part.field, "metadata."): fieldOf(t, object, strings.TrimPrefix(part.field, "metadata.")),
				}})
				if err != nil {
					t.Fatal(err)
				}
				replacement := get(t, r, "ci")
				part.set(&replacement.ObjectMeta, part.limit+over)
				before := revision(t, r.Store)
				for verb, write := range map[string]func() error{
					"create": func() error {
						_, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: object, DryRun: true})
						return err
					},
					"update": func() error {
						_, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: "ci", Object: replacement, DryRun: true})
						return err
					},
					"merge patch": func() error {
						_, err := resource.Patch(t.Context(), r, resource.PatchInput{Caller: ana, Name: "ci", Type: mergeP, Patch: text, DryRun: true})
						return err
					},
					"apply": func() error {
						head := `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey",`
						_, err := resource.Patch(t.Context(), r, resource.PatchInput{
							Caller: ana, Name: "ci", Type: resource.ApplyPatch, Manager: "m", DryRun: true,
							Patch: []byte(strings.Replace(string(text), "{", head, 1)),
						})
						return err
					},
				} {
					err := write()
					if over <= 0 {
						expect(t, err, refusal{})
						continue
					}
					expect(t, err, invalid(part.field))
					if text := apierror.From(err).Error(); !strings.Contains(text, fmt.Sprint(part.limit)) || !strings.Contains(text, fmt.Sprint(part.limit+over)) {
						t.Errorf("%s: %s", verb, text)
					}
				}
				if revision(t, r.Store) != before {
					t.Error("a refused request has written something")
				}
			}
		})
	}
}

// fieldOf returns a field of the metadata of an object as JSON has it.
func fieldOf(t *testing.T, object *key, name string) any {
	t.Helper()
	text, err := json.Marshal(object.ObjectMeta)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields[name]
}

// An object that was stored before a bound existed can be read, changed elsewhere, shrunk and deleted, and cannot grow.
func TestMetadataBoundsOfOldObjects(t *testing.T) {
	t.Parallel()
	for _, part := range sized[1:] {
		t.Run(part.field, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			old := grantee("ci")
			old.UID, old.Spec = "1", model.OwnedAccessKeySpec{User: "ana", Type: model.AccessKeyTypeUser}
			part.set(&old.ObjectMeta, 2*part.limit)
			text, err := json.Marshal(old)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Store.Create(t.Context(), store.Record{Name: "ci", Owner: "user:ana", Digest: "d", Created: now, Object: text}); err != nil {
				t.Fatal(err)
			}
			resize := func(size int) error {
				object := get(t, r, "ci")
				object.Spec.Description += "."
				part.set(&object.ObjectMeta, size)
				_, err := update(t, r, object)
				return err
			}
			expect(t, resize(2*part.limit), refusal{})
			expect(t, resize(2*part.limit+1), invalid(part.field))
			expect(t, resize(part.limit+2), refusal{})
			expect(t, resize(part.limit+3), invalid(part.field))
			expect(t, resize(1), refusal{})
			expect(t, resize(part.limit+1), invalid(part.field))
			expect(t, resize(0), refusal{})
			_, err = resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci"})
			expect(t, err, refusal{})
		})
	}
}

// Managers that update are folded into one beyond ten entries, as in Kubernetes. Managers that apply stay, up to a bound.
func TestManagerBound(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("ci"))
	update := func(i int) error {
		_, err := resource.Patch(t.Context(), r, resource.PatchInput{
			Caller: ana, Name: "ci", Type: mergeP, Manager: fmt.Sprint("u", i), Patch: fmt.Appendf(nil, `{"metadata":{"labels":{"u%d":"x"}}}`, i),
		})
		return err
	}
	for i := range 15 {
		expect(t, update(i), refusal{})
	}
	const folded = 10
	if got := len(get(t, r, "ci").ManagedFields); got != folded {
		t.Fatalf("%d entries", got)
	}
	applyAs := func(i int) error {
		_, err := resource.Patch(t.Context(), r, resource.PatchInput{
			Caller: ana, Name: "ci", Type: resource.ApplyPatch, Manager: fmt.Sprint("a", i),
			Patch: fmt.Appendf(nil, `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"labels":{"a%d":"x"}}}`, i),
		})
		return err
	}
	for i := range limits.Managers - folded {
		expect(t, applyAs(i), refusal{})
	}
	before := get(t, r, "ci")
	expect(t, applyAs(limits.Managers), invalid("metadata.managedFields"))
	if got := get(t, r, "ci"); len(got.ManagedFields) != limits.Managers || got.ResourceVersion != before.ResourceVersion {
		t.Errorf("%d entries, version %s after %s", len(got.ManagedFields), got.ResourceVersion, before.ResourceVersion)
	}
	expect(t, applyAs(0), refusal{})
	entries := make([]metav1.ManagedFieldsEntry, limits.Managers+1)
	before.ManagedFields = entries
	_, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: "ci", Object: before})
	expect(t, err, invalid("metadata.managedFields"))
}

// An object must fit into the body of an update with what the server adds.
func TestObjectBound(t *testing.T) {
	t.Parallel()
	r := open(t)
	object := grantee("ci")
	object.Spec.Scope = &model.Scope{}
	// Texts of a scope are not bounded by themselves.
	for len(object.Spec.Scope.Rules) < 100 {
		object.Spec.Scope.Rules = append(object.Spec.Scope.Rules, model.ScopeRule{Verbs: []string{fmt.Sprint(len(object.Spec.Scope.Rules), strings.Repeat("v", limits.ObjectBytes/100))}})
	}
	_, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: object.DeepCopy()})
	expect(t, err, refusal{code: 413, reason: metav1.StatusReasonRequestEntityTooLarge})
	object.Spec.Scope.Rules = object.Spec.Scope.Rules[:95]
	create(t, r, ana, object)
	wider := get(t, r, "ci")
	for range 20 {
		wider.Spec.Scope.Rules[0].Verbs = append(wider.Spec.Scope.Rules[0].Verbs, fmt.Sprint(len(wider.Spec.Scope.Rules[0].Verbs), strings.Repeat("w", 1<<13)))
	}
	_, err = update(t, r, wider)
	expect(t, err, refusal{code: 413, reason: metav1.StatusReasonRequestEntityTooLarge})
}

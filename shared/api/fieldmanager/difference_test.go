package fieldmanager

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"management.platform.sh/shared/model"
)

// edit changes some fields of a key.
func edit(random *rand.Rand, key *model.OwnedAccessKey) {
	text := func() string { return fmt.Sprint("x", random.IntN(3)) }
	some := func() map[string]string {
		entries := map[string]string{}
		for range random.IntN(3) {
			entries[text()] = text()
		}
		return entries
	}
	list := func() []string {
		return [][]string{nil, {}, {"a"}, {"a", "b"}, {"b", "a"}, {"a", "a"}}[random.IntN(6)]
	}
	for range random.IntN(4) {
		switch random.IntN(16) {
		case 0:
			key.Spec.DisplayName = text()
		case 1:
			key.Spec.Description = ""
		case 2:
			key.Spec.TTLSeconds = random.Int64N(3)
		case 3:
			key.Spec.Disabled = !key.Spec.Disabled
		case 4:
			key.Spec.Groups = list()
		case 5:
			key.Spec.Scope = nil
		case 6:
			key.Spec.Scope = &model.Scope{Roles: []model.ScopeRole{{Role: text(), Projects: list()}}}
		case 7:
			key.Spec.Identity = &model.AccessKeyIdentity{UserID: text(), ExtraClaims: some(), Groups: list()}
		case 8:
			key.Spec.Identity = nil
		case 9:
			key.Labels = some()
		case 10:
			key.Annotations = some()
		case 11:
			key.Finalizers = list()
		case 12:
			key.OwnerReferences = nil
			for _, uid := range list() {
				key.OwnerReferences = append(key.OwnerReferences, metav1.OwnerReference{UID: apitypes.UID("u-" + uid), Name: text(), Kind: text(), APIVersion: "v1"})
			}
		case 13:
			key.Status.DisabledByAdmin = !key.Status.DisabledByAdmin
		case 14:
			key.Generation++
			key.Spec = model.OwnedAccessKeySpec{}
		case 15:
			key.Spec.Description = text()
			key.Spec.IdentityRefresh = &metav1.Time{Time: time.Unix(random.Int64N(3), 0)}
		}
	}
}

// An update receives only what differs, and notes the same owners as the library for the whole objects. Source: ADR-0028.
func TestDifference(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	// oracle is the library on whole objects, which it validates.
	ignored := fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("spec", "key")))
	oracle, err := managedfields.NewDefaultFieldManager(m.types.converter, m.one, m.one, m.one, kind, kind.GroupVersion(), "",
		map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(kind.GroupVersion().String()): ignored})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(28, 2))
	now := time.Unix(1_800_000_000, 0)
	owned := 0
	live := &model.OwnedAccessKey{}
	live.SetGroupVersionKind(kind)
	for i := range 10_000 {
		now = now.Add(time.Duration(random.IntN(2)) * time.Second)
		if i%40 == 0 {
			live = &model.OwnedAccessKey{}
			live.SetGroupVersionKind(kind)
		}
		object := live.DeepCopy()
		edit(random, object)
		switch random.IntN(12) {
		case 0:
			object.ManagedFields = nil
		case 1:
			object.ManagedFields = []metav1.ManagedFieldsEntry{}
		case 2:
			if len(object.ManagedFields) > 1 {
				object.ManagedFields = object.ManagedFields[1:]
			}
		case 3:
			object.ManagedFields = append(object.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: "own", Operation: metav1.ManagedFieldsOperationApply, APIVersion: kind.GroupVersion().String(), FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:managedFields":{}},"f:spec":{"f:description":{},"f:scope":{"f:roles":{}},"f:ttl":{}}}`),
			})
		}
		manager := fmt.Sprint("m", random.IntN(14))
		key := object.DeepCopy()
		before := key.ManagedFields
		if before == nil {
			before = live.ManagedFields
		}
		if _, err := oracle.Update(live.DeepCopy(), key, manager); err != nil {
			t.Fatal(err)
		}
		want := onTime(key.ManagedFields, before, manager, metav1.ManagedFieldsOperationUpdate, now)
		untouched, err := json.Marshal([]any{live, object.Spec, object.Labels})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Update(live, object, manager, now); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal([]any{live, object.Spec, object.Labels}); err != nil || string(again) != string(untouched) {
			t.Fatalf("the update changed\n%s\nto\n%s (%v)", untouched, again, err)
		}
		got, err := json.Marshal(object.ManagedFields)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(expected) {
			t.Fatalf("update %d notes\n%s\nwant\n%s\nfor\n%+v\nin place of\n%+v", i, got, expected, object, live)
		}
		owned += len(object.ManagedFields)
		live = object
		if live.UID == "" {
			live.UID = "4a2f6a52-5f6e-4d51-9b0c-0e2f1d7a5b11"
		}
	}
	if owned < 10_000 {
		t.Errorf("%d entries in all: the edits are too few", owned)
	}
}

// The merge drops nothing unless the manager owns less than before. Source: ADR-0008, ADR-0028.
func TestGaveUp(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	random := rand.New(rand.NewPCG(28, 3))
	now := time.Unix(1_800_000_000, 0)
	values := []struct {
		name    string
		choices [2]any
	}{
		{"description", [2]any{"a", "b"}}, {"displayName", [2]any{"a", ""}}, {"ttl", [2]any{int64(1), int64(2)}}, {"groups", [2]any{[]any{"a"}, []any{}}},
		{"identity", [2]any{map[string]any{"userId": "a"}, map[string]any{"extraClaims": map[string]any{"a": "b"}}}},
	}
	live := empty()
	live.GetObjectKind().SetGroupVersionKind(kind)
	kept, restored := 0, 0
	for i := range 800 {
		if i%20 == 0 {
			live = &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{Parent: "x", User: "ana"}}
			live.GetObjectKind().SetGroupVersionKind(kind)
		}
		fields := map[string]any{}
		for _, each := range values {
			if random.IntN(4) == 0 {
				fields[each.name] = each.choices[random.IntN(2)]
			}
		}
		applied := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "x"}}
		if len(fields) > 0 {
			applied["spec"] = fields
		}
		manager := fmt.Sprint("m", random.IntN(2))
		merged, err := m.fields.Apply(live, &unstructured.Unstructured{Object: applied}, manager, true)
		if err != nil {
			t.Fatal(err)
		}
		want, err := m.keepUnowned(live, merged)
		if err != nil {
			t.Fatal(err)
		}
		after := merged.(*model.OwnedAccessKey)
		if !m.gaveUp(live.GetManagedFields(), after.ManagedFields, manager) {
			kept++
			if !reflect.DeepEqual(merged, want) {
				t.Fatalf("applying %v to\n%+v\ndropped something", applied, live)
			}
		} else if !reflect.DeepEqual(merged, want) {
			restored++
		}
		object := want.(*model.OwnedAccessKey)
		// The fields of the first object have no owner.
		object.ManagedFields = slices.DeleteFunc(object.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == "before-first-apply" })
		object.ManagedFields = onTime(object.ManagedFields, live.GetManagedFields(), manager, metav1.ManagedFieldsOperationApply, now)
		live = object
	}
	if kept < 100 || restored < 10 {
		t.Errorf("%d applies kept all fields, and %d lost some that nobody owns", kept, restored)
	}
}

// Stored objects may have duplicates in lists with keys, which older rules let in. What is applied may not. Source: ADR-0028.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	now := time.Unix(1_800_000_000, 0)
	live := &model.OwnedAccessKey{}
	live.SetGroupVersionKind(kind)
	live.Finalizers = []string{"example.com/a", "example.com/a"}
	live.OwnerReferences = []metav1.OwnerReference{{UID: "u", Name: "a"}, {UID: "u", Name: "b"}}
	object := live.DeepCopy()
	object.Spec.Description = "x"
	if err := m.Update(live, object, "m", now); err != nil {
		t.Errorf("an update of an object with duplicates: %v", err)
	}
	apply := func(finalizers ...any) error {
		_, err := m.Apply(live, map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "x", "finalizers": finalizers},
		}, "m", true, now)
		return err
	}
	if err := apply("example.com/b"); err != nil {
		t.Errorf("an apply to an object with duplicates: %v", err)
	}
	if err := apply("example.com/b", "example.com/b"); err == nil {
		t.Error("duplicates were applied")
	}
}

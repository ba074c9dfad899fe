package fieldmanager

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// filler fills objects with few different values, so that two objects have much in common.
func filler(seed int64) *randfill.Filler {
	words := []string{"", "a", "b", "example.com/c", "ü", `"`, "d e"}
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 2).Funcs(
		func(text *string, c randfill.Continue) { *text = words[c.Intn(len(words))] },
		func(number *int64, c randfill.Continue) { *number = c.Int63n(3) },
		func(number *int32, c randfill.Continue) { *number = c.Int31n(3) },
		func(value *model.JSON, c randfill.Continue) {
			value.Raw = []byte([]string{`{"a":1}`, `{"a":2}`, `[]`}[c.Intn(3)])
		},
		func(at *metav1.Time, c randfill.Continue) { at.Time = time.Unix(c.Int63n(3), c.Int63n(2)) },
		func(entries *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *entries = nil },
	)
}

// mix takes some of the fields of metadata and spec, and some of the fields below them, from another object.
func mix(random *rand.Rand, object, from reflect.Value, depth int) {
	for i := range object.NumField() {
		a, b := object.Field(i), from.Field(i)
		switch {
		case !a.CanSet():
		case a.Kind() == reflect.Struct && depth < 3:
			mix(random, a, b, depth+1)
		case a.Kind() == reflect.Pointer && a.Type().Elem().Kind() == reflect.Struct && !a.IsNil() && !b.IsNil() && random.IntN(3) > 0:
			mix(random, a.Elem(), b.Elem(), depth+1)
		case random.IntN(12) == 0:
			a.Set(b)
		}
	}
}

// The fast path records the same owners as the library, for all kinds but the configuration. Source: ADR-0028.
func TestFastUpdate(t *testing.T) {
	t.Parallel()
	for _, each := range []struct {
		name    string
		empty   func() resource.Object
		unowned [][]string
	}{
		{"OwnedAccessKey", func() resource.Object { return &model.OwnedAccessKey{} }, [][]string{{"status"}, {"spec", "key"}}},
		{"VirtualClusterInstance", func() resource.Object { return &model.VirtualClusterInstance{} }, [][]string{{"status", "conditions"}, {"spec", "signer", "ca"}}},
		{"User", func() resource.Object { return &model.User{} }, [][]string{{"status"}}},
		{"Team", func() resource.Object { return &model.Team{} }, [][]string{{"status"}}},
	} {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			kind := model.SchemeGroupVersion.WithKind(each.name)
			made, err := New(kind, each.empty, "", each.unowned...)
			if err != nil {
				t.Fatal(err)
			}
			m := made.(*Manager)
			ignored := fieldpath.NewSet()
			for _, path := range each.unowned {
				names := make([]any, len(path))
				for i := range path {
					names[i] = path[i]
				}
				ignored.Insert(fieldpath.MakePathOrDie(names...))
			}
			oracle, err := managedfields.NewDefaultFieldManager(m.types.converter, m.one, m.one, m.one, kind, kind.GroupVersion(), "",
				map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(kind.GroupVersion().String()): fieldpath.NewExcludeSetFilter(ignored)})
			if err != nil {
				t.Fatal(err)
			}
			random, fill := rand.New(rand.NewPCG(33, 1)), filler(33)
			now := time.Unix(1_800_000_000, 0)
			created, updated := 0, 0
			// check compares the entries of one write, and returns the written object.
			check := func(live, object resource.Object, manager string) resource.Object {
				t.Helper()
				whole := object.DeepCopyObject().(resource.Object)
				before := whole.GetManagedFields()
				if before == nil {
					before = live.GetManagedFields()
				}
				if _, err := oracle.Update(live.DeepCopyObject(), whole, manager); err != nil {
					t.Fatal(err)
				}
				want := onTime(whole.GetManagedFields(), before, manager, metav1.ManagedFieldsOperationUpdate, now)
				if entries, ok := m.fast.Update(live, object, manager); ok {
					got, expected := encoded(t, onTime(entries, before, manager, metav1.ManagedFieldsOperationUpdate, now)), encoded(t, want)
					if got != expected {
						t.Fatalf("noted is\n%s\nwant\n%s\nfor\n%s\nin place of\n%s", got, expected, encoded(t, object), encoded(t, live))
					}
					if live.GetUID() == "" {
						created++
					} else {
						updated++
					}
				}
				object.SetManagedFields(want)
				return object
			}
			rounds := 2_000
			if testing.Short() {
				rounds = 500
			}
			for round := range rounds {
				managers := [][2]string{{"a", "b"}, {"", "b"}, {`"`, ""}}[round%3]
				now = now.Add(time.Duration(random.IntN(2)) * time.Second)
				live := each.empty()
				live.GetObjectKind().SetGroupVersionKind(kind)
				object := each.empty()
				fill.Fill(object)
				object.GetObjectKind().SetGroupVersionKind(kind)
				if round%2 == 0 {
					object.SetOwnerReferences(nil)
					object.SetFinalizers(nil)
				}
				live = check(live, object, managers[0])
				live.SetUID("4a2f6a52-5f6e-4d51-9b0c-0e2f1d7a5b11")
				for range 3 {
					next, from := live.DeepCopyObject().(resource.Object), each.empty()
					fill.Fill(from)
					mix(random, reflect.ValueOf(next).Elem(), reflect.ValueOf(from).Elem(), 0)
					next.GetObjectKind().SetGroupVersionKind(kind)
					next.SetUID(live.GetUID())
					next.SetManagedFields(live.GetManagedFields())
					if random.IntN(3) == 0 {
						next.SetManagedFields(nil)
					}
					live = check(live, next, managers[random.IntN(2)])
				}
			}
			if created < rounds/20 || updated < rounds/20 {
				t.Errorf("only %d creates and %d updates took the fast path", created, updated)
			}
			t.Logf("%d creates and %d updates took the fast path", created, updated)
		})
	}
}

// The fast path of an apply merges as the library does, for all kinds but the configuration. Source: ADR-0028.
func TestFastApply(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func() resource.Object{
		"OwnedAccessKey":         func() resource.Object { return &model.OwnedAccessKey{} },
		"VirtualClusterInstance": func() resource.Object { return &model.VirtualClusterInstance{} },
		"User":                   func() resource.Object { return &model.User{} },
		"Team":                   func() resource.Object { return &model.Team{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := model.SchemeGroupVersion.WithKind(name)
			made, err := New(kind, empty, "", []string{"status"})
			if err != nil {
				t.Fatal(err)
			}
			m := made.(*Manager)
			library := *m
			library.fast = nil
			random, fill := rand.New(rand.NewPCG(33, 2)), filler(34)
			now := time.Unix(1_800_000_000, 0)
			rounds := 1_000
			if testing.Short() {
				rounds = 250
			}
			// configuration is what a manager applies: some fields of a random object, some of them empty.
			configuration := func() map[string]any {
				object := empty()
				fill.Fill(object)
				fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
				if err != nil {
					t.Fatal(err)
				}
				delete(fields, "status")
				metadata := map[string]any{"name": "x"}
				all, _ := fields["metadata"].(map[string]any)
				for _, some := range []string{"labels", "annotations", "finalizers", "generation", "uid"} {
					if value, given := all[some]; given && random.IntN(3) == 0 {
						metadata[some] = value
					}
				}
				fields["metadata"], fields["apiVersion"], fields["kind"] = metadata, kind.GroupVersion().String(), kind.Kind
				return fields
			}
			fast, refused := 0, 0
			for range rounds {
				live := empty()
				live.GetObjectKind().SetGroupVersionKind(kind)
				configurations := [2]map[string]any{configuration(), configuration()}
				for range 6 {
					now = now.Add(time.Duration(random.IntN(2)) * time.Second)
					which := random.IntN(2)
					manager, force := []string{"a", "b"}[which], random.IntN(2) == 0
					applied := runtime.DeepCopyJSON(configurations[which])
					if random.IntN(3) > 0 {
						vary(random, applied["spec"])
						vary(random, applied["metadata"].(map[string]any)["labels"])
					}
					if merged, ok := m.fast.Apply(live, runtime.DeepCopyJSON(applied), manager); ok && merged != nil {
						fast++
					}
					before := encoded(t, live)
					got, gotErr := m.Apply(live, runtime.DeepCopyJSON(applied), manager, force, now)
					want, wantErr := library.Apply(live, runtime.DeepCopyJSON(applied), manager, force, now)
					if encoded(t, live) != before {
						t.Fatalf("applying changed\n%s\nto\n%s", before, encoded(t, live))
					}
					if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
						t.Fatalf("applying\n%s\nto\n%s\nis refused with %v, want %v", encoded(t, applied), before, gotErr, wantErr)
					}
					if wantErr != nil {
						refused++
						continue
					}
					if encoded(t, got) != encoded(t, want) {
						t.Fatalf("applying\n%s\nto\n%s\nmakes\n%s\nwant\n%s", encoded(t, applied), before, encoded(t, got), encoded(t, want))
					}
					live = want.(resource.Object)
					live.SetUID("4a2f6a52-5f6e-4d51-9b0c-0e2f1d7a5b11")
				}
			}
			if fast < rounds/10 || refused < rounds/50 {
				t.Errorf("%d applies took the fast path, and %d were refused", fast, refused)
			}
			t.Logf("%d applies took the fast path, and %d were refused", fast, refused)
		})
	}
}

// vary changes some of the texts and numbers of fields.
func vary(random *rand.Rand, fields any) {
	object, _ := fields.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if random.IntN(4) > 0 {
			continue
		}
		switch value := object[name].(type) {
		case string:
			object[name] = value + "y"
		case int64:
			object[name] = value + 1
		case bool:
			object[name] = !value
		case []any:
			if len(value) > 0 {
				object[name] = value[:len(value)-1]
			}
		case map[string]any:
			vary(random, value)
		}
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

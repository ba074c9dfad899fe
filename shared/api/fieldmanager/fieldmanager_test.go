package fieldmanager

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

var kind = model.SchemeGroupVersion.WithKind("OwnedAccessKey")

func empty() resource.Object { return &model.OwnedAccessKey{} }

func newManager(t testing.TB) *Manager {
	t.Helper()
	made, err := New(kind, empty, "", []string{"status"}, []string{"spec", "key"})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*Manager)
}

// Every list has a list type, so that no merge surprises a user; every scope is one value. Source: ADR-0008.
func TestListTypes(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	types := map[string]string{}
	var walk func(path string, s *spec.Schema)
	walk = func(path string, s *spec.Schema) {
		s = m.resolve(s)
		if s.Items != nil {
			kind, _ := s.Extensions.GetString("x-kubernetes-list-type")
			if kind == "" {
				t.Errorf("%s is a list without a type", path)
			}
			types[path] = kind
			walk(path+"[]", s.Items.Schema)
		}
		for name, property := range s.Properties {
			walk(path+"."+name, &property)
		}
	}
	walk("", m.types.schemas[m.root])
	for path, want := range map[string]string{
		".metadata.finalizers": "set", ".metadata.ownerReferences": "map", ".metadata.managedFields": "atomic",
		".spec.groups": "atomic", ".spec.identity.groups": "atomic", ".spec.scope.roles": "atomic",
	} {
		if types[path] != want {
			t.Errorf("%s is %q, want %q", path, types[path], want)
		}
	}
	scope := m.resolve(new(m.resolve(new(m.types.schemas[m.root].Properties["spec"])).Properties["scope"]))
	if kind, _ := scope.Extensions.GetString("x-kubernetes-map-type"); kind != "atomic" {
		t.Errorf("a scope is %q", kind)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	for _, row := range [][2]string{
		{`{"apiVersion":"a","kind":"b","metadata":{"labels":{"any":"x"},"annotations":{"any":"x"},"finalizers":["x"]}}`, ""},
		{`{"spec":{"ttl":1,"TTL":2,"displayname":"x"},"extra":{"a":1}}`, `{"spec":{"ttl":1}}`},
		{`{"spec":{"scope":{"roles":[{"role":"a","rolle":"b","projects":["c"]}],"x":1}}}`, `{"spec":{"scope":{"roles":[{"role":"a","projects":["c"]}]}}}`},
		{`{"spec":{"identity":{"extraClaims":{"any":"x"},"y":1}},"metadata":{"ownerReferences":[{"uid":"1","z":1}]}}`,
			`{"spec":{"identity":{"extraClaims":{"any":"x"}}},"metadata":{"ownerReferences":[{"uid":"1"}]}}`},
		{`{"spec":"wrong","metadata":[1]}`, ""},
		{`{"spec":null}`, ""},
	} {
		if row[1] == "" {
			row[1] = row[0]
		}
		var given, want map[string]any
		if err := json.Unmarshal([]byte(row[0]), &given); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(row[1]), &want); err != nil {
			t.Fatal(err)
		}
		m.Prune(given)
		if !reflect.DeepEqual(given, want) {
			t.Errorf("%s became %v, want %v", row[0], given, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := New(schema.GroupVersionKind{Group: model.GroupName, Version: "v1", Kind: "Nothing"}, empty, ""); err == nil {
		t.Error("a kind without a schema has a manager")
	}
}

// An entry without a time, and one of a manager that owns something else now, get the time of the clock; others keep theirs.
func TestTimes(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	begun := time.Date(2027, time.March, 4, 5, 6, 7, 890_000_000, time.UTC)
	live := &model.OwnedAccessKey{}
	live.SetGroupVersionKind(kind)
	live.Spec.DisplayName = "one"
	apply := func(manager string, at time.Time, fields map[string]any) *model.OwnedAccessKey {
		t.Helper()
		merged, err := m.Apply(live, map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "spec": fields}, manager, false, at)
		if err != nil {
			t.Fatal(err)
		}
		return merged.(*model.OwnedAccessKey)
	}
	times := func(object *model.OwnedAccessKey) map[string]time.Time {
		found := map[string]time.Time{}
		for _, entry := range object.ManagedFields {
			found[entry.Manager] = entry.Time.Time
		}
		return found
	}
	second := func(at time.Time) time.Time { return at.Truncate(time.Second) }

	live = apply("a", begun, map[string]any{"displayName": "one"})
	// The values are there already: the library has no time for b.
	later := begun.Add(time.Minute)
	live = apply("b", later, map[string]any{"displayName": "one"})
	if got := times(live); !got["a"].Equal(second(begun)) || !got["b"].Equal(second(later)) {
		t.Errorf("times %v", got)
	}
	// Nothing changes.
	latest := later.Add(time.Minute)
	live = apply("b", latest, map[string]any{"displayName": "one"})
	if got := times(live); !got["a"].Equal(second(begun)) || !got["b"].Equal(second(later)) {
		t.Errorf("times %v", got)
	}
	// One more field, with the value that it has.
	live.Spec.Description = "x"
	live = apply("a", latest, map[string]any{"displayName": "one", "description": "x"})
	if got := times(live); !got["a"].Equal(second(latest)) || !got["b"].Equal(second(later)) {
		t.Errorf("times %v", got)
	}
	var order []string
	for _, entry := range live.ManagedFields {
		order = append(order, entry.Manager)
	}
	if want := []string{"b", "a", "before-first-apply"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

package resource_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model/apierror"
)

// clocked is a registry with a clock that the test moves.
func clocked(t testing.TB) (*registry, *time.Time) {
	t.Helper()
	clock := now
	return accesskey.NewRegistry(newStore(t), func() time.Time { return clock }, seeded(1), func() accesskey.Limits { return accesskey.Limits{} }).
		WithFieldManager(fieldmanager.New), &clock
}

// entry returns the entry of a manager, or nil if the manager has no entry.
func entry(object *key, manager string) *metav1.ManagedFieldsEntry {
	for i := range object.ManagedFields {
		if object.ManagedFields[i].Manager == manager {
			return &object.ManagedFields[i]
		}
	}
	return nil
}

// Spec 2.2 managedFields: every verb that writes records who set which field, and when.
func TestManagedFields(t *testing.T) {
	t.Parallel()
	r, clock := clocked(t)
	given := grantee("ci")
	given.Labels = map[string]string{"a": "b"}
	given.Spec.DisplayName, given.Spec.Key = "one", secret
	given.Status.LastActivity = &metav1.Time{Time: now}
	result, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: admin, Object: given, Manager: "maker"})
	if err != nil {
		t.Fatal(err)
	}
	whole := result.Object.ManagedFields[0]
	if whole.FieldsType != "FieldsV1" || whole.APIVersion != "management.platform.sh/v1" || whole.Subresource != "" || !whole.Time.Time.Equal(now.Truncate(time.Second)) {
		t.Errorf("the entry is %+v", whole)
	}
	const made = `maker Update {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:displayName":{},"f:type":{},"f:user":{}}}`
	if got := owners(result.Object); got != made {
		t.Errorf("created: owned by\n%s\nwant\n%s", got, made)
	}

	*clock = clock.Add(time.Minute)
	later := clock.Truncate(time.Second)
	put := get(t, r, "ci")
	put.Spec.TTLSeconds, put.ManagedFields = 60, nil
	result, err = resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: admin, Name: "ci", Object: put, Manager: "putter"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := owners(result.Object), made+"\n"+`putter Update {"f:spec":{"f:ttl":{}}}`; got != want {
		t.Errorf("put: owned by\n%s\nwant\n%s", got, want)
	}
	if at := entry(result.Object, "putter").Time; !at.Time.Equal(later) {
		t.Errorf("at %v, want %v", at, later)
	}
	if at := entry(result.Object, "maker").Time; !at.Time.Equal(now.Truncate(time.Second)) {
		t.Errorf("the other's time has changed to %v", at)
	}

	// A patch takes over what it changes, and removes what it removes.
	*clock = clock.Add(time.Minute)
	for _, in := range []resource.PatchInput{
		{Type: resource.MergePatch, Manager: "merger", Patch: []byte(`{"metadata":{"labels":{"a":null,"c":"d"}},"spec":{"displayName":"two"}}`)},
		{Type: resource.JSONPatch, Manager: "patcher", Patch: []byte(`[{"op":"replace","path":"/spec/ttl","value":5},{"op":"add","path":"/metadata/annotations/x","value":"y"}]`)},
	} {
		in.Caller, in.Name = admin, "ci"
		if result, err = resource.Patch(t.Context(), r, in); err != nil {
			t.Fatal(err)
		}
	}
	want := `maker Update {"f:metadata":{"f:labels":{}},"f:spec":{"f:type":{},"f:user":{}}}
merger Update {"f:metadata":{"f:labels":{"f:c":{}}},"f:spec":{"f:displayName":{}}}
patcher Update {"f:metadata":{"f:annotations":{".":{},"f:x":{}}},"f:spec":{"f:ttl":{}}}`
	if got := owners(result.Object); got != want {
		t.Errorf("patched: owned by\n%s\nwant\n%s", got, want)
	}
	if stored := get(t, r, "ci"); fmt.Sprint(stored.ManagedFields) != fmt.Sprint(result.Object.ManagedFields) {
		t.Errorf("stored\n%v\nanswered\n%v", stored.ManagedFields, result.Object.ManagedFields)
	}

	// Nothing is written if nothing changes, whatever the manager and the time.
	*clock = clock.Add(time.Hour)
	before := get(t, r, "ci")
	for _, manager := range []string{"maker", "patcher", "stranger"} {
		put := before.DeepCopy()
		put.ManagedFields = nil
		if _, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: admin, Name: "ci", Object: put, Manager: manager}); err != nil {
			t.Fatal(err)
		}
		in := resource.PatchInput{Caller: admin, Name: "ci", Type: resource.MergePatch, Patch: []byte(`{"spec":{"displayName":"two"}}`), Manager: manager}
		if _, err := resource.Patch(t.Context(), r, in); err != nil {
			t.Fatal(err)
		}
	}
	if after := get(t, r, "ci"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("now\n%+v\nbefore\n%+v", after, before)
	}
}

// Clients send managedFields. Source: ADR-0008.
func TestManagedFieldsFromClients(t *testing.T) {
	t.Parallel()
	const one = `[{"manager":"x","operation":"Update","apiVersion":"management.platform.sh/v1","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:displayName":{}}}}]`
	const kept = `unknown Update {"f:spec":{"f:displayName":{},"f:type":{},"f:user":{}}}`
	for _, row := range []struct {
		about, sent string
		wrong       refusal
		want        string
		written     bool
	}{
		{"nothing keeps them", `null`, refusal{}, kept, false},
		{"an empty list forgets them", `[]`, refusal{}, "", true},
		{"one empty entry forgets them", `[{}]`, refusal{}, "", true},
		{"two empty entries cannot be read", `[{},{}]`, refusal{}, kept, false},
		{"other entries replace them", one, refusal{}, `x Update {"f:spec":{"f:displayName":{}}}`, true},
		{"an unknown operation cannot be read", strings.Replace(one, `"Update"`, `"Create"`, 1), refusal{}, kept, false},
		{"no version cannot be read", strings.Replace(one, `"management.platform.sh/v1"`, `""`, 1), refusal{}, kept, false},
		{"another form cannot be read", strings.Replace(one, `"fieldsType":"FieldsV1"`, `"fieldsType":"FieldsV2"`, 1), refusal{}, kept, false},
		{"fields that are no fields cannot be read", strings.Replace(one, `"f:spec"`, `"spec"`, 1), refusal{}, kept, false},
		{"a version that is not served is forgotten", strings.Replace(one, `sh/v1"`, `sh/v9"`, 1), refusal{}, "", true},
		{"an endless name", strings.Replace(one, `"x"`, `"`+strings.Repeat("x", 129)+`"`, 1), invalid("metadata.managedFields[0].manager"), kept, false},
		{"an endless subresource", strings.Replace(one, `"manager"`, `"subresource":"`+strings.Repeat("x", 257)+`","manager"`, 1),
			invalid("metadata.managedFields[0].subresource"), kept, false},
		{"no list", `{}`, refusal{400, "BadRequest", nil}, kept, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			given := grantee("ci")
			given.Spec.DisplayName = "one"
			create(t, r, admin, given)
			got, err := patch(t, r, "ci", resource.MergePatch, `{"metadata":{"managedFields":`+row.sent+`}}`)
			if refused := refusalOf(err); refused.code != row.wrong.code || row.wrong.code == 422 && !slices.Equal(refused.fields, row.wrong.fields) {
				t.Errorf("%+v (%v), want %+v", refused, err, row.wrong)
			}
			if err == nil && owners(got) != row.want {
				t.Errorf("answered: owned by\n%s\nwant\n%s", owners(got), row.want)
			}
			stored := get(t, r, "ci")
			if owners(stored) != row.want {
				t.Errorf("owned by\n%s\nwant\n%s", owners(stored), row.want)
			}
			if (stored.ResourceVersion != "2") != row.written {
				t.Errorf("resourceVersion %s, want a write: %v", stored.ResourceVersion, row.written)
			}
			if at := entry(stored, "x"); at != nil && at.Time.Year() != 2020 {
				t.Errorf("the time that was sent has become %v", at.Time)
			}
		})
	}
}

// At most ten managers of updates have entries of their own; the oldest are merged. Source: ADR-0008.
func TestManagedFieldsAreCapped(t *testing.T) {
	t.Parallel()
	r, clock := clocked(t)
	create(t, r, admin, grantee("ci"))
	for i := range 15 {
		*clock = clock.Add(time.Minute)
		in := resource.PatchInput{
			Caller: admin, Name: "ci", Type: resource.MergePatch, Manager: fmt.Sprintf("m%02d", i),
			Patch: fmt.Appendf(nil, `{"metadata":{"labels":{"m%02d":"x"}}}`, i),
		}
		if _, err := resource.Patch(t.Context(), r, in); err != nil {
			t.Fatal(err)
		}
	}
	got := get(t, r, "ci")
	if len(got.ManagedFields) != 10 || entry(got, "ancient-changes") == nil || entry(got, "m14") == nil || entry(got, "m01") != nil {
		t.Errorf("owned by\n%s", owners(got))
	}
}

// A model of ownership for fields that are either present or absent: labels. Managers own the fields of their last apply. An
// update owns the fields that it changed.
type ownership struct {
	values  map[string]string
	applied map[string]map[string]bool
	updated map[string]map[string]bool
}

func (o *ownership) apply(manager string, labels map[string]string, force bool) (conflicts int) {
	for name, value := range labels {
		if old, there := o.values[name]; there && old != value {
			for other, fields := range o.applied {
				if other != manager && fields[name] {
					conflicts++
				}
			}
			for _, fields := range o.updated {
				if fields[name] {
					conflicts++
				}
			}
		}
	}
	if conflicts > 0 && !force {
		return conflicts
	}
	before := o.applied[manager]
	o.applied[manager] = map[string]bool{}
	for name, value := range labels {
		if o.values[name] != value {
			o.release(name)
		}
		o.applied[manager][name], o.values[name] = true, value
	}
	for name := range before {
		if !o.owned(name) {
			delete(o.values, name)
		}
	}
	return 0
}

func (o *ownership) update(manager string, labels map[string]string) {
	if o.updated[manager] == nil {
		o.updated[manager] = map[string]bool{}
	}
	for name, value := range labels {
		switch old, there := o.values[name]; {
		case value == "" && there:
			o.release(name)
			delete(o.values, name)
		case value != "" && (!there || old != value):
			o.release(name)
			o.values[name] = value
			o.updated[manager][name] = true
		}
	}
}

// release takes a field from all its owners.
func (o *ownership) release(name string) {
	for _, owners := range []map[string]map[string]bool{o.applied, o.updated} {
		for _, fields := range owners {
			delete(fields, name)
		}
	}
}

func (o *ownership) owned(name string) bool {
	for _, owners := range []map[string]map[string]bool{o.applied, o.updated} {
		for _, fields := range owners {
			if fields[name] {
				return true
			}
		}
	}
	return false
}

// describe tells who owns which label, in the same form as ownersOfLabels.
func (o *ownership) describe() string {
	var lines []string
	for operation, owners := range map[string]map[string]map[string]bool{"Apply": o.applied, "Update": o.updated} {
		for manager, fields := range owners {
			if len(fields) > 0 {
				lines = append(lines, fmt.Sprint(operation, " ", manager, " ", slices.Sorted(maps.Keys(fields))))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func ownersOfLabels(object *key, names []string) string {
	var lines []string
	for _, entry := range object.ManagedFields {
		var fields []string
		for _, name := range names {
			if strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+name+`"`) {
				fields = append(fields, name)
			}
		}
		if len(fields) > 0 {
			lines = append(lines, fmt.Sprint(entry.Operation, " ", entry.Manager, " ", fields))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Random applies and updates of several managers do what the model says. Source: ADR-0008.
func TestOwnershipModel(t *testing.T) {
	t.Parallel()
	r := open(t)
	names := []string{"la", "lb", "lc", "ld"}
	count := 0
	rapid.Check(t, func(rt *rapid.T) {
		count++
		name := fmt.Sprint("key-", count)
		model := &ownership{values: map[string]string{}, applied: map[string]map[string]bool{}, updated: map[string]map[string]bool{}}
		if _, err := apply(t, r, applying{name: name, manager: "base", metadata: `"labels":{"base":"x"}`}); err != nil {
			rt.Fatal(err)
		}
		managers := rapid.SampledFrom([]string{"ann", "bob", "cat"})
		labels := rapid.MapOfN(rapid.SampledFrom(names), rapid.SampledFrom([]string{"1", "2"}), 0, 4)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			manager := managers.Draw(rt, "manager")
			given := labels.Draw(rt, "labels")
			if rapid.Bool().Draw(rt, "apply") {
				force := rapid.Bool().Draw(rt, "force")
				want := model.apply(manager, given, force)
				metadata := ""
				if len(given) > 0 {
					metadata = `"labels":` + labelsJSON(given)
				}
				_, err := apply(t, r, applying{name: name, manager: manager, force: force, metadata: metadata})
				got := 0
				if known, ok := errors.AsType[*apierror.Error](err); ok && known.Status().Code == 409 {
					got = len(known.Status().Details.Causes)
				} else if err != nil {
					rt.Fatal(err)
				}
				if got != want {
					rt.Fatalf("%s applies %v: %d conflicts, want %d", manager, given, got, want)
				}
			} else {
				if gone := rapid.SampledFrom(names).Draw(rt, "removed"); rapid.Bool().Draw(rt, "remove") {
					given[gone] = ""
				}
				model.update(manager, given)
				in := resource.PatchInput{
					Caller: admin, Name: name, Type: resource.MergePatch, Manager: manager,
					Patch: []byte(`{"metadata":{"labels":` + strings.ReplaceAll(labelsJSON(given), `""`, "null") + `}}`),
				}
				if _, err := resource.Patch(t.Context(), r, in); err != nil {
					rt.Fatal(err)
				}
			}
			object := get(t, r, name)
			delete(object.Labels, "base")
			if !maps.Equal(object.Labels, model.values) {
				rt.Fatalf("labels %v, want %v", object.Labels, model.values)
			}
			if got, want := ownersOfLabels(object, names), model.describe(); got != want {
				rt.Fatalf("owned by\n%s\nwant\n%s", got, want)
			}
		}
	})
}

func labelsJSON(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%q:%q", name, labels[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

package resource_test

import (
	"encoding/json"
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// Each read returns an object of its own: changes to it are not visible to the next read.
func TestReadsShareNothing(t *testing.T) {
	t.Parallel()
	r := open(t)
	made := grantee("one")
	made.Labels = map[string]string{"a": "b"}
	made.Spec.Scope = &model.Scope{Projects: []model.ScopeProject{{Project: "p"}}}
	create(t, r, admin, made)
	before, err := json.Marshal(get(t, r, "one"))
	if err != nil {
		t.Fatal(err)
	}
	changed := get(t, r, "one")
	changed.Labels["a"], changed.Spec.Scope.Projects[0].Project, changed.Spec.Disabled = "c", "q", true
	list, err := resource.List(t.Context(), r, resource.ListInput{Caller: admin})
	if err != nil {
		t.Fatal(err)
	}
	item := &list.(*model.OwnedAccessKeyList).Items[0]
	item.Labels["a"], item.Spec.Scope.Projects[0].Project = "c", "q"
	if after, err := json.Marshal(get(t, r, "one")); err != nil || string(after) != string(before) {
		t.Errorf("%s became %s (%v)", before, after, err)
	}
}

// An object that changed in the state without the registry, with its name and even its revision, is read again.
func TestReadsFollowTheState(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, admin, grantee("one"))
	record, err := r.Store.Get(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decode(record); err != nil {
		t.Fatal(err)
	}
	other := grantee("one")
	other.Spec.Description = "another"
	if record.Object, err = json.Marshal(other); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Decode(record); err != nil || got.Spec.Description != "another" {
		t.Errorf("read %+v, %v", got, err)
	}
	record.Object = record.Object[1:]
	if _, err := r.Decode(record); err == nil {
		t.Error("a broken text is an object")
	}
}

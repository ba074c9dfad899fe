package deletevirtualclusterinstance

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// Source: Spec 2.6, 3; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	given := instancetest.Instance(t, "dev")
	given.Spec.Access = []model.InstanceAccess{{Verbs: []string{"use", "update"}, Users: []string{"ben"}}}
	w.Seed(t, given)
	deps := Deps{Instances: w.Instances}
	in := Input{Caller: instancetest.Ben, Namespace: "p-shop", Name: "dev"}
	if _, err := Do(t.Context(), deps, in); accesskeytest.Code(err) != 403 {
		t.Errorf("by a caller without the permission: %v", err)
	}
	in.Caller = instancetest.Ana
	if _, err := Do(t.Context(), deps, in); err != nil {
		t.Error(err)
	}
	if _, err := Do(t.Context(), deps, in); accesskeytest.Code(err) != 404 {
		t.Errorf("again: %v", err)
	}
}

// A collection contains what callers may see in the namespace. An instance that they may only use stops its deletion. Source: Spec 3; ADR-0009, ADR-0017.
func TestCollection(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	for _, name := range []string{"one", "two"} {
		given := instancetest.Instance(t, name)
		given.Labels = map[string]string{"name": name}
		given.Spec.Access = []model.InstanceAccess{{Verbs: []string{"use"}, Users: []string{"ben"}}}
		w.Seed(t, given)
	}
	deps := Deps{Instances: w.Instances}
	left := func() int {
		t.Helper()
		list, err := resource.List(t.Context(), w.Instances, resource.ListInput{Caller: instancetest.Ana})
		if err != nil {
			t.Fatal(err)
		}
		return meta.LenList(list)
	}
	for _, row := range []struct {
		about     string
		caller    identity.Caller
		namespace string
		selector  string
		code      int32
		left      int
	}{
		{"another project's", instancetest.Ana, "p-other", "", 0, 2},
		{"of one who may use them", instancetest.Ben, "p-shop", "", 403, 2},
		{"those that are selected", instancetest.Ana, "p-shop", "name=one", 0, 1},
		{"all", instancetest.Ana, "p-shop", "", 0, 0},
	} {
		selector, err := labels.Parse(row.selector)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Do(t.Context(), deps, Input{
			Caller: row.caller, Namespace: row.namespace,
			Selection: &resource.ListInput{Caller: row.caller, Namespace: row.namespace, Labels: selector},
		})
		if got := left(); accesskeytest.Code(err) != row.code || got != row.left {
			t.Errorf("%s: %v, %d are left, want %d", row.about, err, got, row.left)
		}
	}
}

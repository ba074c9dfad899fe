package listvirtualclusterinstances

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.6; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	elsewhere := instancetest.Instance(t, "dev")
	elsewhere.Namespace, elsewhere.Spec.Owner.User = "p-other", "ben"
	w.Seed(t, elsewhere)
	deps := Deps{Instances: w.Instances}
	for _, row := range []struct {
		about string
		in    Input
		want  []string
	}{
		{"everything", Input{Caller: instancetest.Admin}, []string{"p-other/dev", "p-shop/dev"}},
		{"a namespace", Input{Caller: instancetest.Admin, Namespace: "p-shop"}, []string{"p-shop/dev"}},
		{"one's own", Input{Caller: instancetest.Ana}, []string{"p-shop/dev"}},
		{"one's own elsewhere", Input{Caller: instancetest.Ana, Namespace: "p-other"}, nil},
		{"of a namespace, by field", Input{Caller: instancetest.Admin, Fields: fields.OneTermEqualSelector("metadata.namespace", "p-other")}, []string{"p-other/dev"}},
		{"of an owner", Input{Caller: instancetest.Admin, Fields: fields.OneTermEqualSelector("spec.owner.user", "ana")}, []string{"p-shop/dev"}},
	} {
		got, err := Do(t.Context(), deps, row.in)
		if err != nil {
			t.Fatalf("%s: %v", row.about, err)
		}
		var names []string
		for _, item := range got.(*model.VirtualClusterInstanceList).Items {
			names = append(names, item.Namespace+"/"+item.Name)
			if item.Spec.Signer.CA != nil {
				t.Errorf("%s: it shows the authority", row.about)
			}
		}
		if !slices.Equal(names, row.want) {
			t.Errorf("%s: %q, want %q", row.about, names, row.want)
		}
		watcher, err := Watch(t.Context(), deps, WatchInput{Caller: row.in.Caller, Namespace: row.in.Namespace, Fields: row.in.Fields})
		if err != nil {
			t.Fatalf("%s: %v", row.about, err)
		}
		if events, err := watcher.Next(t.Context(), 0); err != nil || len(events) != len(row.want) {
			t.Errorf("%s: watches %d, %v", row.about, len(events), err)
		}
	}
}

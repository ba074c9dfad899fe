package deletevirtualclusterinstance

import (
	"testing"

	"management.platform.sh/shared/accesskey/accesskeytest"
	"management.platform.sh/shared/instance/instancetest"
	"management.platform.sh/shared/model"
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
		t.Errorf("by one who may not: %v", err)
	}
	in.Caller = instancetest.Ana
	if _, err := Do(t.Context(), deps, in); err != nil {
		t.Error(err)
	}
	if _, err := Do(t.Context(), deps, in); accesskeytest.Code(err) != 404 {
		t.Errorf("again: %v", err)
	}
}

package deletevirtualclusterinstance

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.6, 3, 4; ADR-0009, ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	instancetest.Store(t, kinds.Instances(w.Env), instancetest.Instance(t, "dev"))
	in := Input{Caller: ben, Namespace: "p-shop", Name: "dev"}
	if _, err := Do(t.Context(), deps, in); accesskeytest.Code(err) != 404 {
		t.Errorf("another user's instance: %v", err)
	}
	in.Caller = ana
	if _, err := Do(t.Context(), deps, in); err != nil {
		t.Error(err)
	}
	instancetest.Store(t, kinds.Instances(w.Env), instancetest.Instance(t, "other"))
	gone, err := Do(t.Context(), deps, Input{Caller: ana, Namespace: "p-shop", Selection: &resource.ListInput{Caller: ana, Namespace: "p-shop"}})
	if err != nil || meta.LenList(gone) != 1 {
		t.Errorf("a selection: %+v, %v", gone, err)
	}
}

package getvirtualclusterinstance

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
)

// Source: Spec 2.6; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	want := w.Seed(t, instancetest.Instance(t, "dev"))
	deps := Deps{Instances: w.Instances}
	got, err := Do(t.Context(), deps, Input{Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev"})
	if err != nil || !apiequality.Semantic.DeepEqual(got, want) || got.Spec.Signer.CA != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for about, in := range map[string]Input{
		"another user's":     {Caller: instancetest.Ben, Namespace: "p-shop", Name: "dev"},
		"another namespace":  {Caller: instancetest.Ana, Namespace: "p-other", Name: "dev"},
		"no namespace":       {Caller: instancetest.Ana, Name: "p-shop/dev"},
		"a path in its name": {Caller: instancetest.Ana, Namespace: "p-shop", Name: "a/dev"},
		"a bad namespace":    {Caller: instancetest.Ana, Namespace: "p-shop/x", Name: "dev"},
	} {
		if _, err := Do(t.Context(), deps, in); accesskeytest.Code(err) != 404 {
			t.Errorf("%s: %v", about, err)
		}
	}
}

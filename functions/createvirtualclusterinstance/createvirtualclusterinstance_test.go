package createvirtualclusterinstance

import (
	"testing"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
)

// Source: Spec 2.6; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about     string
		namespace string
		change    func(*model.VirtualClusterInstance)
		code      int32
	}{
		{"a good one", "p-shop", func(*model.VirtualClusterInstance) {}, 0},
		{"without a namespace in the body", "p-shop", func(i *model.VirtualClusterInstance) { i.Namespace = "" }, 0},
		{"in another namespace than the URL says", "p-other", func(*model.VirtualClusterInstance) {}, 400},
		{"in no project", "default", func(i *model.VirtualClusterInstance) { i.Namespace = "" }, 422},
		{"that has no name", "p-shop", func(i *model.VirtualClusterInstance) { i.Name = "" }, 0},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := instancetest.New(t)
			given := instancetest.Instance(t, "dev")
			row.change(given)
			got, err := Do(t.Context(), Deps{Instances: w.Instances.Managed(fieldmanager.New)}, Input{
				Caller: instancetest.Admin, Namespace: row.namespace, Object: given, Manager: "curl",
			})
			if accesskeytest.Code(err) != row.code {
				t.Fatalf("%+v, %v", got.Object, err)
			}
			if err != nil {
				return
			}
			if made := got.Object; made.Namespace != "p-shop" || made.Name == "" || made.Spec.Signer.CA != nil || made.Status.Phase != "Ready" || len(made.ManagedFields) != 1 {
				t.Errorf("%+v", made)
			}
		})
	}
}

// Package deletevirtualclusterinstance is DELETE on one of virtualclusterinstances, or on a selection of a project. The
// access keys of its kubeconfigs are deleted with an instance; certificates work until they expire. Source: Spec 2.6, 3;
// ADR-0009, ADR-0017.
package deletevirtualclusterinstance

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/instance"
)

// Function removes one instance, or marks it as deleted while a grace period or finalizers keep it. With a selection it does the
// same with all selected instances that the caller sees in the namespace, and returns them as they were. Errors: the errors of
// resource.Delete; Forbidden for an instance that the caller sees and may not delete.
var Function = crud.Delete("deletevirtualclusterinstance", instance.Definition, kinds.Instances)

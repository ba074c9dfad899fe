// Package deletevirtualclusterinstance is DELETE on one of virtualclusterinstances, or on a selection of a project. The
// access keys of its kubeconfigs are deleted with an instance; certificates work until they expire. Source: Spec 2.6, 3;
// ADR-0009, ADR-0017.
package deletevirtualclusterinstance

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Instances *instance.Registry }

// Input is the request.
type Input = resource.DeleteInput

// Output is the answer.
type Output = runtime.Object

// Do removes one instance, or marks it as deleted while a grace period or finalizers keep it. With a selection it does so
// with all selected instances that the caller sees in the namespace, and returns them as they were. Errors: those of
// resource.Delete; Forbidden for an instance that the caller sees and may not delete.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Delete(ctx, deps.Instances, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "deletevirtualclusterinstance",
	Endpoints: []frame.Endpoint{
		frame.Delete(instance.Definition, open, Do),
		frame.DeleteCollection(instance.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Instances: kinds.Instances(env)} }

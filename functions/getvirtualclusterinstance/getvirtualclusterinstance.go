// Package getvirtualclusterinstance is GET on one of virtualclusterinstances, and on its status.
// Source: Spec 2.6; ADR-0017.
package getvirtualclusterinstance

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Instances *instance.Registry }

// Input is the request.
type Input = resource.GetInput

// Output is the answer.
type Output = *model.VirtualClusterInstance

// Do returns one instance, without the material of its signer. NotFound also for an instance that the caller may not see.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Get(ctx, deps.Instances, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "getvirtualclusterinstance",
	Endpoints: []frame.Endpoint{
		frame.Get(instance.Definition, open, Do),
		frame.GetStatus(instance.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Instances: instance.Open(env)} }

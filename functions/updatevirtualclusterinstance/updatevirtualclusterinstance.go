// Package updatevirtualclusterinstance is PUT on one of virtualclusterinstances, and on its status.
// Source: Spec 2.6; ADR-0017.
package updatevirtualclusterinstance

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Instances *instance.Registry }

// Input is the request.
type Input = resource.UpdateInput[*model.VirtualClusterInstance]

// Output is the answer.
type Output = resource.Result[*model.VirtualClusterInstance]

// Do replaces one instance, or its status. Errors: NotFound, Conflict, BadRequest, Invalid or Forbidden as resource.Update
// says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Update(ctx, deps.Instances, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "updatevirtualclusterinstance",
	Endpoints: []frame.Endpoint{
		frame.Update(instance.Definition, open, Do),
		frame.UpdateStatus(instance.Definition, open, Do),
	},
	Encrypts: true,
}

func open(env *platform.Environment) Deps {
	return Deps{Instances: kinds.Instances(env).WithFieldManager(fieldmanager.New)}
}

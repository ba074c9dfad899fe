// Package createvirtualclusterinstance is POST on virtualclusterinstances: it registers a virtual cluster, so that the
// platform can render kubeconfigs for it. Source: Spec 2.6; ADR-0017.
package createvirtualclusterinstance

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
type Input = resource.CreateInput[*model.VirtualClusterInstance]

// Output is the answer.
type Output = resource.Result[*model.VirtualClusterInstance]

// Do stores a new instance. Errors: Invalid, Forbidden or AlreadyExists as resource.Create says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Create(ctx, deps.Instances, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "createvirtualclusterinstance",
	Endpoints: []frame.Endpoint{frame.Create(instance.Definition, open, Do)},
	Encrypts:  true,
}

func open(env *platform.Environment) Deps {
	return Deps{Instances: kinds.Instances(env).WithFieldManager(fieldmanager.New)}
}

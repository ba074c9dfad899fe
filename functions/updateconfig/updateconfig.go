// Package updateconfig is PUT on the platform configuration: replaced as a whole, but for the secrets whose mark is
// sent back. Source: Spec 2.7; ADR-0015.
package updateconfig

import (
	"context"

	"management.platform.sh/shared/function"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platformconfig"
	"management.platform.sh/shared/resource"
)

// Deps is what the operation needs.
type Deps struct{ Config *platformconfig.Source }

// Input is the request.
type Input = resource.UpdateInput[*model.Config]

// Output is the answer.
type Output = platformconfig.Written

// Do replaces the configuration. Errors: NotFound, Forbidden, Conflict or Invalid as platformconfig says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) { return deps.Config.Update(ctx, in) }

var endpoint = function.Update(platformconfig.Definition, open, Do)

// Function is the operation as it is deployed.
var Function = &function.Function{
	Name:      "updateconfig",
	Encrypts:  true,
	Endpoints: []function.Endpoint{endpoint, endpoint.At(platformconfig.Name)},
}

func open(env *function.Environment) Deps { return Deps{Config: env.Configuration()} }

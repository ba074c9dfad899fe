// Package updateaccesskey is PUT on one of ownedaccesskeys: an access key replaced as a whole, but
// for its bearer text.
// Source: Spec 2.5, 4.
package updateaccesskey

import (
	"context"

	"management.platform.sh/shared/accesskey"
	"management.platform.sh/shared/fieldmanager"
	"management.platform.sh/shared/function"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/resource"
)

// Deps is what the operation needs.
type Deps struct{ Keys *accesskey.Registry }

// Input is the request.
type Input = resource.UpdateInput[*model.OwnedAccessKey]

// Output is the answer.
type Output = resource.Written[*model.OwnedAccessKey]

// Do replaces one access key. Errors: NotFound, Conflict, Invalid or Forbidden as resource.Update says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Update(ctx, deps.Keys, in)
}

// Function is the operation as it is deployed.
var Function = &function.Function{
	Name:      "updateaccesskey",
	Endpoints: []function.Endpoint{function.Update(accesskey.Definition, open, Do)},
}

func open(env *function.Environment) Deps {
	return Deps{Keys: env.AccessKeys().Managed(fieldmanager.New)}
}

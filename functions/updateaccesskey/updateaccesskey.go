// Package updateaccesskey is PUT on one of ownedaccesskeys: it replaces an access key, except its bearer text.
// Source: Spec 2.5, 4.
package updateaccesskey

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Keys *accesskey.Registry }

// Input is the request.
type Input = resource.UpdateInput[*model.OwnedAccessKey]

// Output is the answer.
type Output = resource.Result[*model.OwnedAccessKey]

// Do replaces one access key. Errors: NotFound, Conflict, Invalid or Forbidden as resource.Update says; nothing is stored
// then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Update(ctx, deps.Keys, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "updateaccesskey",
	Endpoints: []frame.Endpoint{frame.Update(accesskey.Definition, open, Do)},
}

func open(env *platform.Environment) Deps {
	return Deps{Keys: kinds.AccessKeys(env).WithFieldManager(fieldmanager.New)}
}

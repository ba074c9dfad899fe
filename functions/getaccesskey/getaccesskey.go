// Package getaccesskey is GET on one of ownedaccesskeys: an access key without its bearer text.
// Source: Spec 2.5, 4.
package getaccesskey

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Keys *accesskey.Registry }

// Input is the request.
type Input = resource.GetInput

// Output is the answer.
type Output = *model.OwnedAccessKey

// Do returns one access key of the caller. Error: NotFound if it does not exist or belongs to another user.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Get(ctx, deps.Keys, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "getaccesskey",
	Endpoints: []frame.Endpoint{frame.Get(accesskey.Definition, open, Do)},
}

func open(env *platform.Environment) Deps { return Deps{Keys: accesskey.Open(env)} }

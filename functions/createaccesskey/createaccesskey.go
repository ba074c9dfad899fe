// Package createaccesskey is POST on ownedaccesskeys: a new access key. Only this response shows it in clear text.
// Source: Spec 2.5, 4.
package createaccesskey

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
type Input = resource.CreateInput[*model.OwnedAccessKey]

// Output is the answer.
type Output = resource.Result[*model.OwnedAccessKey]

// Do stores a new access key. Errors: Invalid, Forbidden, AlreadyExists or Conflict as resource.Create says; nothing is
// stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Create(ctx, deps.Keys, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "createaccesskey",
	Endpoints: []frame.Endpoint{frame.Idempotent(frame.Create(accesskey.Definition, open, Do)).Delivering()},
	Encrypts:  true,
}

func open(env *platform.Environment) Deps {
	return Deps{Keys: kinds.Open(env).AccessKeys.Managed(fieldmanager.New)}
}

// Package patchuser is PATCH on one of users. Source: ADR-0029.
package patchuser

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Users *user.Registry }

// Input is the request.
type Input = resource.PatchInput

// Output is the answer.
type Output = resource.Result[*model.User]

// Do changes a part of one user. Errors: those of an update, and BadRequest, RequestEntityTooLarge or UnsupportedMediaType as
// resource.Patch says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Patch(ctx, deps.Users, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "patchuser",
	Endpoints: []frame.Endpoint{
		frame.Patch(user.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Users: kinds.Users(env).WithFieldManager(fieldmanager.New)}
}

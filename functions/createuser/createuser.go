// Package createuser is POST on users. Admins create users. Source: ADR-0029.
package createuser

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
type Input = resource.CreateInput[*model.User]

// Output is the answer.
type Output = resource.Result[*model.User]

// Do stores a new user. Errors: Invalid, AlreadyExists, or Conflict if nobody would be an admin afterwards; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Create(ctx, deps.Users, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "createuser",
	Endpoints: []frame.Endpoint{
		frame.Create(user.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Users: kinds.Users(env).WithFieldManager(fieldmanager.New)}
}

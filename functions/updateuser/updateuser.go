// Package updateuser is PUT on one of users. Source: ADR-0029.
package updateuser

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
type Input = resource.UpdateInput[*model.User]

// Output is the answer.
type Output = resource.Result[*model.User]

// Do replaces one user. Errors: NotFound, BadRequest, Invalid, Forbidden, or Conflict, also if nobody would be an admin afterwards;
// nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Update(ctx, deps.Users, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "updateuser",
	Endpoints: []frame.Endpoint{
		frame.Update(user.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Users: kinds.Users(env).WithFieldManager(fieldmanager.New)}
}

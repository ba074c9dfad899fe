// Package signoutuser is POST on signout of one of users: every credential that the user has is refused from the next request on.
// Source: ADR-0029.
package signoutuser

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

type Deps struct{ Users *user.Registry }

type Input = resource.SubresourceInput[*model.UserSignOut]

type Output = resource.Result[*model.UserSignOut]

// Do signs one user out everywhere. Errors: NotFound, Forbidden or Conflict; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return user.SignOutUser(ctx, deps.Users, in)
}

var Function = &frame.Function{
	Name: "signoutuser",
	Endpoints: []frame.Endpoint{
		frame.CreateSubresource(user.SignOutDefinition, user.SignOut, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Users: kinds.Users(env).WithFieldManager(fieldmanager.New)}
}

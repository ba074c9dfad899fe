// Package getuser is GET on one of users. Source: ADR-0029.
package getuser

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Users *user.Registry }

// Input is the request.
type Input = resource.GetInput

// Output is the answer.
type Output = *model.User

// Do returns one user. NotFound also for one that the caller may not see.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Get(ctx, deps.Users, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "getuser",
	Endpoints: []frame.Endpoint{
		frame.Get(user.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Users: user.Open(env)} }

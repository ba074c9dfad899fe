// Package deleteuser is DELETE on one of users, or on a selection. The access keys of a user are deleted with it. Source: ADR-0029.
package deleteuser

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Users *user.Registry }

// Input is the request.
type Input = resource.DeleteInput

// Output is the answer.
type Output = runtime.Object

// Do marks one user as deleted, which refuses its credentials, deletes its access keys, and removes it. What is too much for one
// request is left to the schedule. With a selection it does so with all selected users, and returns them as they were. Errors:
// those of resource.Delete; Conflict if nobody would be an admin afterwards.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Delete(ctx, deps.Users, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "deleteuser",
	Endpoints: []frame.Endpoint{
		frame.Delete(user.Definition, open, Do),
		frame.DeleteCollection(user.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Users: kinds.Users(env)} }

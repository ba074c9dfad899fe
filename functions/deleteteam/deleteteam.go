// Package deleteteam is DELETE on one of teams, or on a selection. The access keys of a team are deleted with it. Source: ADR-0029.
package deleteteam

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Teams *team.Registry }

// Input is the request.
type Input = resource.DeleteInput

// Output is the answer.
type Output = runtime.Object

// Do marks one team as deleted, which refuses its credentials, deletes its access keys, and removes it. What is too much for one
// request is left to the schedule. With a selection it does so with all selected teams, and returns them as they were. Errors:
// those of resource.Delete; Conflict if nobody would be an admin afterwards.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Delete(ctx, deps.Teams, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "deleteteam",
	Endpoints: []frame.Endpoint{
		frame.Delete(team.Definition, open, Do),
		frame.DeleteCollection(team.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Teams: kinds.Teams(env)} }

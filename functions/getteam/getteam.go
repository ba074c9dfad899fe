// Package getteam is GET on one of teams. Source: ADR-0029.
package getteam

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Teams *team.Registry }

// Input is the request.
type Input = resource.GetInput

// Output is the answer.
type Output = *model.Team

// Do returns one team. NotFound also for one that the caller may not see.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Get(ctx, deps.Teams, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "getteam",
	Endpoints: []frame.Endpoint{
		frame.Get(team.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Teams: team.Open(env)} }

// Package updateteam is PUT on one of teams. Source: ADR-0029.
package updateteam

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Teams *team.Registry }

// Input is the request.
type Input = resource.UpdateInput[*model.Team]

// Output is the answer.
type Output = resource.Result[*model.Team]

// Do replaces one team. Errors: NotFound, BadRequest, Invalid, Forbidden, or Conflict, also if nobody would be an admin afterwards;
// nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Update(ctx, deps.Teams, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "updateteam",
	Endpoints: []frame.Endpoint{
		frame.Update(team.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Teams: kinds.Teams(env).WithFieldManager(fieldmanager.New)}
}

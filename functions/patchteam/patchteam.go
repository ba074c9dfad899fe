// Package patchteam is PATCH on one of teams. Source: ADR-0029.
package patchteam

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
type Input = resource.PatchInput

// Output is the answer.
type Output = resource.Result[*model.Team]

// Do changes a part of one team. Errors: those of an update, and BadRequest, RequestEntityTooLarge or UnsupportedMediaType as
// resource.Patch says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Patch(ctx, deps.Teams, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "patchteam",
	Endpoints: []frame.Endpoint{
		frame.Patch(team.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Teams: kinds.Teams(env).WithFieldManager(fieldmanager.New)}
}

// Package patchproject is PATCH on one of projects. Source: ADR-0037.
package patchproject

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/project"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Projects *project.Registry }

// Input is the request.
type Input = resource.PatchInput

// Output is the answer.
type Output = resource.Result[*model.Project]

// Do changes a part of one project. Errors: those of an update, and BadRequest, RequestEntityTooLarge or UnsupportedMediaType as
// resource.Patch says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Patch(ctx, deps.Projects, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "patchproject",
	Endpoints: []frame.Endpoint{
		frame.Patch(project.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Projects: kinds.Projects(env).WithFieldManager(fieldmanager.New)}
}

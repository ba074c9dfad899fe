// Package createproject is POST on projects. Admins create projects. Source: ADR-0037.
package createproject

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
type Input = resource.CreateInput[*model.Project]

// Output is the answer.
type Output = resource.Result[*model.Project]

// Do stores a new project. Errors: Invalid or AlreadyExists; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Create(ctx, deps.Projects, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "createproject",
	Endpoints: []frame.Endpoint{
		frame.Create(project.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Projects: kinds.Projects(env).WithFieldManager(fieldmanager.New)}
}

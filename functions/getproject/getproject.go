// Package getproject is GET on one of projects. Source: ADR-0037.
package getproject

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/project"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Projects *project.Registry }

// Input is the request.
type Input = resource.GetInput

// Output is the answer.
type Output = *model.Project

// Do returns one project. NotFound also for one that the caller may not see.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Get(ctx, deps.Projects, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "getproject",
	Endpoints: []frame.Endpoint{
		frame.Get(project.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Projects: project.Open(env)} }

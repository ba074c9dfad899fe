// Package deleteproject is DELETE on one of projects, or on a selection. Source: ADR-0037.
package deleteproject

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/project"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Projects *project.Registry }

// Input is the request.
type Input = resource.DeleteInput

// Output is the answer.
type Output = runtime.Object

// Do deletes one project, or with a selection all selected ones, and returns what it has deleted as it was. Errors: those of
// resource.Delete.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Delete(ctx, deps.Projects, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "deleteproject",
	Endpoints: []frame.Endpoint{
		frame.Delete(project.Definition, open, Do),
		frame.DeleteCollection(project.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Projects: kinds.Projects(env)} }

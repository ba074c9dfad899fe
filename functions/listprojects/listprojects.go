// Package listprojects is GET on projects: those that the caller may see, as a list or as a watch. Source: ADR-0037.
package listprojects

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/project"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Projects *project.Registry }

// Input is the request.
type Input = resource.ListInput

// Output is the answer.
type Output = runtime.Object

// WatchInput is a request to watch.
type WatchInput = resource.WatchInput

// Do returns a page of the projects that the caller may see. Errors: BadRequest, Expired or Timeout as resource.List says.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.List(ctx, deps.Projects, in)
}

// Watch follows the projects that the caller may see. Errors: BadRequest, Expired or Timeout as resource.Watch says.
func Watch(ctx context.Context, deps Deps, in WatchInput) (*resource.Watcher[*model.Project], error) {
	return resource.Watch(ctx, deps.Projects, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "listprojects",
	Endpoints: []frame.Endpoint{
		frame.List(project.Definition, open, Do),
		frame.Watch(project.Definition, open, Watch),
	},
}

func open(env *platform.Environment) Deps { return Deps{Projects: project.Open(env)} }

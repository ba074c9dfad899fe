// Package listvirtualclusterinstances is GET on virtualclusterinstances of one namespace or of all: the instances that the
// caller may see, as a list or as a watch. Source: Spec 2.6; ADR-0007, ADR-0017.
package listvirtualclusterinstances

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Instances *instance.Registry }

// Input is the request.
type Input = resource.ListInput

// Output is the answer.
type Output = runtime.Object

// WatchInput is a request to watch.
type WatchInput = resource.WatchInput

// Do returns a page of the instances that the caller may see. Errors: BadRequest, Expired or Timeout as resource.List says.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.List(ctx, deps.Instances, in)
}

// Watch follows the instances that the caller may see. Errors: BadRequest, Expired or Timeout as resource.Watch says.
func Watch(ctx context.Context, deps Deps, in WatchInput) (*resource.Watcher[*model.VirtualClusterInstance], error) {
	return resource.Watch(ctx, deps.Instances, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "listvirtualclusterinstances",
	Endpoints: []frame.Endpoint{
		frame.List(instance.Definition, open, Do),
		frame.Watch(instance.Definition, open, Watch),
		frame.AllNamespaces(frame.List(instance.Definition, open, Do)),
		frame.AllNamespaces(frame.Watch(instance.Definition, open, Watch)),
	},
}

func open(env *platform.Environment) Deps { return Deps{Instances: instance.Open(env)} }

// Package listaccesskeys is GET on ownedaccesskeys: the caller's access keys, or all keys for admins, as a list or as a
// watch. Source: Spec 2.5, 4; ADR-0007.
package listaccesskeys

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Keys *accesskey.Registry }

// Input is the request.
type Input = resource.ListInput

// Output is the answer.
type Output = runtime.Object

// WatchInput is a request to watch.
type WatchInput = resource.WatchInput

// Do returns a page of the caller's access keys. Errors: BadRequest, Expired or Timeout as resource.List says.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.List(ctx, deps.Keys, in)
}

// Watch follows the caller's access keys. Errors: BadRequest, Expired or Timeout as resource.Watch says.
func Watch(ctx context.Context, deps Deps, in WatchInput) (*resource.Watcher[*model.OwnedAccessKey], error) {
	return resource.Watch(ctx, deps.Keys, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "listaccesskeys",
	Endpoints: []frame.Endpoint{
		frame.List(accesskey.Definition, open, Do),
		frame.Watch(accesskey.Definition, open, Watch),
	},
}

func open(env *platform.Environment) Deps { return Deps{Keys: accesskey.Open(env)} }

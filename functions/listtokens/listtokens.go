// Package listtokens is GET on directclusterendpointtokens: the records of the caller's tokens, or of all tokens for
// admins, as a list or as a watch. Source: Spec 2.4, 4; ADR-0011.
package listtokens

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Tokens *issuedtoken.Registry }

// Input is the request.
type Input = resource.ListInput

// Output is the answer.
type Output = runtime.Object

// WatchInput is a request to watch.
type WatchInput = resource.WatchInput

// Do returns a page of the caller's records. Errors: BadRequest, Expired or Timeout as resource.List says.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.List(ctx, deps.Tokens, in)
}

// Watch follows the caller's records. Errors: BadRequest, Expired or Timeout as resource.Watch says.
func Watch(ctx context.Context, deps Deps, in WatchInput) (*resource.Watcher[*model.DirectClusterEndpointToken], error) {
	return resource.Watch(ctx, deps.Tokens, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "listtokens",
	Endpoints: []frame.Endpoint{
		frame.List(issuedtoken.Definition, open, Do),
		frame.Watch(issuedtoken.Definition, open, Watch),
	},
}

func open(env *platform.Environment) Deps { return Deps{Tokens: issuedtoken.Open(env).Registry} }

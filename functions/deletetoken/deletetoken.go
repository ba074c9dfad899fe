// Package deletetoken is DELETE on one of directclusterendpointtokens, or on a selection of them: it revokes the tokens.
// Source: Spec 2.4, 4; ADR-0009, ADR-0011.
package deletetoken

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Tokens *issuedtoken.Registry }

// Input is the request.
type Input = resource.DeleteInput

// Output is the answer.
type Output = runtime.Object

// Do revokes one token, or all selected tokens of the caller. Errors: those of resource.Delete.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Delete(ctx, deps.Tokens, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "deletetoken",
	Endpoints: []frame.Endpoint{
		frame.Delete(issuedtoken.Definition, open, Do),
		frame.DeleteCollection(issuedtoken.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Tokens: kinds.IssuedTokens(env).Registry} }

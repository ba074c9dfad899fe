// Package gettoken is GET on one of directclusterendpointtokens: the record of a token, without the token.
// Source: Spec 2.4, 4; ADR-0011.
package gettoken

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Tokens *issuedtoken.Registry }

// Input is the request.
type Input = resource.GetInput

// Output is the answer.
type Output = *model.DirectClusterEndpointToken

// Do returns the record of one token of the caller. Error: NotFound if it does not exist or belongs to another user.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Get(ctx, deps.Tokens, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "gettoken",
	Endpoints: []frame.Endpoint{frame.Get(issuedtoken.Definition, open, Do)},
}

func open(env *platform.Environment) Deps { return Deps{Tokens: issuedtoken.Open(env).Registry} }

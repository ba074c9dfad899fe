// Package issuetoken is POST on directclusterendpointtokens: a short-lived signed token, shown in this one answer,
// and its record.
// Source: Spec 2.4, 4; ADR-0011.
package issuetoken

import (
	"context"

	"management.platform.sh/shared/function"
	"management.platform.sh/shared/issuedtoken"
	"management.platform.sh/shared/issuer"
)

// Deps is what the operation needs.
type Deps struct{ Issuer *issuer.Issuer }

// Input is the request.
type Input = issuer.Input

// Output is the answer.
type Output = issuer.Output

// Do issues a token. Errors: those of issuer.Issue; nothing is issued then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return deps.Issuer.Issue(ctx, in)
}

// Function is the operation as it is deployed.
var Function = &function.Function{
	Name:      "issuetoken",
	Encrypts:  true,
	Endpoints: []function.Endpoint{function.Idempotent(function.Create(issuedtoken.Definition, open, Do))},
}

func open(env *function.Environment) Deps { return Deps{Issuer: issuer.Open(env)} }

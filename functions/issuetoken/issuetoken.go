// Package issuetoken is POST on directclusterendpointtokens: a short-lived signed token, which only this response
// contains, and its record.
// Source: Spec 2.4, 4; ADR-0011.
package issuetoken

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Issuer *issuer.Issuer }

type Input = issuer.Input

type Output = issuer.Output

// Do issues a token. It returns the errors of issuer.Issue; after an error nothing is issued.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return deps.Issuer.Issue(ctx, in)
}

var Function = &frame.Function{
	Name:      "issuetoken",
	Encrypts:  true,
	Endpoints: []frame.Endpoint{frame.Idempotent(frame.Create(issuedtoken.Definition, open, Do)).Delivering()},
}

func open(env *platform.Environment) Deps {
	return Deps{Issuer: issuer.Open(env, kinds.IssuedTokens(env))}
}

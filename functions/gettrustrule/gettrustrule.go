// Package gettrustrule is GET on one of trustrules. Source: ADR-0036.
package gettrustrule

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/trustrule"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ TrustRules *trustrule.Registry }

// Input is the request.
type Input = resource.GetInput

// Output is the answer.
type Output = *model.TrustRule

// Do returns one trust rule. NotFound also for one that the caller may not see.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Get(ctx, deps.TrustRules, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "gettrustrule",
	Endpoints: []frame.Endpoint{
		frame.Get(trustrule.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{TrustRules: trustrule.Open(env)} }

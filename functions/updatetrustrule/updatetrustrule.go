// Package updatetrustrule is PUT on one of trustrules. Source: ADR-0036.
package updatetrustrule

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/trustrule"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ TrustRules *trustrule.Registry }

// Input is the request.
type Input = resource.UpdateInput[*model.TrustRule]

// Output is the answer.
type Output = resource.Result[*model.TrustRule]

// Do replaces one trust rule. Errors: NotFound, BadRequest, Invalid, Forbidden or Conflict;
// nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Update(ctx, deps.TrustRules, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "updatetrustrule",
	Endpoints: []frame.Endpoint{
		frame.Update(trustrule.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{TrustRules: kinds.TrustRules(env).WithFieldManager(fieldmanager.New)}
}

// Package patchtrustrule is PATCH on one of trustrules. Source: ADR-0036.
package patchtrustrule

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
type Input = resource.PatchInput

// Output is the answer.
type Output = resource.Result[*model.TrustRule]

// Do changes a part of one trust rule. Errors: those of an update, and BadRequest, RequestEntityTooLarge or UnsupportedMediaType as
// resource.Patch says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Patch(ctx, deps.TrustRules, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "patchtrustrule",
	Endpoints: []frame.Endpoint{
		frame.Patch(trustrule.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{TrustRules: kinds.TrustRules(env).WithFieldManager(fieldmanager.New)}
}

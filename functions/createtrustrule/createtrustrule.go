// Package createtrustrule is POST on trustrules. Admins create trust rules. Source: ADR-0036.
package createtrustrule

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
type Input = resource.CreateInput[*model.TrustRule]

// Output is the answer.
type Output = resource.Result[*model.TrustRule]

// Do stores a new trust rule. Errors: Invalid or AlreadyExists; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Create(ctx, deps.TrustRules, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "createtrustrule",
	Endpoints: []frame.Endpoint{
		frame.Create(trustrule.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{TrustRules: kinds.TrustRules(env).WithFieldManager(fieldmanager.New)}
}

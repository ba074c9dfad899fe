// Package deletetrustrule is DELETE on one of trustrules, or on a selection. The access keys that a rule has made are refused from then on. Source: ADR-0036.
package deletetrustrule

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/trustrule"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ TrustRules *trustrule.Registry }

// Input is the request.
type Input = resource.DeleteInput

// Output is the answer.
type Output = runtime.Object

// Do deletes one trust rule, or with a selection all selected ones, and returns what it has deleted as it was. Errors: those of
// resource.Delete.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Delete(ctx, deps.TrustRules, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "deletetrustrule",
	Endpoints: []frame.Endpoint{
		frame.Delete(trustrule.Definition, open, Do),
		frame.DeleteCollection(trustrule.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{TrustRules: kinds.TrustRules(env)} }

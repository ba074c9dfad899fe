// Package deleteaccesskey is DELETE on one of ownedaccesskeys. The key is refused from the next
// request on.
// Source: Spec 2.5, 4.
package deleteaccesskey

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/accesskey"
	"management.platform.sh/shared/function"
	"management.platform.sh/shared/resource"
)

// Deps is what the operation needs.
type Deps struct{ Keys *accesskey.Registry }

// Input is the request.
type Input = resource.DeleteInput

// Output is the answer.
type Output = runtime.Object

// Do removes one access key, or marks it while finalizers hold it. Errors: NotFound or Conflict as resource.Delete says; nothing is changed then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Delete(ctx, deps.Keys, in)
}

// Function is the operation as it is deployed.
var Function = &function.Function{
	Name:      "deleteaccesskey",
	Endpoints: []function.Endpoint{function.Delete(accesskey.Definition, open, Do)},
}

func open(env *function.Environment) Deps { return Deps{Keys: env.AccessKeys()} }

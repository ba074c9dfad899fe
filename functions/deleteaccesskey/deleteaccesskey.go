// Package deleteaccesskey is DELETE on one of ownedaccesskeys, or on a selection of them. A deleted key is refused from the
// next request on, or from the end of its grace period.
// Source: Spec 2.5, 3, 4; ADR-0009.
package deleteaccesskey

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Keys *accesskey.Registry }

type Input = resource.DeleteInput

type Output = runtime.Object

// Do removes one access key, or marks it as deleted while a grace period or finalizers keep it. With a selection it does the same
// with all selected keys of the caller, and returns them as they were. A caller who deletes the key of the request deletes no
// later key of that name. It returns the errors of resource.Delete.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	if in.UID == "" && in.Name == in.Caller.Key {
		in.UID = types.UID(in.Caller.KeyUID)
	}
	return resource.Delete(ctx, deps.Keys, in)
}

var Function = &frame.Function{
	Name: "deleteaccesskey",
	Endpoints: []frame.Endpoint{
		frame.Delete(accesskey.Definition, open, Do),
		frame.DeleteCollection(accesskey.Definition, open, Do),
	},
}

func open(env *platform.Environment) Deps { return Deps{Keys: kinds.AccessKeys(env)} }

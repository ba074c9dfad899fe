// Package patchaccesskey is PATCH on one of ownedaccesskeys, by JSON patch, merge patch or apply.
// Source: Spec 2.5, 4.
package patchaccesskey

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Keys *accesskey.Registry }

// Input is the request.
type Input = resource.PatchInput

// Output is the answer.
type Output = resource.Result[*model.OwnedAccessKey]

// Do changes a part of one access key. Errors: those of an update, BadRequest, RequestEntityTooLarge or
// UnsupportedMediaType as resource.Patch says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Patch(ctx, deps.Keys, in)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "patchaccesskey",
	Endpoints: []frame.Endpoint{frame.Patch(accesskey.Definition, open, Do).Delivering()},
}

func open(env *platform.Environment) Deps {
	return Deps{Keys: kinds.AccessKeys(env).WithFieldManager(fieldmanager.New)}
}

// Package patchconfig is PATCH on the platform configuration, by JSON patch, merge patch or apply.
// Source: Spec 2.7; ADR-0015.
package patchconfig

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Config *platformconfig.Writer }

type Input = resource.PatchInput

type Output = platformconfig.Result

// Do changes a part of the configuration. Errors: the errors of an update; BadRequest, RequestEntityTooLarge or
// UnsupportedMediaType as platformconfig says; nothing is stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) { return deps.Config.Patch(ctx, in) }

var endpoint = frame.Patch(platformconfig.Definition, open, Do).AlsoUnrecorded()

var Function = &frame.Function{
	Name:      "patchconfig",
	Encrypts:  true,
	Endpoints: []frame.Endpoint{endpoint, endpoint.Alias(platformconfig.Name)},
}

func open(env *platform.Environment) Deps {
	return Deps{Config: platformconfig.Open(env).Writer(fieldmanager.New)}
}

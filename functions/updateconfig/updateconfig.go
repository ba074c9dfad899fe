// Package updateconfig is PUT on the platform configuration. It replaces the whole configuration, except secrets for
// which the client sends back the mark. Source: Spec 2.7; ADR-0015.
package updateconfig

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Config *platformconfig.Writer }

type Input = resource.UpdateInput[*model.Config]

type Output = platformconfig.Result

// Do replaces the configuration. Errors: NotFound, Forbidden, Conflict or Invalid as platformconfig says; nothing is stored
// then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) { return deps.Config.Update(ctx, in) }

var endpoint = frame.Update(platformconfig.Definition, open, Do).AlsoUnrecorded()

var Function = &frame.Function{
	Name:      "updateconfig",
	Encrypts:  true,
	Endpoints: []frame.Endpoint{endpoint, endpoint.Alias(platformconfig.Name)},
}

func open(env *platform.Environment) Deps {
	return Deps{Config: platformconfig.Open(env).Writer(fieldmanager.New)}
}

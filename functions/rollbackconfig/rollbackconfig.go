// Package rollbackconfig is POST on config/{name}/rollback: the configuration of an earlier revision, written as a
// new one. Source: ADR-0015.
package rollbackconfig

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

type Input = resource.SubresourceInput[*model.ConfigRollback]

type Output = platformconfig.RollbackResult

// Do rolls the configuration back. Errors: NotFound, Forbidden, Conflict or Invalid as platformconfig says; nothing is
// stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return deps.Config.Rollback(ctx, in)
}

var endpoint = frame.CreateSubresource(platformconfig.RollbackDefinition, "rollback", open, Do).AlsoUnrecorded()

var Function = &frame.Function{
	Name:      "rollbackconfig",
	Encrypts:  true,
	Endpoints: []frame.Endpoint{endpoint, endpoint.Alias(platformconfig.Name)},
}

func open(env *platform.Environment) Deps {
	return Deps{Config: platformconfig.Open(env).Writer(fieldmanager.New)}
}

// Package getauditevent is GET on one of auditevents: what the audit recorded of one stage of a request. Source: ADR-0034.
package getauditevent

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/auditevent"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Log *auditevent.Log }

type Input = resource.GetInput

type Output = *model.AuditEvent

// Do returns one event. It returns the errors of auditevent.Log.Get.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) { return deps.Log.Get(ctx, in) }

// Function has the encryption key: the URL of the data store is sealed in the state.
var Function = &frame.Function{
	Name:      "getauditevent",
	Encrypts:  true,
	Endpoints: []frame.Endpoint{frame.Get(auditevent.Definition, open, Do)},
}

func open(env *platform.Environment) Deps { return Deps{Log: auditevent.Open(env)} }

// Package listauditevents is GET on auditevents: the events of the caller's requests, or all events for admins, page by page
// and the newest first. Source: ADR-0034.
package listauditevents

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/auditevent"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Log *auditevent.Log }

type Input = resource.ListInput

type Output = runtime.Object

// Do returns a page of events. It returns the errors of auditevent.Log.List.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) { return deps.Log.List(ctx, in) }

// Function has the encryption key: the URL of the data store is sealed in the state. It shares the bound of lists, because a page may
// read many events that the caller does not see, whatever its limit.
var Function = &frame.Function{
	Name:      "listauditevents",
	Encrypts:  true,
	Endpoints: []frame.Endpoint{frame.List(auditevent.Definition, open, Do).Sharing(fairness.Lists)},
}

func open(env *platform.Environment) Deps { return Deps{Log: auditevent.Open(env)} }

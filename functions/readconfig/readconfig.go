// Package readconfig is GET on config and configs: the one platform configuration as a list and by name, without
// its secrets unless an admin asks for them, and its history. Source: Spec 2.7, 4 rows 2 and 3; ADR-0015.
package readconfig

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Config *platformconfig.Current }

// Input is a request for the configuration, or for its history.
type Input = resource.GetInput

// ListInput is a request for the list.
type ListInput = resource.ListInput

// WatchInput is a request to follow the configuration.
type WatchInput = resource.WatchInput

// Get returns the configuration in effect. Errors: NotFound for another name, ServiceUnavailable.
func Get(ctx context.Context, deps Deps, in Input) (*model.Config, error) {
	return deps.Config.Get(ctx, in)
}

// List returns the list that holds it. Errors: BadRequest or ServiceUnavailable as platformconfig says.
func List(ctx context.Context, deps Deps, in ListInput) (runtime.Object, error) {
	return deps.Config.List(ctx, in)
}

// History returns its latest revisions. Errors: NotFound for another name, ServiceUnavailable.
func History(ctx context.Context, deps Deps, in Input) (*model.ConfigHistory, error) {
	return deps.Config.History(ctx, in)
}

// Watch follows the configuration. It returns the errors of resource.Watch.
func Watch(ctx context.Context, deps Deps, in WatchInput) (*resource.Watcher[*model.Config], error) {
	return deps.Config.Watch(ctx, in)
}

var (
	list    = frame.List(platformconfig.Definition, open, List).WithReveal()
	watch   = frame.Watch(platformconfig.Definition, open, Watch)
	get     = frame.Get(platformconfig.Definition, open, Get).WithReveal().AlsoUnrecorded()
	history = frame.GetSubresource(platformconfig.HistoryDefinition, "history", open, History).AlsoUnrecorded()
)

var Function = &frame.Function{
	Name:     "readconfig",
	Encrypts: true,
	Endpoints: frame.WithWatchPaths(
		list, watch, get, history,
		list.Alias(platformconfig.Name), watch.Alias(platformconfig.Name), get.Alias(platformconfig.Name), history.Alias(platformconfig.Name),
	),
}

func open(env *platform.Environment) Deps { return Deps{Config: platformconfig.Open(env)} }

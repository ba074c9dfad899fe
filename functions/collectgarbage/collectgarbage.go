// Package collectgarbage finishes deletions of every resource, on a schedule. It removes objects that are due, continues
// deletions that wait for dependents, and finds objects whose owners are gone. It also removes events from which a watch
// can no longer be resumed. It may run late, twice at once or stop half-way: each write requires what was read, and the
// next run finds what is left. Source: Spec 2.2 (ownerReferences), 3; ADR-0009.
package collectgarbage

import (
	"context"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Graph *gc.Graph }

// Output counts what a run did.
type Output = gc.Collected

// Do does one run, up to a bound; the next run continues. It skips objects that cannot be read, and at the end returns
// the error of the first one.
func Do(ctx context.Context, deps Deps) (Output, error) { return deps.Graph.Sweep(ctx) }

var Function = &frame.Function{
	Name: "collectgarbage",
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		return []slog.Attr{
			slog.Int("removed", done.Removed), slog.Int("marked", done.Marked), slog.Int("changed", done.Changed),
			slog.Int("busy", done.Busy), slog.Int("broken", done.Broken), slog.Bool("unfinished", done.Unfinished),
		}
	}),
}

func open(env *platform.Environment) Deps { return Deps{Graph: kinds.Graph(env)} }

// Package collectgarbage finishes deletions, by the clock: it removes what is due, drives on what waits for the objects
// that it owns, and finds objects whose owners are gone, of every resource. Events that nobody can resume a watch from
// any more it forgets. It may run late, twice at once or stop half-way: each write insists on what was read, and what
// is left is found again. Source: Spec 2.2 (ownerReferences), 3; ADR-0009.
package collectgarbage

import (
	"context"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct{ Graph *resource.Graph }

// Output counts what a run did.
type Output = resource.Collected

// Do is one run, up to a bound; the next run goes on. An object that cannot be read is left alone, and the first of
// them is the error at the end.
func Do(ctx context.Context, deps Deps) (Output, error) { return deps.Graph.Sweep(ctx) }

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "collectgarbage",
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		return []slog.Attr{
			slog.Int("removed", done.Removed), slog.Int("marked", done.Marked), slog.Int("changed", done.Changed),
			slog.Int("busy", done.Busy), slog.Int("broken", done.Broken), slog.Bool("unfinished", done.Unfinished),
		}
	}),
}

func open(env *platform.Environment) Deps { return Deps{Graph: kinds.Open(env).Graph} }

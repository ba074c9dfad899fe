package environment

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/audit"
)

// Sinks are what a shell can keep audit events in: each kind costs the size of its library. Source: ADR-0016.
type Sinks struct {
	Openers []audit.Opener
	// Flush makes requests wait until their events are kept: for processes that are frozen when they have answered.
	Flush bool
}

// BeginAudit records what happens in an environment, as its configuration says.
func BeginAudit(env *frame.Environment, sinks Sinks) {
	env.Audit = audit.NewTrail(audit.Options{Config: env.Config, Openers: sinks.Openers, Log: env.Log, Flush: sinks.Flush})
}

// EndAudit keeps the events that wait, until ctx ends. It is for a process that ends.
func EndAudit(ctx context.Context, env *frame.Environment) {
	if trail, ok := env.Audit.(*audit.Trail); ok {
		trail.Close(ctx)
	}
}

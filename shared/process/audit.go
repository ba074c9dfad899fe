package process

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/audit"
)

// Sinks are what a shell can keep audit events in: each kind costs the size of its library. Source: ADR-0016.
type Sinks struct {
	Openers []audit.Opener
	// Metrics counts events. nil: nothing is counted.
	Metrics audit.Metrics
	// Flush makes requests wait until their events are kept: for processes that are frozen when they have answered.
	Flush bool
}

// BeginAudit records what a server does, as its configuration says.
func BeginAudit(server *frame.Server, sinks Sinks) {
	env := server.Env
	server.Audit = audit.NewTrail(audit.Options{
		Config: env.Config, Openers: sinks.Openers, Log: env.Log, Metrics: sinks.Metrics, Flush: sinks.Flush,
	})
}

// EndAudit writes the events that wait to their sinks, until ctx ends. It is for a process that ends.
func EndAudit(ctx context.Context, server *frame.Server) {
	if trail, ok := server.Audit.(*audit.Trail); ok {
		trail.Close(ctx)
	}
}

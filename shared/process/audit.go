package process

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/kinds/platformconfig"
)

// Sinks are the kinds of audit sinks that a shell supports. Each kind adds the size of its library to the program.
// Source: ADR-0016.
type Sinks struct {
	Openers []audit.Opener
	// Metrics counts events. Nil: nothing is counted.
	Metrics audit.Metrics
	// Flush makes each request wait until its events are stored. It is for processes that are frozen after each
	// response.
	Flush bool
	// Brief has the same meaning as in audit.Options.
	Brief bool
}

// BeginAudit starts the audit of a server. The server's configuration decides what is recorded.
func BeginAudit(server *frame.Server, sinks Sinks) {
	env := server.Env
	platformconfig.Open(env).Sinks = audit.Checker(sinks.Openers)
	env.AuditEvents = audit.ReadWith(sinks.Openers, env.Config)
	server.Audit = audit.NewTrail(audit.Options{
		Config: env.Config, Openers: sinks.Openers, Log: env.Log, Metrics: sinks.Metrics, Flush: sinks.Flush, Brief: sinks.Brief,
	})
}

// EndAudit writes the waiting events to their sinks, until ctx ends. It is for a process that stops.
func EndAudit(ctx context.Context, server *frame.Server) {
	if trail, ok := server.Audit.(*audit.Trail); ok {
		trail.Close(ctx)
	}
}

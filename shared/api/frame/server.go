package frame

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Server serves functions in an environment. Fields are set once, before the first use; it is safe for concurrent use
// after.
type Server struct {
	// Env is the world that operations are opened with.
	Env *platform.Environment
	// Authenticator turns credentials into callers.
	Authenticator Authenticator
	// Audit records who asked for what. nil: nothing is recorded.
	Audit Audit
	// Configuration keeps Env.Config up to date. nil: Env.Config needs no help.
	Configuration Configuration
	// Metrics counts. nil: nothing is counted.
	Metrics Metrics
	// Tracer makes spans. nil: there are none.
	Tracer trace.Tracer
	// Watch is how long watches last here. The zero value is good where answers can be streamed.
	Watch WatchSettings

	once sync.Once
	// draining is done when EndWatches was called.
	draining   context.Context
	endWatches context.CancelFunc
}

// Authenticator turns credentials into callers. Package auth's Authenticator does it. Implementations are safe for
// concurrent use.
type Authenticator interface {
	// Header authenticates the Authorization header of a request, and counts as a use of the credential. Prefetch names an
	// object that is read in the same round trip, if that is possible; its record is nil otherwise, or where there is none.
	Header(ctx context.Context, header http.Header, prefetch string) (identity.Caller, *store.Record, error)
	// Again authenticates the header of a request that is still being answered. It does not count as a use.
	Again(ctx context.Context, header http.Header) (identity.Caller, error)
}

// Audit records what happens. Package audit's Trail does it. Implementations are safe for concurrent use.
type Audit interface {
	// Enabled tells whether anything is recorded at this moment.
	Enabled() bool
	// Choose decides how much of a request is recorded.
	Choose(asked audit.Asked) audit.Choice
	// Record takes events, in which no text of hidden may remain. An error means that a choice refuses the request whose
	// event cannot be recorded.
	Record(events []audit.Chosen, hidden ...secret.String) error
}

// Configuration keeps the configuration of a process up to date. Package platformconfig's Source does it. Implementations
// are safe for concurrent use.
type Configuration interface {
	// Refresh brings the configuration up to date, if it may be old. An error means that the process has none at all.
	Refresh(ctx context.Context) error
}

// tracer returns the Tracer, or one that makes no spans.
func (s *Server) tracer() trace.Tracer {
	if s.Tracer == nil {
		return noop.NewTracerProvider().Tracer("")
	}
	return s.Tracer
}

// metrics returns the Metrics, or some that count nothing.
func (s *Server) metrics() Metrics {
	if s.Metrics == nil {
		return uncounted{}
	}
	return s.Metrics
}

// refresh brings the configuration up to date. Without any configuration nothing can be decided.
func (s *Server) refresh(ctx context.Context) error {
	if s.Configuration == nil {
		return nil
	}
	err := s.Configuration.Refresh(ctx)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return apierror.Unavailable().Because(err)
}

// drain returns the context that ends all watches, and what ends it.
func (s *Server) drain() (context.Context, context.CancelFunc) {
	s.once.Do(func() { s.draining, s.endWatches = context.WithCancel(context.Background()) }) //nolint:gosec // EndWatches cancels
	return s.draining, s.endWatches
}

// EndWatches ends the watches that are open, and those that begin later as soon as they have begun. It is for a process
// that drains.
func (s *Server) EndWatches() {
	_, end := s.drain()
	end()
}

// Run does the scheduled work of a function once, within the deadline of ctx.
func (s *Server) Run(ctx context.Context, f *Function) error {
	return s.run(ctx, f.Schedule, f.Name)
}

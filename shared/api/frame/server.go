package frame

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Server serves functions in an environment. Set its fields before the first use; after that, it is safe for concurrent
// use.
type Server struct {
	// Env is the environment that operations are opened with.
	Env *platform.Environment
	// Authenticator turns credentials into callers.
	Authenticator Authenticator
	// Audit records requests and their callers. Nil: nothing is recorded.
	Audit Audit
	// Configuration keeps Env.Config up to date. Nil: nothing refreshes Env.Config.
	Configuration Configuration
	// Metrics counts requests, watches and runs. Nil: nothing is counted.
	Metrics Metrics
	// Notes returns the state that has the notes about scheduled runs. Nil: no run is noted.
	Notes func() store.Store
	// Places shares the process between callers. Nil: every request has a place.
	Places *fairness.Places
	// Proxies is the number of trusted proxies in front of the process. Each of them adds the address of its client to the end of
	// X-Forwarded-For. 0: the client is at the address of the connection.
	Proxies int
	// Rates bound how fast requests come.
	Rates fairness.Rates
	// Tracer creates spans. Nil: there are no spans.
	Tracer trace.Tracer
	// Watch says how long watches last. The zero value is right if responses can be streamed.
	Watch WatchSettings

	once sync.Once
	// draining is done once EndWatches has been called.
	draining   context.Context
	endWatches context.CancelFunc
}

// Authenticator turns credentials into callers. Package auth implements it. Implementations are safe for concurrent use.
type Authenticator interface {
	// Header authenticates the Authorization header of a request, and counts as a use of the credential. Ahead is an
	// object to read in the same round trip; the zero value: none. The records are the records of its resource that were read, by
	// name: the record of the object is missing if that is not possible or if the object does not exist.
	Header(ctx context.Context, header http.Header, ahead store.Ref) (identity.Caller, map[string]store.Record, error)
	// Reauthenticate authenticates the Authorization header of a request whose response is still being sent. It does not count as a
	// use of the credential.
	Reauthenticate(ctx context.Context, header http.Header) (identity.Caller, error)
}

// Audit records requests. Package audit's Trail implements it. Implementations are safe for concurrent use.
type Audit interface {
	// Enabled reports whether anything is recorded at present.
	Enabled() bool
	// Evaluate decides how much of a request is recorded.
	Evaluate(request audit.Attributes) audit.Decision
	// Hold keeps the sinks open for a request that may change them. Release must be called.
	Hold() *audit.Held
	// Record records events. It removes the texts of hidden from them. An error means that an event cannot be recorded and
	// that its decision then refuses the request.
	Record(events []audit.Entry, hidden ...secret.String) error
}

// Configuration keeps the configuration of a process up to date. Package platformconfig's Current implements it.
// Implementations are safe for concurrent use.
type Configuration interface {
	// Refresh brings the configuration up to date if it may be outdated. An error means that the process has no
	// configuration at all.
	Refresh(ctx context.Context) error
}

// tracer returns the Tracer, or one that creates no spans.
func (s *Server) tracer() trace.Tracer {
	if s.Tracer == nil {
		return noop.NewTracerProvider().Tracer("")
	}
	return s.Tracer
}

// metrics returns the Metrics, or one that counts nothing.
func (s *Server) metrics() Metrics {
	if s.Metrics == nil {
		return uncounted{}
	}
	return s.Metrics
}

// refresh brings the configuration up to date. Without any configuration, nothing can be decided: it then returns an
// error.
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

// drain returns the context that ends all watches, and the function that cancels it.
func (s *Server) drain() (context.Context, context.CancelFunc) {
	s.once.Do(func() { s.draining, s.endWatches = context.WithCancel(context.Background()) }) //nolint:gosec // EndWatches cancels
	return s.draining, s.endWatches
}

// EndWatches ends all open watches. Watches that begin later end at once. It is for a process that drains.
func (s *Server) EndWatches() {
	_, end := s.drain()
	end()
}

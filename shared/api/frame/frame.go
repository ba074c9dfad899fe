package frame

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// requestIDHeader carries the id of a request in both directions.
const requestIDHeader = "X-Request-Id"

// frame serves one endpoint.
type frame struct {
	server   *Server
	function string
	endpoint Endpoint
	operate  operation
}

func newFrame(server *Server, name string, endpoint Endpoint) *frame {
	return &frame{server: server, function: name, endpoint: endpoint, operate: endpoint.open(server.Env)}
}

// call is a request as the frame understood it.
type call struct {
	http            *http.Request
	now             func() time.Time
	query           url.Values
	id              string
	caller          identity.Caller
	namespace, name string
	// reveal tells that secrets are asked for in clear.
	reveal bool
	// unconfigured is why there is no configuration, without which nothing is decided.
	unconfigured error
	// begun is when it came in.
	begun time.Time
	// auditID is that of its events; empty where there is no audit. recording is nil where nothing is recorded of it.
	auditID   string
	recording *recording
	// sent is the body, once it was read; panicked tells that the operation or its encoding was.
	sent     []byte
	panicked bool
	// form is that of the answer, and include what the rows of a Table hold beside their cells.
	form    form
	include metav1.IncludeObjectPolicy
	// prefetched is the record of that name, where the authenticator has read it along with the caller's key.
	prefetched *store.Record
	body       func() ([]byte, error)
	// random gives the same bytes whenever the same request is repeated. Nil: nobody asked for that.
	random io.Reader
	// may asks whether the caller may do another verb to the same.
	may func(verb string) error
}

// ServeHTTP is the order of the phases.
func (f *frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := f.server.tracer().Start(ctx, f.function, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	done := f.server.metrics().Request(f.function)

	c := &call{http: r, now: f.server.Env.Now, id: requestID(r), begun: begun, namespace: r.PathValue("namespace"), name: r.PathValue("name")}
	if !f.endpoint.unconfigured {
		c.unconfigured = f.server.refresh(ctx)
	}
	if f.audited() {
		c.auditID = uuid.NewString()
		w.Header().Set(auditIDHeader, c.auditID)
		// A handler that gives up its connection comes to no end.
		defer func() {
			if c.recording != nil && !c.recording.settled {
				c.panicked = true
				_ = f.conclude(c, nil, &reply{status: http.StatusInternalServerError}, nil)
			}
		}()
	}
	result, err := f.phases(ctx, c)
	if err == nil && result.stream != nil {
		err = f.started(c)
	}
	if err == nil && result.stream != nil {
		reply, attrs, err := f.serve(ctx, w, c, result.stream)
		// The answer is out: an event that cannot be recorded now refuses nothing.
		_ = f.conclude(c, nil, reply, err)
		took := time.Since(begun)
		done(f.verb(c), reply.status, took)
		f.describe(span, c, reply)
		f.log(ctx, span, c, reply, err, took, attrs...)
		return
	}
	reply, err := f.render(c, result, err)
	if unrecorded := f.conclude(c, result, reply, err); unrecorded != nil {
		reply, err = f.render(c, nil, unrecorded)
	}
	if reply.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="management"`)
	}
	w.Header().Set(requestIDHeader, c.id)
	f.addCustomHeaders(w.Header())
	reply.write(w, r.Method)

	took := time.Since(begun)
	done(f.verb(c), reply.status, took)
	f.describe(span, c, reply)
	f.log(ctx, span, c, reply, err, took)
}

// addCustomHeaders sets the headers of the configuration on the answers of endpoints that are about authentication. The
// platform's own stay as they are.
// Source: Spec 2.7 (customHttpHeaders); ADR-0015.
func (f *frame) addCustomHeaders(header http.Header) {
	if !f.endpoint.authenticates {
		return
	}
	settings := f.server.Env.Config().Auth
	if settings == nil {
		return
	}
	for name, value := range settings.CustomHTTPHeaders {
		if header.Get(name) == "" {
			header.Set(name, value)
		}
	}
}

// phases runs everything that can be refused, and turns a panic into an error.
func (f *frame) phases(ctx context.Context, c *call) (result *answer, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			c.panicked = true
			result, err = nil, panicked(problem)
		}
	}()
	query, unreadable := url.ParseQuery(c.http.URL.RawQuery)
	c.query = query
	c.reveal = f.endpoint.reveals && flag(query, "reveal")
	ctx, cancel, malformed := deadline(ctx, query)
	defer cancel()
	defer func() {
		// To one who comes too late the state seems to be away.
		if over(ctx) && errors.Is(err, store.ErrUnavailable) {
			err = apierror.Timeout().Because(err)
		}
	}()
	if unreadable != nil {
		malformed = apierror.BadRequest("the query of the URL cannot be read", nil).Because(unreadable)
	}
	if c.unconfigured != nil {
		return nil, c.unconfigured
	}
	if public := f.endpoint.public; public == nil || !public(f.server.Env.Config()) {
		prefetch := ""
		if f.endpoint.prefetched {
			prefetch = c.name
		}
		if c.caller, c.prefetched, err = f.server.Authenticator.Header(ctx, c.http.Header, prefetch); err != nil {
			return nil, err
		}
		if err := f.observe(c); err != nil {
			return nil, err
		}
		if err := auth.RefuseImpersonation(c.caller, c.http.Header); err != nil {
			return nil, err
		}
		if err := f.authorize(c); err != nil {
			return nil, err
		}
	} else if err := f.observe(c); err != nil {
		return nil, err
	}
	// Nothing is said about a request before it is known who asks.
	if malformed != nil {
		return nil, malformed
	}
	c.body = func() ([]byte, error) {
		data, err := readBody(c.http.Body)
		c.sent = data
		return data, err
	}
	c.may = func(verb string) error {
		request := f.request(c)
		request.Verb = verb
		return auth.Authorize(c.caller, request)
	}
	if err := f.agree(c); err != nil {
		return nil, err
	}
	return f.operate(c.recording.watchRemovals(ctx), c)
}

// panicked is a panic as an error. A handler that gives up its connection is none.
func panicked(problem any) error {
	if failure, ok := problem.(error); ok && errors.Is(failure, http.ErrAbortHandler) {
		panic(problem)
	}
	return apierror.Internal(fmt.Errorf("panic: %v\n%s", problem, debug.Stack()))
}

// verb is what the call does: that of the endpoint, or reveal.
func (f *frame) verb(c *call) string {
	if c.reveal {
		return verbReveal
	}
	return f.endpoint.Verb
}

// verbReveal is reading secrets in clear. Source: ADR-0015.
const verbReveal = "reveal"

// request is the call as the scope sees it.
func (f *frame) request(c *call) scope.Request {
	request := scope.Request{Verb: f.verb(c)}
	if f.endpoint.Resource.Resource == "" {
		request.Path = c.http.URL.Path
		return request
	}
	request.Group, request.Resource = f.endpoint.Resource.Group, f.endpoint.Resource.Resource
	request.Subresource = f.endpoint.Subresource
	request.Namespace, request.Name = c.namespace, c.name
	if f.endpoint.Verb == "list" || f.endpoint.Verb == "watch" {
		// A list of one name is a question about that object.
		if selector, err := fields.ParseSelector(c.query.Get("fieldSelector")); err == nil {
			request.Name, _ = selector.RequiresExactMatch("metadata.name")
		}
	}
	request.Project = f.server.Env.Project(c.namespace)
	return request
}

// over tells whether a request has been given up or is past its deadline, which connections may notice first.
func over(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(end)
}

// deadline bounds the request by MaxDuration and by the query parameter timeout. It does so, too, when that
// cannot be read.
func deadline(ctx context.Context, query url.Values) (context.Context, context.CancelFunc, error) {
	limit := MaxDuration
	var malformed error
	if text := query.Get("timeout"); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil || asked < 0 {
			malformed = unreadable("timeout", text, "must be a duration such as 10s")
		} else if asked > 0 {
			limit = min(limit, asked)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	return bounded, cancel, malformed
}

func readBody(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, MaxBodyBytes+1))
	if err != nil {
		return nil, apierror.BadRequest("the body could not be read", nil).Because(err)
	}
	if len(data) > MaxBodyBytes {
		return nil, apierror.TooLarge(fmt.Sprintf("the body is larger than %d bytes", MaxBodyBytes))
	}
	return data, nil
}

// requestID takes the id that a gateway gave the request, if it is a plain word, or makes one.
func requestID(r *http.Request) string {
	given := r.Header.Get(requestIDHeader)
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	if given != "" && len(given) <= 64 && !strings.ContainsFunc(given, func(c rune) bool { return !plain(c) }) {
		return given
	}
	var id [16]byte
	_, _ = rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

func (f *frame) describe(span trace.Span, c *call, reply *reply) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("http.request.method", c.http.Method),
		attribute.String("url.path", audit.Path(c.http.URL.Path)),
		attribute.Int("http.response.status_code", reply.status),
		attribute.String("platform.request_id", c.id),
	)
	if reply.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, reply.reason)
	}
}

// log writes the one line of a request: at debug level where it succeeded, at info level where it was refused, and at
// error level where the platform has failed. Bodies, headers and queries are not in it.
func (f *frame) log(ctx context.Context, span trace.Span, c *call, reply *reply, err error, took time.Duration, more ...slog.Attr) {
	level := slog.LevelDebug
	if reply.status >= http.StatusBadRequest || reply.reason != "" {
		level = slog.LevelInfo
	}
	if reply.status >= http.StatusInternalServerError || err != nil && apierror.From(err).Status().Code >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	if !f.server.Env.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16+len(more))
	attrs = append(attrs,
		slog.String("function", f.function),
		slog.String("requestID", c.id),
		slog.String("method", c.http.Method),
		slog.String("path", audit.Path(c.http.URL.Path)),
		slog.String("verb", f.verb(c)),
		slog.Int("status", reply.status),
		slog.Float64("ms", float64(took.Microseconds())/1000),
	)
	if c.caller.Key != "" {
		attrs = append(attrs, slog.String("caller", c.caller.Owner.String()), slog.String("key", c.caller.Key))
	}
	if reply.reason != "" {
		attrs = append(attrs, slog.String("reason", reply.reason))
	}
	if id := span.SpanContext().TraceID(); id.IsValid() {
		attrs = append(attrs, slog.String("traceID", id.String()))
	}
	attrs = append(attrs, more...)
	if cause := causeOf(err); cause != nil {
		attrs = append(attrs, slog.String("cause", cause.Error()))
	}
	f.server.Env.Log.LogAttrs(ctx, level, "request", attrs...)
}

// causeOf is what the log may know of an error beyond what the caller was told.
func causeOf(err error) error {
	if err == nil {
		return nil
	}
	return apierror.From(err).Unwrap()
}

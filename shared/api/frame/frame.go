package frame

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// requestIDHeader carries the id of a request, in requests and responses.
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

// call is a request as the frame has parsed it.
type call struct {
	endpoint *Endpoint
	http     *http.Request
	control  *http.ResponseController
	now      func() time.Time
	id       string
	timing
	parameters
	authenticated
	audited
	negotiated
	// unconfigured is the reason why there is no configuration. Without a configuration, the request is refused.
	unconfigured error
	// client is the address of the client, without a port. Only calls of forms have it.
	client string
	// body reads the body of the request.
	body func() ([]byte, error)
	// random returns the same bytes each time the same request is repeated. Nil: the request has no Idempotency-Key.
	random io.Reader
	// places are the places in the process that the request holds, by class.
	places [fairness.Classes]fairness.Place
}

// timing is when a request was received, and its deadline.
type timing struct{ received, end time.Time }

// parameters are what the URL of a request says.
type parameters struct {
	query           url.Values
	namespace, name string
	// reveal reports whether the request asks for secrets in plain text.
	reveal bool
	// request is the call in the form that scopes and the audit policy match.
	request scope.Request
}

// authenticated is what authentication found out.
type authenticated struct {
	caller identity.Caller
	// prefetched has the record with the name of the request, if the authenticator has read it together with the caller's
	// key, and what else it has read.
	prefetched map[string]store.Record
	// may returns an error if the caller is not allowed another verb on the same object.
	may func(verb string) error
}

// audited is what the audit event of a request needs.
type audited struct {
	// auditID is the audit ID of the request's events; empty if there is no audit. recording is nil if there is none, and before
	// the caller is known.
	auditID   string
	recording *recording
	// annotations are the annotations of an answer that is a refusal and no error.
	annotations map[string]string
	// sent is the body, once it has been read. panicked reports whether the operation, or the encoding of its response, panicked.
	sent     []byte
	panicked bool
}

// negotiated is the form of a response.
type negotiated struct {
	form form
	// include is how much of each object the rows of a Table contain.
	include metav1.IncludeObjectPolicy
}

// ServeHTTP serves a request: it runs the phases in their order.
func (f *frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	if !f.endpoint.noSession {
		r = auth.WithSession(r)
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := f.server.tracer().Start(ctx, f.function, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	done := f.server.metrics().Request(f.function)

	c := &call{
		endpoint: &f.endpoint, http: r, control: http.NewResponseController(w), now: f.server.Env.Now, id: requestID(r),
		timing: timing{received: received}, parameters: parameters{namespace: r.PathValue("namespace"), name: r.PathValue("name")},
	}
	if f.endpoint.html {
		c.client = f.client(r)
	}
	switch styled := f.endpoint.themed; {
	case !f.endpoint.noConfig:
		c.unconfigured = f.server.refresh(ctx)
	case styled != nil && styled(r.URL.Path):
		_ = f.server.refresh(ctx) // without a configuration, the document is the built-in one
	}
	if f.audited() {
		c.auditID = uuid.NewString()
		w.Header().Set(auditIDHeader, c.auditID)
		defer func() { c.recording.release() }()
		// A handler that aborts its connection does not return.
		defer func() {
			if c.recording != nil && !c.recording.settled {
				c.panicked = true
				_ = f.conclude(c, nil, &reply{status: http.StatusInternalServerError}, nil)
			}
		}()
	}
	defer c.releasePlaces()
	result, err := f.phases(ctx, c)
	if over := (*store.QuotaError)(nil); errors.As(err, &over) {
		f.server.metrics().Refused("quota of " + over.Quota)
	}
	if err == nil && result.stream != nil {
		err = f.recordStreamStart(c)
	}
	if err == nil && result.stream != nil {
		c.keepWatchPlaces()
		space := roomOf(w)
		reply, attrs, err := f.serve(ctx, w, c, result.stream)
		if over := space.check(); over != nil {
			reply, err = f.render(c, nil, over)
			f.setHeaders(w, c, reply)
			reply.write(w, r)
		}
		// The response has been sent: it is too late to refuse the request if its event cannot be recorded.
		_ = f.conclude(c, nil, reply, err)
		took := time.Since(received)
		done(f.verb(c), reply.status, took)
		f.describe(span, c, reply)
		f.log(ctx, span, c, reply, err, took, attrs...)
		return
	}
	if err == nil && result.rest != nil && result.rest.Empty != nil {
		var sent *reply
		if result, sent, err = f.list(ctx, w, c, result); sent != nil {
			f.endPartialList(ctx, span, c, sent, err, done)
			return
		}
	}
	reply, err := f.render(c, result, err)
	result, reply, err = f.fit(w, c, result, reply, err)
	if unrecorded := f.conclude(c, result, reply, err); unrecorded != nil {
		reply, err = f.render(c, nil, unrecorded)
	}
	f.setHeaders(w, c, reply)
	// A client that receives slowly does not keep others waiting.
	c.places[fairness.Heavy].Release()
	if sent := reply.write(w, r); sent && result != nil {
		resource.Release(result.object)
	}

	took := time.Since(received)
	done(f.verb(c), reply.status, took)
	f.describe(span, c, reply)
	f.log(ctx, span, c, reply, err, took)
}

// addCustomHeaders sets the headers of the configuration on the responses of endpoints about authentication. It does not
// overwrite the platform's own headers.
// Source: Spec 2.7 (customHttpHeaders); ADR-0015.
func (f *frame) addCustomHeaders(header http.Header) {
	if !f.endpoint.customHeaders {
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

// phases runs the phases that can refuse a request, and turns a panic into an error.
func (f *frame) phases(ctx context.Context, c *call) (result *answer, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			c.panicked = true
			result, err = nil, panicked(problem)
		}
	}()
	tooLarge := checkHeader(c.http.Header)
	query, unreadable := url.ParseQuery(c.http.URL.RawQuery)
	c.query = query
	c.reveal = f.endpoint.Reveals && flag(query, "reveal")
	c.request = f.request(c)
	ctx, cancel, malformed := deadline(ctx, query)
	defer cancel()
	c.end, _ = ctx.Deadline()
	defer func() {
		// After the deadline, an unreachable state is reported as a timeout.
		if isOver(ctx) && errors.Is(err, store.ErrUnavailable) {
			err = apierror.Timeout().Because(err)
		}
	}()
	if unreadable != nil {
		malformed = apierror.BadRequest("the query of the URL cannot be read", nil).Because(unreadable)
	}
	if tooLarge != nil {
		return nil, tooLarge
	}
	if c.unconfigured != nil {
		return nil, c.unconfigured
	}
	if public := f.endpoint.public; public == nil || !public(f.server.Env.Config()) {
		if err := f.authenticate(ctx, c); err != nil {
			return nil, err
		}
		if err := f.startRecording(c); err != nil {
			return nil, err
		}
		if err := auth.RefuseImpersonation(c.caller, c.http.Header); err != nil {
			return nil, err
		}
		c.caller = c.caller.ForVerb(c.request.Verb)
		err := auth.Authorize(c.caller, c.request)
		c.recording.annotateDecision(err)
		if err != nil {
			return nil, err
		}
	} else {
		if err := f.takeAnonymous(c); err != nil {
			return nil, err
		}
		if err := f.startRecording(c); err != nil {
			return nil, err
		}
	}
	// A malformed query is reported only after authorization: others learn nothing about their request.
	if malformed != nil {
		return nil, malformed
	}
	c.body = func() ([]byte, error) {
		r := *c.http
		body := &paced{ReadCloser: r.Body, control: c.control, begun: time.Now(), end: c.end}
		r.Body = body
		data, err := readBody(ctx, &r)
		body.stop()
		c.sent = data
		return data, err
	}
	c.may = func(verb string) error {
		request := c.request
		request.Verb = verb
		return auth.Authorize(c.caller, request)
	}
	if err := f.negotiate(c); err != nil {
		return nil, err
	}
	if err := f.takePlaces(ctx, c); err != nil {
		return nil, err
	}
	operating := c.recording.watchRemovals(ctx)
	switch c.http.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch: // the options of a DELETE may be in its body, which its binder reads
		if c.query.Has("dryRun") {
			operating = store.ReadOnly(operating)
		}
	}
	result, err = f.operate(operating, c)
	if f.isAboutSecret(err) {
		if slow := f.server.Rates.Failures.Take(f.address(c), thisAddress, c.now()); slow != nil {
			return nil, slow
		}
	}
	return result, err
}

// isAboutSecret reports whether an error is about a secret that the request brought. A secret that is refused may be one that another
// object has, so that the request is as good as a failed authentication. Source: ADR-0022.
func (f *frame) isAboutSecret(err error) bool {
	if err == nil || f.endpoint.secretField == "" {
		return false
	}
	details := apierror.From(err).Status().Details
	return details != nil && slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == f.endpoint.secretField
	})
}

// authenticate finds the caller of a request, within the bounds on authentications of the client's address and on requests of the
// caller. An address with too many failures gets 429 in place of 401. It checks every credential nevertheless, so that other
// clients at the address of an attacker who guesses are served. Source: ADR-0020.
func (f *frame) authenticate(ctx context.Context, c *call) error {
	given := c.http.Header.Get("Authorization") != ""
	if given {
		place, err := f.server.Places.Take(ctx, fairness.Authentications, f.address(c), thisAddress)
		if err != nil {
			return err
		}
		defer place.Release()
	} else if err := f.takeAnonymous(c); err != nil {
		return err
	}
	var ahead store.Ref
	if f.endpoint.prefetch != nil {
		ahead = f.endpoint.prefetch(c.namespace, c.name)
	}
	var err error
	c.caller, c.prefetched, err = f.server.Authenticator.Header(ctx, c.http.Header, ahead)
	switch {
	case err == nil:
		name := c.caller.Owner.String()
		return f.server.Rates.Callers.Take(name, name, c.now())
	case given && apierror.From(err).Status().Code == http.StatusUnauthorized:
		if slow := f.server.Rates.Failures.Take(f.address(c), thisAddress, c.now()); slow != nil {
			return slow
		}
	}
	return err
}

// takeAnonymous notes a request without a credential.
func (f *frame) takeAnonymous(c *call) error {
	return f.server.Rates.Anonymous.Take(f.address(c), thisAddress, c.now())
}

// panicked turns a panic into an error. It panics again for http.ErrAbortHandler, with which a handler aborts its
// connection.
func panicked(problem any) error {
	if failure, ok := problem.(error); ok && errors.Is(failure, http.ErrAbortHandler) {
		panic(problem)
	}
	return apierror.Internal(fmt.Errorf("panic: %v\n%s", problem, debug.Stack()))
}

// verb returns the verb of the call: the verb of the endpoint, or reveal.
func (f *frame) verb(c *call) string {
	if c.reveal {
		return verbReveal
	}
	return f.endpoint.Verb
}

// verbReveal is the verb for reading secrets in plain text. Source: ADR-0015.
const verbReveal = "reveal"

// request returns the call in the form that scopes match.
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
		// A list that selects one name counts as a request for that object.
		if checkSelector(c.query, "fieldSelector") == nil {
			if selector, err := fields.ParseSelector(c.query.Get("fieldSelector")); err == nil {
				request.Name, _ = selector.RequiresExactMatch("metadata.name")
			}
		}
	}
	request.Project = f.server.Env.Project(c.namespace)
	return request
}

// isOver reports whether a request is canceled or past its deadline. It compares the clock as well, since a connection may
// notice the deadline before the context does.
func isOver(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(end)
}

// deadline bounds the request by MaxDuration and by the query parameter timeout. If timeout is malformed, it returns an
// error as well as a context bounded by MaxDuration.
func deadline(ctx context.Context, query url.Values) (context.Context, context.CancelFunc, error) {
	limit := MaxDuration
	var malformed error
	if text := query.Get("timeout"); text != "" {
		timeout, err := time.ParseDuration(text)
		if err != nil || timeout < 0 {
			malformed = unreadable("timeout", text, "must be a duration such as 10s")
		} else if timeout > 0 {
			limit = min(limit, timeout)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	return bounded, cancel, malformed
}

// paced is a body that must arrive at limits.BodyRate, but for limits.BodyGrace. A client that sends it more slowly would keep its place from
// others. A server that does not support deadlines has a limit of its own.
type paced struct {
	io.ReadCloser
	control *http.ResponseController
	begun   time.Time
	// end is the deadline of the request.
	end  time.Time
	read int64
}

func (p *paced) Read(into []byte) (int, error) {
	due := p.begun.Add(limits.BodyGrace + time.Duration(p.read)*time.Second/limits.BodyRate)
	if due.After(p.end) {
		due = p.end
	}
	_ = p.control.SetReadDeadline(due)
	n, err := p.ReadCloser.Read(into)
	p.read += int64(n)
	return n, err
}

// isTimeout reports whether an error says that a deadline for reading has passed.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// stop leaves the deadline of the request.
func (p *paced) stop() { _ = p.control.SetReadDeadline(p.end) }

// readBody reads the body of a request until the request's deadline. It discards a body that says that it is too large: it
// reads as much as of others, because many clients read no answer while they send.
func readBody(ctx context.Context, r *http.Request) ([]byte, error) {
	tooLarge := apierror.TooLarge(fmt.Sprintf("the body is larger than %d bytes", MaxBodyBytes))
	if r.ContentLength > MaxBodyBytes {
		_, _ = io.CopyN(io.Discard, r.Body, MaxBodyBytes+1)
		return nil, tooLarge
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, MaxBodyBytes+1))
	switch {
	case err != nil && (isOver(ctx) || isTimeout(err)):
		return nil, apierror.BodyTimeout().Because(err)
	case err != nil:
		return nil, apierror.BadRequest("the body could not be read", nil).Because(err)
	case len(data) > MaxBodyBytes:
		return nil, tooLarge
	case ctx.Err() != nil:
		// The client is gone, or its time is over: nothing is decoded.
		return nil, ctx.Err()
	}
	return data, nil
}

// maxMethod is the longest method that is logged and recorded. All methods of HTTP are shorter.
const maxMethod = 16

// method returns the method of a request as it may be logged.
func method(r *http.Request) string {
	if len(r.Method) > maxMethod {
		return "other"
	}
	return r.Method
}

// requestID returns the id that a gateway gave the request. If there is none, or if it is longer than 64 characters, contains
// a credential, or contains other characters than ASCII letters, digits, hyphens, underscores and dots, it generates an id.
func requestID(r *http.Request) string {
	given := r.Header.Get(requestIDHeader)
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	if given != "" && len(given) <= 64 && !strings.ContainsFunc(given, func(c rune) bool { return !plain(c) }) &&
		audit.Text(given, bearers(r)...) == given {
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
		attribute.String("http.request.method", method(c.http)),
		attribute.String("url.path", audit.Text(c.http.URL.Path, credentials(c.http)...)),
		attribute.Int("http.response.status_code", reply.status),
		attribute.String("platform.request_id", c.id),
	)
	if isFailure(reply.status) {
		span.SetStatus(codes.Error, reply.reason)
	}
}

// isFailure reports whether a status says that the platform failed. A deployment that lacks what a request needs (501) has not failed.
func isFailure(status int) bool {
	return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// log writes the one log line of a request: at debug level if it succeeded, at info level if it was refused, and at error
// level if the platform failed. The line contains no bodies, headers or queries.
func (f *frame) log(ctx context.Context, span trace.Span, c *call, reply *reply, err error, took time.Duration, more ...slog.Attr) {
	level := slog.LevelDebug
	if reply.status >= http.StatusBadRequest || reply.reason != "" {
		level = slog.LevelInfo
	}
	if isFailure(reply.status) || err != nil && isFailure(int(apierror.From(err).Status().Code)) {
		level = slog.LevelError
	}
	if !f.server.Env.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16+len(more))
	hidden := credentials(c.http)
	attrs = append(attrs,
		slog.String("function", f.function),
		slog.String("requestID", c.id),
		slog.String("method", method(c.http)),
		slog.String("path", audit.Text(c.http.URL.Path, hidden...)),
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
	switch cause := causeOf(err); {
	case cause != nil:
		attrs = append(attrs, slog.String("cause", audit.Text(cause.Error(), hidden...)))
	case err == nil && len(c.annotations) > 0:
		attrs = append(attrs, slog.String("cause", audit.Text(joinAnnotations(c.annotations), hidden...)))
	}
	f.server.Env.Log.LogAttrs(ctx, level, "request", attrs...)
}

// joinAnnotations returns annotations as a text, in the order of their names.
func joinAnnotations(annotations map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		parts = append(parts, strings.TrimPrefix(name, model.GroupName+"/")+": "+annotations[name])
	}
	return strings.Join(parts, ", ")
}

// causeOf returns the part of an error that the log may contain and the caller is not told.
func causeOf(err error) error {
	if err == nil {
		return nil
	}
	return apierror.From(err).Unwrap()
}

// Package lambda runs one function of the catalog on AWS Lambda. It turns an event of an HTTP API, a REST API, a load
// balancer or a Function URL into the request that the client sent, and the response into the form that the gateway
// expects. An event of EventBridge runs the schedule of the function. The fields of an event show its kind.
//
// If PLATFORM_STREAM says that the function is invoked with response streaming, responses to a Function URL and to a
// REST API are sent while they are being made, and a watch lasts until the function's time is nearly over. Otherwise a
// response is sent in one piece, and a watch ends after a short window. Source: Spec 7; ADR-0010.
package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/process"
)

// margin is the part of Lambda's time limit that is reserved for the response that the time was too short.
const margin = time.Second

// sinks are the sinks of the audit log that suit a function. Files of a function do not last, and events on the
// standard output go to its log. Events are flushed before each response, because the process is frozen after it.
var sinks = process.Sinks{Openers: []audit.Opener{audit.Output(os.Stdout), redissink.Opener}, Flush: true}

// shell is one function in the form that Lambda calls.
type shell struct {
	function *frame.Function
	// first is the server that was opened at the start.
	first *frame.Server
	// streams reports whether the function is invoked with response streaming.
	streams bool
	// whole serves requests whose responses are sent in one piece; flowing serves requests with streamed responses.
	whole, flowing func() (*servedFunction, error)

	mu       sync.Mutex
	draining bool
	open     []*frame.Server
}

// servedFunction is a function and its server.
type servedFunction struct {
	server  *frame.Server
	handler http.Handler
}

// Start serves a function until the platform ends the process. It does not return. A wrong setting ends the
// process at once, with an error that names the setting.
func Start(f *frame.Function) {
	s, err := newShell(f, os.Getenv, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, f.Name+":", err)
		os.Exit(1)
	}
	log.SetFlags(0)
	log.SetOutput(libraryLog{s})
	options := []lambda.Option{}
	if s.streams {
		// The platform sends SIGTERM only to processes that have registered for it, which costs a round trip at the
		// start. A response in one piece does not last long enough to need it.
		options = append(options, lambda.WithEnableSIGTERM(s.drain))
	}
	lambda.StartWithOptions(s.handle, options...)
}

func newShell(f *frame.Function, lookup func(string) string, out io.Writer) (*shell, error) {
	s := &shell{function: f, streams: process.Streams(lookup)}
	opens := func(streams bool) func() (*servedFunction, error) {
		return sync.OnceValues(func() (*servedFunction, error) {
			server, err := process.Open(lookup, process.Shell{
				Log: out, Annotate: invocation, Streams: streams, Metrics: func() frame.Metrics { return newEMF(out) },
			})
			if err != nil {
				return nil, err
			}
			process.BeginAudit(server, sinks)
			s.keep(server)
			return &servedFunction{server: server, handler: server.Mount(f)}, nil
		})
	}
	s.whole, s.flowing = opens(false), opens(true)
	// The handler that will be used is prepared while the platform waits for the process to start.
	first := s.whole
	if s.streams {
		first = s.flowing
	}
	ready, err := first()
	if err != nil {
		return nil, err
	}
	s.first = ready.server
	return s, nil
}

func (s *shell) keep(server *frame.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, server)
	if s.draining {
		server.EndWatches()
	}
}

// drain ends the watches: the platform will kill the process soon.
func (s *shell) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for _, server := range s.open {
		server.EndWatches()
	}
}

func (s *shell) handle(ctx context.Context, e *event) (any, error) {
	if end, bounded := ctx.Deadline(); bounded {
		bound, cancel := context.WithTimeout(ctx, requestTime(time.Until(end)))
		// A streamed response is made after this function returns. The library ends its context.
		context.AfterFunc(ctx, cancel)
		ctx = bound
	}
	sender := e.kind()
	if sender == clock {
		return nil, s.run(ctx)
	}
	if sender == unknown {
		return nil, s.refuseEvent(ctx, errors.New("the event is neither a request nor a schedule"))
	}
	flows := s.streams && (sender == functionURL || sender == gatewayV1)
	opens := s.whole
	if flows {
		opens = s.flowing
	}
	target, err := opens()
	if err != nil {
		return nil, s.refuseEvent(ctx, err)
	}
	handler := target.handler
	r, err := e.request(ctx, sender, invocationID(ctx))
	switch {
	case err != nil:
		handler = target.server.Refusing(s.function.Name, apierror.BadRequest(err.Error(), nil))
	case sender == balancer && strings.HasPrefix(r.UserAgent(), "ELB-HealthChecker/"):
		handler = http.HandlerFunc(healthy)
	}
	if !flows {
		whole := newBuffer(sender)
		if problem := serve(whole, r, handler); problem != nil {
			whole = newBuffer(sender)
			s.panicHandler(target, problem).ServeHTTP(whole, r)
		}
		return whole.answer(e, sender), nil
	}
	return s.flow(e, sender, r, target, handler), nil
}

// invocationID returns Lambda's id of the invocation; empty if there is none.
func invocationID(ctx context.Context) string {
	if called, ok := lambdacontext.FromContext(ctx); ok {
		return called.AwsRequestID
	}
	return ""
}

// invocation returns the attribute that connects a log line with Lambda's own log lines of the same invocation.
func invocation(ctx context.Context) []slog.Attr {
	if id := invocationID(ctx); id != "" {
		return []slog.Attr{slog.String("invocation", id)}
	}
	return nil
}

// requestTime returns how much of the remaining time a request may take: all but the margin, or all but a tenth if that is
// less than the margin.
func requestTime(left time.Duration) time.Duration { return left - min(margin, left/10) }

// healthy answers the health checks of a load balancer at every path. A health check only finds out whether the
// function can be called.
func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// flow serves a request in a goroutine, while the library sends the response that flow returns.
func (s *shell) flow(e *event, sender kind, r *http.Request, target *servedFunction, handler http.Handler) *streamed {
	read, write := io.Pipe()
	out := &stream{event: e, kind: sender, header: http.Header{}, out: write, prelude: make(chan []byte, 1)}
	go func() {
		// The panic of a handler would end the process, after a response of 200.
		problem := serve(out, r, handler)
		switch {
		case problem == nil:
			out.WriteHeader(http.StatusOK)
		case !out.begun:
			out.header = http.Header{}
			s.panicHandler(target, problem).ServeHTTP(out, r)
		default:
			if !errors.Is(problem, http.ErrAbortHandler) {
				s.first.Env.Log.ErrorContext(r.Context(), "invocation", "function", s.function.Name, "cause", problem.Error())
			}
			_ = write.CloseWithError(errors.New("the response was cut off"))
			return
		}
		_ = write.Close()
	}()
	return &streamed{Reader: io.MultiReader(bytes.NewReader(<-out.prelude), read), body: read}
}

// serve calls a handler, and returns the error of its panic; nil if it returned.
func serve(w http.ResponseWriter, r *http.Request, handler http.Handler) (problem error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			// The handler has logged why it cuts the response off.
			problem = http.ErrAbortHandler
		default:
			problem = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	handler.ServeHTTP(w, r)
	return nil
}

// panicHandler answers a request whose handler panicked before it answered.
func (s *shell) panicHandler(target *servedFunction, problem error) http.Handler {
	return target.server.Refusing(s.function.Name, apierror.Internal(problem))
}

// run does the scheduled work. Its error tells the platform that the run failed.
func (s *shell) run(ctx context.Context) error {
	if s.function.Schedule == nil {
		return s.refuseEvent(ctx, fmt.Errorf("the function %s has no schedule", s.function.Name))
	}
	if err := s.first.Run(ctx, s.function); err != nil {
		return failure(err)
	}
	return nil
}

// refuseEvent logs why an event has no answer, and returns the error for the platform.
func (s *shell) refuseEvent(ctx context.Context, err error) error {
	s.first.Env.Log.ErrorContext(ctx, "invocation", "function", s.function.Name, "cause", err.Error())
	return failure(err)
}

// logged is the type of errors for the platform that are logged already.
const logged = "Failure"

func failure(err error) error {
	return messages.InvokeResponse_Error{Message: err.Error(), Type: logged}
}

// libraryLog turns the output of the library into log lines: the errors that the library reports to the platform, as
// JSON, and other text.
type libraryLog struct{ shell *shell }

// Write writes one line.
func (l libraryLog) Write(line []byte) (int, error) {
	log, text := l.shell.first.Env.Log.With("function", l.shell.function.Name), strings.TrimSpace(string(line))
	var reported messages.InvokeResponse_Error
	switch err := json.Unmarshal([]byte(text), &reported); {
	case err != nil || reported.Message == "":
		log.Error("runtime", "cause", text)
	case reported.Type == logged:
	case reported.StackTrace == nil:
		// The library has not called the function.
		log.Error("invocation", "cause", "the event cannot be read: "+reported.Message)
	default:
		log.Error("invocation", "cause", text)
	}
	return len(line), nil
}

// Package framework runs functions of the catalog where the Functions Framework runs: on Cloud Functions, which has
// its own server, and on Cloud Run and Knative, where Serve is the server. A function with routes is an HTTP function. A
// function with a schedule is a CloudEvent function: any event runs it once. Functions are registered by name and never
// by path, because the framework answers an unknown FUNCTION_TARGET with the last function that has no name.
// Source: Spec 7; ADR-0010.
package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/process/memory"
)

const (
	// drain is how long requests may take to finish after SIGTERM; Cloud Run kills after ten seconds.
	drain = 9 * time.Second
	// maxBody bounds the request body that is read. The frame refuses smaller bodies with a Status.
	maxBody = frame.MaxBodyBytes + 1<<20
	// maxEvent bounds the event of a schedule, in bytes.
	maxEvent = 256 << 10
	// tracer is the name of the tracer for spans, for an SDK that is attached from outside.
	tracer = "management.platform.sh"
)

// sinks are all sinks of the audit log. flush is for the server of Cloud Functions, which is frozen after each response
// and ends without notice.
func sinks(server *frame.Server, flush bool) process.Sinks {
	return process.Sinks{Flush: flush, Openers: []audit.Opener{
		audit.Output(os.Stdout), filesink.Opener(nil, server.Env.Log), redissink.Opener, postgressink.Opener,
	}}
}

// Register registers a function with the framework, for the server of Cloud Functions. A wrong setting ends the process.
func Register(f *frame.Function) {
	open := sync.OnceValue(func() *frame.Server {
		server, err := process.Open(os.Getenv, process.Shell{Log: os.Stderr, Streams: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, f.Name+":", err)
			os.Exit(1)
		}
		server.Tracer = otel.Tracer(tracer)
		process.BeginAudit(server, sinks(server, true))
		return server
	})
	if os.Getenv("FUNCTION_TARGET") == f.Name {
		open()
	}
	if f.Schedule != nil {
		functions.CloudEvent(f.Name, func(ctx context.Context, _ cloudevents.Event) error { return run(ctx, f, open()) })
		return
	}
	handler := sync.OnceValue(func() http.Handler { return http.MaxBytesHandler(open().Mount(f), maxBody) })
	functions.HTTP(f.Name, func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) })
}

// errRun is the error that a sender gets. The cause is in the log.
var errRun = errors.New("the run failed")

func run(ctx context.Context, f *frame.Function, server *frame.Server) error {
	if server.Run(ctx, f) != nil {
		return errRun
	}
	return nil
}

// Handler returns a function, HTTP or CloudEvent, in the form in which Serve serves it.
func Handler(f *frame.Function, server *frame.Server) http.Handler {
	if f.Schedule == nil {
		return http.MaxBytesHandler(server.Mount(f), maxBody)
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			server.Refusing(f.Name, apierror.MethodNotAllowed(r.Method)).ServeHTTP(w, r)
			return
		}
		event, err := cloudevents.NewEventFromHTTPRequest(r)
		if err == nil {
			err = event.Validate()
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			server.Refusing(f.Name, apierror.TooLarge(fmt.Sprintf("the event is larger than %d bytes", tooLarge.Limit))).ServeHTTP(w, r)
			return
		}
		if err != nil {
			server.Refusing(f.Name, apierror.BadRequest("the request is not a CloudEvent: "+err.Error(), nil)).ServeHTTP(w, r)
			return
		}
		if err := run(r.Context(), f, server); err != nil {
			server.Refusing(f.Name, apierror.Internal(err)).ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
	return http.MaxBytesHandler(frame.Guarded(http.HandlerFunc(receive)), maxEvent)
}

// Target returns the function that FUNCTION_TARGET names.
func Target(all []*frame.Function, lookup func(string) string) (*frame.Function, error) {
	target := lookup("FUNCTION_TARGET")
	i := slices.IndexFunc(all, func(f *frame.Function) bool { return f.Name == target })
	if i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("FUNCTION_TARGET: unknown function %q: use one of %s", target, strings.Join(names, ", "))
}

// timeLimit returns the time that Cloud Run gives a request; 0 means no limit.
func timeLimit(lookup func(string) string) (time.Duration, error) {
	text := lookup("CLOUD_RUN_TIMEOUT_SECONDS")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds <= 0 {
		return 0, errors.New("CLOUD_RUN_TIMEOUT_SECONDS: must be a number greater than 0")
	}
	return time.Duration(seconds) * time.Second, nil
}

func portOf(lookup func(string) string) (string, error) {
	port := cmp.Or(lookup("PORT"), "8080")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("PORT: must be a number from 0 to 65535")
	}
	return port, nil
}

// Serve serves the function that FUNCTION_TARGET names, at every path and on PORT, until the context ends. Then it ends
// the watches, whose clients resume elsewhere, and lets other requests finish. It calls ready, unless that is nil, with
// its address. Its error names every wrong setting.
func Serve(ctx context.Context, all []*frame.Function, lookup func(string) string, out io.Writer, ready func(net.Addr)) error {
	f, wrongTarget := Target(all, lookup)
	limit, wrongLimit := timeLimit(lookup)
	port, wrongPort := portOf(lookup)
	process.ShareProcessors()
	memory.CollectLessOften()
	server, wrongSettings := process.Open(lookup, process.Shell{Log: out, Streams: true})
	if err := errors.Join(wrongTarget, wrongLimit, wrongPort, wrongSettings); err != nil {
		return err
	}
	server.Tracer = otel.Tracer(tracer)
	process.BeginAudit(server, sinks(server, false))
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("PORT: listening: %w", err)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	listening := newServer(base, bounded(Handler(f, server), limit), server.Env.Log)
	failed := make(chan error, 1)
	go func() { failed <- listening.Serve(listener) }()
	if ready != nil {
		ready(listener.Addr())
	}
	server.Env.Log.Info("serving", "function", f.Name, "address", listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	server.Env.Log.Info("draining", "function", f.Name)
	server.EndWatches()
	patient, stop := context.WithTimeout(base, drain)
	defer stop()
	err = listening.Shutdown(patient)
	process.EndAudit(patient, server)
	if err != nil {
		// Cut off requests that are still open.
		cancel()
		return errors.Join(fmt.Errorf("draining: %w", err), listening.Close())
	}
	return nil
}

// newServer returns a server with limits that the framework's own server lacks.
func newServer(base context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	listening := process.NewHTTPServer(handler, log)
	listening.BaseContext = func(net.Listener) context.Context { return base }
	// The proxy in front of functions may speak HTTP/2 without TLS.
	listening.Protocols = &http.Protocols{}
	listening.Protocols.SetHTTP1(true)
	listening.Protocols.SetUnencryptedHTTP2(true)
	return listening
}

// bounded gives each request the time limit of the platform; 0 means no limit.
func bounded(handler http.Handler, limit time.Duration) http.Handler {
	if limit == 0 {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
}

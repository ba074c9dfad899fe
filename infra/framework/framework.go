// Package framework runs functions of the catalog where the Functions Framework runs: on Cloud Functions, which brings
// a server of its own, and on Cloud Run and Knative, where Serve is the server. A function with routes is of the kind
// HTTP, one with a schedule of the kind CloudEvent: any event runs it once. Functions are registered by name and never
// by path: the framework answers an unknown FUNCTION_TARGET with the last function that has no name.
// Source: Spec 7; ADR-0010.
package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

	"management.platform.sh/infra/environment"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/redissink"
)

const (
	// drain is how long requests may take to finish after SIGTERM; Cloud Run kills after ten seconds.
	drain = 9 * time.Second
	// maxBody bounds what is read of a request at all. The frame refuses a body before, with a Status.
	maxBody = frame.MaxBodyBytes + 1<<20
	// maxEvent bounds an event of the clock.
	maxEvent = 256 << 10
	// tracer is the name of what makes spans, for an SDK that is attached from outside.
	tracer = "management.platform.sh"
)

// sinks are all there are. A server that is not ours is frozen when it has answered, and ends without a word.
func sinks(server *frame.Server, flush bool) environment.Sinks {
	return environment.Sinks{Flush: flush, Openers: []audit.Opener{
		audit.Output(os.Stdout), filesink.Opener(nil, server.Env.Log), redissink.Opener, postgressink.Opener,
	}}
}

// Register gives a function to the framework, for a server that is not ours. A setting that is wrong ends the process.
func Register(f *frame.Function) {
	open := sync.OnceValue(func() *frame.Server {
		server, err := environment.Open(os.Getenv, os.Stderr, true)
		if err != nil {
			fmt.Fprintln(os.Stderr, f.Name+":", err)
			os.Exit(1)
		}
		server.Tracer = otel.Tracer(tracer)
		environment.BeginAudit(server, sinks(server, true))
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

// errRun is what a sender is told. What went wrong is in the log.
var errRun = errors.New("the run failed")

func run(ctx context.Context, f *frame.Function, server *frame.Server) error {
	if server.Run(ctx, f) != nil {
		return errRun
	}
	return nil
}

// Handler is a function as Serve serves it, of either kind.
func Handler(f *frame.Function, server *frame.Server) http.Handler {
	if f.Schedule == nil {
		return http.MaxBytesHandler(server.Mount(f), maxBody)
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "events are sent by POST", http.StatusMethodNotAllowed)
			return
		}
		event, err := cloudevents.NewEventFromHTTPRequest(r)
		if err == nil {
			err = event.Validate()
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, fmt.Sprintf("the event is larger than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "this is no CloudEvent: "+err.Error(), http.StatusBadRequest)
			return
		}
		if err := run(r.Context(), f, server); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
	return http.MaxBytesHandler(http.HandlerFunc(receive), maxEvent)
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
	return nil, fmt.Errorf("FUNCTION_TARGET: %q is no function; there are %s", target, strings.Join(names, ", "))
}

// timeLimit is the time that Cloud Run gives a request, 0 for no bound.
func timeLimit(lookup func(string) string) (time.Duration, error) {
	text := lookup("CLOUD_RUN_TIMEOUT_SECONDS")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds <= 0 {
		return 0, errors.New("CLOUD_RUN_TIMEOUT_SECONDS: must be a number above zero")
	}
	return time.Duration(seconds) * time.Second, nil
}

// portOf is where to listen, as a number.
func portOf(lookup func(string) string) (string, error) {
	port := cmp.Or(lookup("PORT"), "8080")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("PORT: must be a number from 0 to 65535")
	}
	return port, nil
}

// Serve serves the function that FUNCTION_TARGET names, at every path and on PORT, until the context ends. Then it ends
// the watches, whose clients resume elsewhere, and lets other requests finish. Ready is told the address; it may be nil.
// Its error names every setting that is wrong.
func Serve(ctx context.Context, all []*frame.Function, lookup func(string) string, out io.Writer, ready func(net.Addr)) error {
	f, wrongTarget := Target(all, lookup)
	limit, wrongLimit := timeLimit(lookup)
	port, wrongPort := portOf(lookup)
	server, wrongSettings := environment.Open(lookup, out, true)
	if err := errors.Join(wrongTarget, wrongLimit, wrongPort, wrongSettings); err != nil {
		return err
	}
	server.Tracer = otel.Tracer(tracer)
	environment.BeginAudit(server, sinks(server, false))
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("PORT: listening: %w", err)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	listening := newServer(base, bounded(Handler(f, server), limit))
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
	environment.EndAudit(patient, server)
	if err != nil {
		// What is still open is broken off.
		cancel()
		return errors.Join(fmt.Errorf("draining: %w", err), listening.Close())
	}
	return nil
}

// newServer has the limits that the framework's own server lacks.
func newServer(base context.Context, handler http.Handler) *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	// In front of functions stands a proxy that may speak HTTP/2 in clear.
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       frame.MaxDuration,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// bounded gives each request the time that the platform gives it, 0 for no bound.
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

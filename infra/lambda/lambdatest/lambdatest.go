// Package lambdatest imitates AWS Lambda for tests: the runtime API that the program of a function asks for events, the
// sandboxes that are started as needed, and the gateways that turn requests into events and answers into responses. The
// programs are the deployed programs, each in its own process. The package does not depend on what a function does.
// Source: ADR-0010.
package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"management.platform.sh/infra/lambda/bootstrap"
)

// Build builds the programs of the named functions in a folder, for this machine. Programs that are up to date stay.
func Build(folder string, names ...string) error {
	packages := []string{}
	for _, name := range names {
		packages = append(packages, "management.platform.sh/infra/lambda/functions/"+name)
	}
	// With a slash at the end, go build takes the path for a folder even if that does not exist yet.
	command := bootstrap.Command(folder+string(filepath.Separator), packages...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", strings.Join(names, ", "), err, output)
	}
	return nil
}

// Sandbox is one process of a function and the runtime API that it asks for events. It is called with one event at a
// time.
type Sandbox struct {
	process *exec.Cmd
	server  *http.Server
	calls   chan []byte
	answers chan *Answer
	timeout time.Duration
	// ended is closed when the process has ended.
	ended chan struct{}
	// listens is set once the process has registered for SIGTERM.
	listens atomic.Bool
	count   int
}

// Answer is the result of an invocation, which may still be arriving.
type Answer struct {
	ID string
	// ContentType is the media type, which differs for a streamed body.
	ContentType string
	// Failed reports whether the function returned an error.
	Failed bool
	// Body is the content, which the function may still be making.
	Body io.Reader
	// Trailer returns the trailer, once the body has been read.
	Trailer func() http.Header
	// taken is called when enough of the body has been read.
	taken func()
}

// Close lets the function continue. The rest of the body is lost, and the function gets an error for it.
func (a *Answer) Close() { a.taken() }

// Start starts a program with its own runtime API. The timeout bounds each invocation. The process has the
// variables and no other environment, and writes to the output. It ends by itself when the runtime API is gone, even
// if the test is killed.
func Start(program string, timeout time.Duration, output io.Writer, variables ...string) (*Sandbox, error) {
	s := &Sandbox{calls: make(chan []byte), answers: make(chan *Answer), timeout: timeout, ended: make(chan struct{})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(listener) }()
	s.process = exec.Command(program)
	s.process.Env = append(slices.Clone(variables), "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String())
	s.process.Stdout, s.process.Stderr = output, output
	if err := s.process.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", program, err), s.server.Close())
	}
	go func() {
		_ = s.process.Wait()
		close(s.ended)
	}()
	return s, nil
}

// ServeHTTP serves the runtime API, and the API of extensions, at which a program with a handler of SIGTERM registers.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const invocation = "/2018-06-01/runtime/invocation/"
	rest, _ := strings.CutPrefix(r.URL.Path, invocation)
	id, outcome, _ := strings.Cut(rest, "/")
	switch {
	case r.URL.Path == invocation+"next":
		select {
		case call := <-s.calls:
			s.count++
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprintf("call-%d", s.count))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(s.timeout).UnixMilli(), 10))
			_, _ = w.Write(call)
		case <-r.Context().Done():
		}
	case outcome == "response", outcome == "error":
		taken := make(chan struct{})
		select {
		case s.answers <- &Answer{
			ID: id, ContentType: r.Header.Get("Content-Type"), Failed: outcome == "error", Body: r.Body,
			Trailer: func() http.Header { return r.Trailer }, taken: sync.OnceFunc(func() { close(taken) }),
		}:
			<-taken
		case <-s.ended:
		}
		w.WriteHeader(http.StatusAccepted)
	case strings.HasSuffix(r.URL.Path, "/extension/register"):
		s.listens.Store(true)
		w.Header().Set("Lambda-Extension-Identifier", "x")
		_, _ = w.Write([]byte("{}"))
	default:
		// An extension waits here for its next event, which never comes.
		<-r.Context().Done()
	}
}

// Call sends an event and returns the answer as soon as it begins. The answer must be closed before the next call. An
// error means that the process or the context has ended.
func (s *Sandbox) Call(ctx context.Context, event []byte) (*Answer, error) {
	select {
	case s.calls <- event:
	case <-s.ended:
		return nil, errEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-s.answers:
		return a, nil
	case <-s.ended:
		return nil, errEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errEnded = errors.New("the process has ended")

// Terminate sends SIGTERM to the process if it has registered for the signal, and reports whether it has.
func (s *Sandbox) Terminate() bool {
	return s.listens.Load() && s.process.Process.Signal(syscall.SIGTERM) == nil
}

// Kill ends the process as Lambda does, without notice.
func (s *Sandbox) Kill() {
	_ = s.process.Process.Kill()
	<-s.ended
	_ = s.server.Close()
}

// Function is a function in Lambda: an event that comes while all sandboxes are busy starts another sandbox. Fields are
// set before the first use; after that it is safe for concurrent use.
type Function struct {
	// Program is the path of the program.
	Program string
	// Timeout is how long an invocation may take.
	Timeout time.Duration
	// Output receives the output of the processes.
	Output io.Writer
	// Variables are the whole environment of the processes.
	Variables []string

	mu    sync.Mutex
	all   []*Sandbox
	idle  []*Sandbox
	ended bool
	busy  sync.WaitGroup
}

// Call invokes the function. The answer must be closed.
func (f *Function) Call(ctx context.Context, event []byte) (*Answer, error) {
	s, err := f.take()
	if err != nil {
		return nil, err
	}
	a, err := s.Call(ctx, event)
	if err != nil {
		// The process may still be working, and its answer must not reach another caller.
		s.Kill()
		f.busy.Done()
		return nil, err
	}
	taken := a.taken
	a.taken = sync.OnceFunc(func() {
		// Lambda does not tell a function that its client is gone, so the function runs to its end.
		_, _ = io.Copy(io.Discard, a.Body)
		taken()
		f.mu.Lock()
		f.idle = append(f.idle, s)
		f.mu.Unlock()
		f.busy.Done()
	})
	return a, nil
}

func (f *Function) take() (*Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, errEnded
	}
	if last := len(f.idle) - 1; last >= 0 {
		s := f.idle[last]
		f.idle = f.idle[:last]
		f.busy.Add(1)
		return s, nil
	}
	s, err := Start(f.Program, f.Timeout, f.Output, f.Variables...)
	if err != nil {
		return nil, err
	}
	f.all = append(f.all, s)
	f.busy.Add(1)
	return s, nil
}

// Drain sends SIGTERM to the processes that have registered for it, waits until all calls are answered, and kills the
// processes.
func (f *Function) Drain() {
	for _, s := range f.close() {
		s.Terminate()
	}
	f.busy.Wait()
	f.Kill()
}

// Kill ends all processes at once.
func (f *Function) Kill() {
	for _, s := range f.close() {
		s.Kill()
	}
}

func (f *Function) close() []*Sandbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	return f.all
}

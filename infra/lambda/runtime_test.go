package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"management.platform.sh/infra/environment/environmenttest"
)

// answered is what a bootstrap sent back: the pieces of it as they come.
type answered struct {
	id, contentType string
	failed          bool
	body            io.Reader
	trailer         func() http.Header
	// taken is closed when the test has read enough.
	taken chan struct{}
}

// platform is the runtime API of Lambda, and one process that it calls.
type platform struct {
	t       *testing.T
	calls   chan []byte
	answers chan *answered
	process *exec.Cmd
	stderr  *lines
	timeout time.Duration
	next    int
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const invocation = "/2018-06-01/runtime/invocation/"
	rest, _ := strings.CutPrefix(r.URL.Path, invocation)
	id, outcome, _ := strings.Cut(rest, "/")
	switch {
	case r.URL.Path == invocation+"next":
		select {
		case call := <-p.calls:
			p.next++
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprintf("call-%d", p.next))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(p.timeout).UnixMilli(), 10))
			w.Write(call)
		case <-r.Context().Done():
		}
	case outcome == "response", outcome == "error":
		taken := make(chan struct{})
		p.answers <- &answered{
			id: id, contentType: r.Header.Get("Content-Type"), failed: outcome == "error", body: r.Body,
			trailer: func() http.Header { return r.Trailer }, taken: taken,
		}
		<-taken
		w.WriteHeader(http.StatusAccepted)
	case strings.HasSuffix(r.URL.Path, "/extension/register"):
		w.Header().Set("Lambda-Extension-Identifier", "x")
		w.Write([]byte("{}"))
	default:
		// The next event of an extension, which never comes.
		<-r.Context().Done()
	}
}

var bootstraps sync.Map

// bootstrap builds a function as it is deployed, once.
func bootstrap(t *testing.T, name string) string {
	t.Helper()
	build, _ := bootstraps.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		file := filepath.Join(built, name, "bootstrap")
		command := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", file, "./functions/"+name)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		output, err := command.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, output)
		}
		return file, nil
	}))
	file, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// built is where bootstraps are.
var built string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "bootstraps-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(built)
		return m.Run()
	}())
}

// start runs a function under a platform of its own.
func start(t *testing.T, name string, timeout time.Duration, variables ...string) *platform {
	t.Helper()
	p := &platform{t: t, calls: make(chan []byte, 1), answers: make(chan *answered), timeout: timeout, stderr: &lines{}}
	server := httptest.NewServer(p)
	p.process = exec.Command(bootstrap(t, name))
	p.process.Env = append(variables, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"))
	p.process.Stderr, p.process.Stdout = p.stderr, p.stderr
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.process.Process.Kill()
		p.process.Wait()
		server.CloseClientConnections()
		server.Close()
		if t.Failed() {
			t.Log(p.stderr.String())
		}
	})
	return p
}

// call sends an event and returns the answer while it comes.
func (p *platform) call(event string) *answered {
	p.t.Helper()
	p.calls <- []byte(event)
	select {
	case a := <-p.answers:
		return a
	case <-time.After(30 * time.Second):
		p.t.Fatalf("no answer; the log is\n%s", p.stderr)
		return nil
	}
}

// whole reads an answer of one piece.
func (a *answered) whole(t *testing.T, into any) {
	t.Helper()
	defer close(a.taken)
	text, err := io.ReadAll(a.body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// urlEvent is a request of format 2.0 through a domain.
func urlEvent(domain, path, query string) string {
	return fmt.Sprintf(`{"version":"2.0","rawPath":%q,"rawQueryString":%q,"headers":{"authorization":"Bearer %s","host":%q},
		"requestContext":{"domainName":%q,"requestId":"JKJaXmPLvHcESHA=","stage":"$default","http":{"method":"GET","path":%q,"sourceIp":"192.0.2.1"}}}`,
		path, query, environmenttest.Admin, domain, domain, path)
}

const (
	apiDomain = "x.execute-api.eu-west-1.amazonaws.com"
	urlDomain = "x.lambda-url.eu-west-1.on.aws"
)

func TestBootstrap(t *testing.T) {
	t.Parallel()
	w := environmenttest.New(t)
	p := start(t, "getaccesskey", time.Minute, "PLATFORM_REDIS_URL="+w.URL)
	for range 2 {
		var got struct {
			StatusCode int
			Headers    map[string]string
			Body       string
		}
		p.call(urlEvent(apiDomain, environmenttest.Root+"/admin", "")).whole(t, &got)
		if got.StatusCode != 200 || !strings.Contains(got.Body, `"name":"admin"`) || got.Headers["X-Request-Id"] != "JKJaXmPLvHcESHA" {
			t.Errorf("answered %+v", got)
		}
	}
	if strings.Contains(p.stderr.String(), environmenttest.Admin) {
		t.Errorf("the log has the key: %s", p.stderr)
	}
}

// prelude reads status and headers of a streamed answer.
func (a *answered) prelude(t *testing.T) (status int, header map[string]string) {
	t.Helper()
	var text []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(text, make([]byte, 8)) {
		if _, err := io.ReadFull(a.body, one); err != nil {
			t.Fatalf("%v after %q", err, text)
		}
		text = append(text, one[0])
	}
	var head struct {
		StatusCode int
		Headers    map[string]string
	}
	if err := json.Unmarshal(text[:len(text)-8], &head); err != nil {
		t.Fatal(err)
	}
	return head.StatusCode, head.Headers
}

type watched struct {
	Type   string
	Object struct {
		Metadata struct{ Name, ResourceVersion string }
	}
}

func TestBootstrapStreams(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		timeout time.Duration
		signal  bool
	}{"its time is over": {3 * time.Second, false}, "the process drains": {time.Minute, true}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := environmenttest.New(t)
			p := start(t, "listaccesskeys", row.timeout, "PLATFORM_REDIS_URL="+w.URL, "PLATFORM_STREAM=true")
			a := p.call(urlEvent(urlDomain, environmenttest.Root, "watch=1&allowWatchBookmarks=true"))
			defer close(a.taken)
			if status, header := a.prelude(t); status != 200 || header["Content-Type"] != "application/json" ||
				a.contentType != "application/vnd.awslambda.http-integration-response" {
				t.Fatalf("%d %v %s", status, header, a.contentType)
			}
			events := json.NewDecoder(a.body)
			next := func() (one watched) {
				t.Helper()
				if err := events.Decode(&one); err != nil {
					t.Fatal(err)
				}
				return one
			}
			if one := next(); one.Type != "ADDED" || one.Object.Metadata.Name != "admin" {
				t.Fatalf("%+v", one)
			}
			if one := next(); one.Type != "BOOKMARK" {
				t.Fatalf("%+v", one)
			}
			// It comes while the answer is still open.
			w.Key("second", "second-0123456789-0123456789-0123456789")
			if one := next(); one.Type != "ADDED" || one.Object.Metadata.Name != "second" {
				t.Fatalf("%+v", one)
			}
			if row.signal {
				p.process.Process.Signal(syscall.SIGTERM)
			}
			if one := next(); one.Type != "BOOKMARK" {
				t.Fatalf("%+v", one)
			}
			if err := events.Decode(&watched{}); err != io.EOF {
				t.Fatal(err)
			}
			if failure := a.trailer().Get("Lambda-Runtime-Function-Error-Type"); failure != "" {
				t.Error(failure)
			}
			// The line of the log comes after the answer.
			patience := time.NewTimer(10 * time.Second)
			defer patience.Stop()
			for tick := time.NewTicker(5 * time.Millisecond); !strings.Contains(p.stderr.String(), `"ended":"`+what+`"`); {
				select {
				case <-tick.C:
				case <-patience.C:
					t.Fatalf("logged %s", p.stderr)
				}
			}
		})
	}
}

func TestBootstrapRefusesToStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, bootstrap(t, "getaccesskey"))
	command.Env = []string{"PLATFORM_REDIS_URL=mysql://:hunter2@state.internal"}
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "PLATFORM_REDIS_URL") || strings.Contains(string(output), "hunter2") {
		t.Errorf("%v: %s", err, output)
	}
}

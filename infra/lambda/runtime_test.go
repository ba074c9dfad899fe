package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/infra/lambda/lambdatest"
	"management.platform.sh/shared/process/processtest"
)

// platform is a sandbox of Lambda that a test calls.
type platform struct {
	*lambdatest.Sandbox
	t      *testing.T
	stderr *processtest.Log
}

var bootstraps sync.Map

// bootstrap builds a function once: in its deployed form or, in a short run, as the packages of the tests are compiled, which leaves
// HTTP/2 in.
func bootstrap(t *testing.T, name string) string {
	t.Helper()
	build, _ := bootstraps.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		program := filepath.Join(built, name)
		if !testing.Short() {
			return program, lambdatest.Build(built, name)
		}
		output, err := exec.Command("go", "build", "-o", program, "management.platform.sh/infra/lambda/functions/"+name).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("building %s: %w: %s", name, err, output)
		}
		return program, nil
	}))
	file, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// built is the folder of the bootstraps.
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

// start runs a function in its own platform.
func start(t *testing.T, name string, timeout time.Duration, variables ...string) *platform {
	t.Helper()
	p := &platform{t: t, stderr: &processtest.Log{}}
	var err error
	if p.Sandbox, err = lambdatest.Start(bootstrap(t, name), timeout, p.stderr, append(variables, "PLATFORM_LOG_LEVEL=debug")...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Log(p.stderr.String())
		}
	})
	return p
}

// call sends an event and returns the answer as soon as it begins.
func (p *platform) call(event string) *lambdatest.Answer {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	a, err := p.Call(ctx, []byte(event))
	if err != nil {
		p.t.Fatalf("no answer: %v; the log is\n%s", err, p.stderr)
	}
	return a
}

// whole reads an answer that is sent in one piece.
func whole(t *testing.T, a *lambdatest.Answer, into any) {
	t.Helper()
	defer a.Close()
	if err := json.NewDecoder(a.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// urlEvent returns an event of format 2.0 with a request to a domain.
func urlEvent(domain, path, query string) string {
	return fmt.Sprintf(`{"version":"2.0","rawPath":%q,"rawQueryString":%q,"headers":{"authorization":"Bearer %s","host":%q},
		"requestContext":{"domainName":%q,"requestId":"JKJaXmPLvHcESHA=","stage":"$default","http":{"method":"GET","path":%q,"sourceIp":"192.0.2.1"}}}`,
		path, query, processtest.Admin, domain, domain, path)
}

const (
	apiDomain = "x.execute-api.eu-west-1.amazonaws.com"
	urlDomain = "x.lambda-url.eu-west-1.on.aws"
)

func TestBootstrap(t *testing.T) {
	t.Parallel()
	w := processtest.New(t)
	p := start(t, "getaccesskey", time.Minute, "PLATFORM_REDIS_URL="+w.URL)
	for range 2 {
		var got struct {
			StatusCode int
			Headers    map[string]string
			Body       string
		}
		whole(t, p.call(urlEvent(apiDomain, processtest.Root+"/admin", "")), &got)
		if got.StatusCode != 200 || !strings.Contains(got.Body, `"name":"admin"`) || got.Headers["X-Request-Id"] != "JKJaXmPLvHcESHA" {
			t.Errorf("answered %+v", got)
		}
	}
	if strings.Contains(p.stderr.String(), processtest.Admin) {
		t.Errorf("the log has the key: %s", p.stderr)
	}
	if p.Terminate() {
		t.Error("a process that does not stream has registered for SIGTERM, which costs a round trip at the start")
	}
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
	}{"its duration has elapsed": {5 * time.Second, false}, "the process is draining": {time.Minute, true}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := processtest.New(t)
			p := start(t, "listaccesskeys", row.timeout, "PLATFORM_REDIS_URL="+w.URL, "PLATFORM_STREAM=true")
			a := p.call(urlEvent(urlDomain, processtest.Root, "watch=1&allowWatchBookmarks=true"))
			defer a.Close()
			if head, err := lambdatest.Prelude(a.Body); err != nil || head.StatusCode != 200 || head.Headers["Content-Type"] != "application/json" ||
				a.ContentType != "application/vnd.awslambda.http-integration-response" {
				t.Fatalf("%+v, %v, %s", head, err, a.ContentType)
			}
			events := json.NewDecoder(a.Body)
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
			if row.signal {
				// The event comes while the answer is still open.
				w.Key("second", "second-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg")
				if one := next(); one.Type != "ADDED" || one.Object.Metadata.Name != "second" {
					t.Fatalf("%+v", one)
				}
				if !p.Terminate() {
					t.Fatal("the process has not registered for SIGTERM")
				}
			}
			if one := next(); one.Type != "BOOKMARK" {
				t.Fatalf("%+v", one)
			}
			if err := events.Decode(&watched{}); err != io.EOF {
				t.Fatal(err)
			}
			if failure := a.Trailer().Get("Lambda-Runtime-Function-Error-Type"); failure != "" {
				t.Error(failure)
			}
			// The log line comes after the answer.
			patience := time.NewTimer(30 * time.Second)
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
	// The program is built before, because the deadline is only for its start.
	program := bootstrap(t, "getaccesskey")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program)
	command.Env = []string{"PLATFORM_REDIS_URL=mysql://:hunter2@state.internal"}
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "PLATFORM_REDIS_URL") || strings.Contains(string(output), "hunter2") {
		t.Errorf("%v: %s", err, output)
	}
}

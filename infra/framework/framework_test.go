package framework

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/process/processtest"
)

// served is a function behind the server of Serve.
type served struct {
	t     *testing.T
	world *processtest.World
	url   string
	log   *processtest.Log
	// stop begins the drain; ended receives the result of Serve.
	stop  context.CancelFunc
	ended chan error
}

func serve(t *testing.T, name string, variables map[string]string) *served {
	t.Helper()
	s := &served{t: t, world: processtest.New(t), log: &processtest.Log{}, ended: make(chan error, 1)}
	all := map[string]string{"FUNCTION_TARGET": name, "PORT": "0"}
	for name, value := range variables {
		all[name] = value
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	address := make(chan net.Addr, 1)
	go func() {
		s.ended <- Serve(ctx, catalog.Functions, s.world.Lookup(all), s.log, func(a net.Addr) { address <- a })
	}()
	select {
	case a := <-address:
		s.url = fmt.Sprintf("http://127.0.0.1:%d", a.(*net.TCPAddr).Port)
	case err := <-s.ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	return s
}

func (s *served) do(method, path, body string, header map[string]string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+processtest.Admin)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// HTTP functions: any path and method reaches the function, which knows its routes below "/".
func TestHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "getaccesskey", nil)
	for _, row := range []struct {
		method, path, body string
		code               int
		contains           string
	}{
		{"GET", processtest.Root + "/admin", "", 200, `"name":"admin"`},
		{"GET", strings.TrimPrefix(processtest.Root, frame.BasePath) + "/admin", "", 200, `"name":"admin"`},
		{"GET", processtest.Root + "/none", "", 404, `"reason":"NotFound"`},
		{"DELETE", processtest.Root + "/admin", "", 405, `"kind":"Status"`},
		{"GET", "/", "", 404, `"kind":"Status"`},
		{"GET", "//apis/", "", 404, `"kind":"Status"`},
		{"GET", "/getaccesskey", "", 404, `"kind":"Status"`},
	} {
		if answer, text := s.do(row.method, row.path, row.body, nil); answer.StatusCode != row.code || !strings.Contains(text, row.contains) {
			t.Errorf("%+v: answered %d %s", row, answer.StatusCode, text)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	s := serve(t, "createaccesskey", nil)
	answer, text := s.do("POST", processtest.Root, `{"metadata":{"name":"ci"}}`, map[string]string{"Content-Type": "application/json"})
	if answer.StatusCode != 201 || !strings.Contains(text, `"name":"ci"`) {
		t.Errorf("answered %d %s", answer.StatusCode, text)
	}
	answer, text = s.do("POST", processtest.Root, strings.Repeat("x", frame.MaxBodyBytes+1), nil)
	if answer.StatusCode != 413 || !strings.Contains(text, `"reason":"RequestEntityTooLarge"`) {
		t.Errorf("answered %d %s", answer.StatusCode, text)
	}
	if answer, _ := s.do("GET", processtest.Root, "", map[string]string{"X-Large": strings.Repeat("x", 128<<10)}); answer.StatusCode != 431 {
		t.Errorf("answered %d", answer.StatusCode)
	}
}

// Many requests are served at once: each of these is answered while none of the others has ended.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := serve(t, "listaccesskeys", nil)
	for range 10 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+processtest.Root+"?watch=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+processtest.Admin)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if events := bufio.NewScanner(answer.Body); !events.Scan() || answer.StatusCode != 200 {
			t.Errorf("answered %d %s, %v", answer.StatusCode, events.Text(), events.Err())
		}
	}
}

// A watch ends before the platform would cut it off.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, "listaccesskeys", map[string]string{"CLOUD_RUN_TIMEOUT_SECONDS": "1"})
	// A busy machine may have no event ready in a second.
	if answer, text := s.do("GET", processtest.Root+"?watch=true", "", nil); answer.StatusCode != 200 {
		t.Errorf("answered %d %s", answer.StatusCode, text)
	}
}

// CloudEvent functions: binary and structured events run the schedule, and requests that are no event do not.
func TestCloudEvent(t *testing.T) {
	t.Parallel()
	s := serve(t, "expirekeys", nil)
	const structured = `{"specversion":"1.0","id":"1","source":"/ping","type":"dev.knative.sources.ping","datacontenttype":"application/json","data":{}}`
	runs := 0
	for what, row := range map[string]struct {
		method, body string
		header       map[string]string
		ran          bool
		code         int
		says         string
	}{
		"binary": {"POST", "{}", map[string]string{"Content-Type": "application/json", "Ce-Id": "1", "Ce-Source": "/ping",
			"Ce-Type": "dev.knative.sources.ping", "Ce-Specversion": "1.0"}, true, 204, ""},
		"structured":                       {"POST", structured, map[string]string{"Content-Type": "application/cloudevents+json"}, true, 204, ""},
		"of an unknown type, without data": {"POST", "", map[string]string{"Ce-Id": "1", "Ce-Source": "/x", "Ce-Type": "com.example.unknown", "Ce-Specversion": "1.0"}, true, 204, ""},
		"with charset=utf-8":               {"POST", structured, map[string]string{"Content-Type": "application/cloudevents+json; charset=utf-8"}, true, 204, ""},
		"of an unknown version":            {"POST", "", map[string]string{"Ce-Id": "1", "Ce-Source": "/x", "Ce-Type": "x", "Ce-Specversion": "9"}, false, 400, "CloudEvent: "},
		"without a type":                   {"POST", "{}", map[string]string{"Ce-Id": "1", "Ce-Source": "/ping", "Ce-Specversion": "1.0"}, false, 400, "type: MUST"},
		"no event":                         {"POST", "{}", map[string]string{"Content-Type": "application/json"}, false, 400, "CloudEvent: "},
		"broken":                           {"POST", "{", map[string]string{"Content-Type": "application/cloudevents+json"}, false, 400, "CloudEvent: "},
		"a GET":                            {"GET", "", nil, false, 405, "MethodNotAllowed"},
		"too large":                        {"POST", strings.Repeat(" ", maxEvent) + structured, map[string]string{"Content-Type": "application/cloudevents+json"}, false, 413, "262144"},
		"too large, binary":                {"POST", strings.Repeat("x", maxEvent+1), map[string]string{"Ce-Id": "1", "Ce-Source": "/x", "Ce-Type": "x", "Ce-Specversion": "1.0"}, false, 413, "262144"},
	} {
		answer, text := s.do(row.method, "/", row.body, row.header)
		if answer.StatusCode != row.code || !strings.Contains(text, row.says) {
			t.Errorf("%s: answered %d %s", what, answer.StatusCode, text)
		}
		if row.ran {
			runs++
		}
	}
	if got := strings.Count(s.log.String(), "scheduled run"); got != runs {
		t.Errorf("it ran %d times, not %d", got, runs)
	}
}

// The response to a failed run asks the sender to repeat it and does not contain the cause.
func TestCloudEventFails(t *testing.T) {
	t.Parallel()
	s := serve(t, "collectgarbage", map[string]string{"PLATFORM_REDIS_URL": "redis://:hunter2@127.0.0.1:1"})
	answer, text := s.do("POST", "/", "{}", map[string]string{"Ce-Id": "1", "Ce-Source": "/ping", "Ce-Type": "ping", "Ce-Specversion": "1.0"})
	if answer.StatusCode != 500 || strings.Contains(text+s.log.String(), "hunter2") {
		t.Errorf("answered %d %s", answer.StatusCode, text)
	}
}

func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		variables map[string]string
		named     []string
	}{
		"no target":      {map[string]string{"PLATFORM_REDIS_URL": "redis://x"}, []string{"FUNCTION_TARGET"}},
		"unknown target": {map[string]string{"PLATFORM_REDIS_URL": "redis://x", "FUNCTION_TARGET": "getaccesskeys"}, []string{"getaccesskey,"}},
		"no state":       {map[string]string{"FUNCTION_TARGET": "whoami"}, []string{"PLATFORM_REDIS_URL"}},
		"no timeout":     {map[string]string{"FUNCTION_TARGET": "whoami", "PLATFORM_REDIS_URL": "redis://x", "CLOUD_RUN_TIMEOUT_SECONDS": "0"}, []string{"CLOUD_RUN_TIMEOUT_SECONDS"}},
		"no port":        {map[string]string{"FUNCTION_TARGET": "whoami", "PLATFORM_REDIS_URL": "redis://x", "PORT": "http"}, []string{"PORT"}},
		"a large port":   {map[string]string{"FUNCTION_TARGET": "whoami", "PLATFORM_REDIS_URL": "redis://x", "PORT": "65536"}, []string{"PORT"}},
		"all of them": {map[string]string{"CLOUD_RUN_TIMEOUT_SECONDS": "x", "PORT": "-1", "PLATFORM_LOG_LEVEL": "loud", "PLATFORM_REDIS_URL": "x"},
			[]string{"FUNCTION_TARGET", "CLOUD_RUN_TIMEOUT_SECONDS", "PORT", "PLATFORM_LOG_LEVEL", "PLATFORM_REDIS_URL"}},
	} {
		err := Serve(t.Context(), catalog.Functions, func(name string) string { return row.variables[name] }, io.Discard, nil)
		for _, named := range row.named {
			if err == nil || !strings.Contains(err.Error(), named) {
				t.Errorf("%s: %s is not in %v", what, named, err)
			}
		}
	}
}

// A client that sends slowly, or stops sending, does not hold a connection for ever.
func TestLimits(t *testing.T) {
	t.Parallel()
	for what, limit := range map[string]time.Duration{
		"header": newServer(t.Context(), nil, slog.New(slog.DiscardHandler)).ReadHeaderTimeout, "body": newServer(t.Context(), nil, slog.New(slog.DiscardHandler)).ReadTimeout, "idle": newServer(t.Context(), nil, slog.New(slog.DiscardHandler)).IdleTimeout,
	} {
		if limit <= 0 || limit > 5*time.Minute {
			t.Errorf("%s: %s", what, limit)
		}
	}
}

// A drain ends a watch with a bookmark, lets other requests finish, and accepts no new ones.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := serve(t, "listaccesskeys", nil)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+processtest.Root+"?watch=true&allowWatchBookmarks=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+processtest.Admin)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	events := bufio.NewScanner(answer.Body)
	for range 2 {
		if !events.Scan() {
			t.Fatal(events.Err())
		}
	}
	s.stop()
	if !events.Scan() || !strings.Contains(events.Text(), `"type":"BOOKMARK"`) || events.Scan() || events.Err() != nil {
		t.Errorf("it ended with %s, %v", events.Text(), events.Err())
	}
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it did not end")
	}
	// Another server may have the port by now.
	if answer, err := http.Get(s.url + "/afterwards"); err == nil {
		answer.Body.Close()
	}
	if log := s.log.String(); strings.Contains(log, "/afterwards") {
		t.Errorf("it still listens: %s", log)
	}
}

// Some proxies speak HTTP/2 without TLS.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := serve(t, "getaccesskey", nil)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	answer, err := client.Get(s.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.ProtoMajor != 2 {
		t.Errorf("it speaks %s", answer.Proto)
	}
}

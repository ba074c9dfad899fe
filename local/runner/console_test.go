package runner

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// studio returns the handler of a runner with the patch studio, and one that asks it as its own page does.
func studio(t *testing.T) func(change func(*http.Request), method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	world := processtest.New(t)
	api, err := process.Open(world.Lookup(nil), process.Shell{Log: io.Discard, Streams: true})
	if err != nil {
		t.Fatal(err)
	}
	handler := routes(api, redistest.Open(t, world.URL), prometheus.NewRegistry(), &atomic.Bool{})
	handler = forOwnHosts(withStudio(handler, api), api, "platform.internal:8443", "https://issuer.example/kubernetes/management", func() []string { return []string{"certified.example"} })
	return func(change func(*http.Request), method, path, body string) *httptest.ResponseRecorder {
		answer, request := httptest.NewRecorder(), httptest.NewRequest(method, "https://127.0.0.1:8443"+path, strings.NewReader(body))
		request.RemoteAddr = "127.0.0.1:1"
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		request.Header.Set("Content-Type", "application/json")
		if change != nil {
			change(request)
		}
		handler.ServeHTTP(answer, request)
		return answer
	}
}

const (
	evaluations = "/apis/management.platform.sh/v1/syncpatchevaluations"
	evaluation  = `{"spec": {"namespaceMode": "Multi", "patches": [{"path": "a", "labels": {}}], "object": {"a": {"b": "c"}}}}`
)

// A browser that opens the root of the host gets to the console. Other clients learn that there is nothing.
func TestRoot(t *testing.T) {
	t.Parallel()
	ask := studio(t)
	browser := func(r *http.Request) { r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8") }
	for _, path := range []string{"/", frame.BasePath, frame.BasePath + "/"} {
		if answer := ask(browser, "GET", path, ""); answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/console" {
			t.Errorf("%s: %d %v", path, answer.Code, answer.Header())
		}
		if answer := ask(nil, "GET", path, ""); answer.Code == http.StatusSeeOther {
			t.Errorf("%s without a browser: %d", path, answer.Code)
		}
		if answer := ask(browser, "POST", path, "{}"); answer.Code == http.StatusSeeOther {
			t.Errorf("POST %s: %d", path, answer.Code)
		}
	}
	if answer := ask(browser, "GET", "/nosuch", ""); answer.Code != http.StatusNotFound {
		t.Errorf("another path: %d", answer.Code)
	}
}

// Only a page of the runner, in a browser of its machine, evaluates patches without a credential. Source: ADR-0030.
func TestStudio(t *testing.T) {
	t.Parallel()
	ask := studio(t)
	for _, base := range []string{"", frame.BasePath} {
		if answer := ask(nil, "POST", base+evaluations, evaluation); answer.Code != http.StatusCreated {
			t.Errorf("%s: %d %s", base, answer.Code, answer.Body)
		}
	}
	for about, change := range map[string]func(*http.Request){
		"another machine":     func(r *http.Request) { r.RemoteAddr = "192.0.2.1:1" },
		"a proxy":             func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") },
		"another site":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"the address bar":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") },
		"no browser":          func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") },
		"two claims":          func(r *http.Request) { r.Header.Add("Sec-Fetch-Site", "same-origin") },
		"a name of elsewhere": func(r *http.Request) { r.Host = "evil.example:8443" },
		"its own name":        func(r *http.Request) { r.Host = "platform.internal:8443" },
		"an address":          func(r *http.Request) { r.Host = "192.0.2.1:8443" },
		"a wrong credential":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") },
		"no host":             func(r *http.Request) { r.Host = "" },
	} {
		if answer := ask(change, "POST", evaluations, evaluation); answer.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", about, answer.Code, answer.Body)
		}
	}
	// All other endpoints of all functions are as they are without the studio.
	for _, function := range catalog.Functions {
		for _, endpoint := range function.Endpoints {
			if endpoint.Path == evaluations && endpoint.Method == http.MethodPost || endpoint.Resource.Resource == "" {
				continue
			}
			path := strings.NewReplacer("{namespace}", "a", "{name}", "a", "{cluster}", "a").Replace(endpoint.Path)
			plain := ask(func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, endpoint.Method, path, "{}")
			if answer := ask(nil, endpoint.Method, path, "{}"); answer.Code != plain.Code {
				t.Errorf("%s %s: %d, and %d without the studio", endpoint.Method, path, answer.Code, plain.Code)
			}
		}
	}
}

// The console answers to the names of the runner alone: another name may be bound to its address by a hostile site. Source: ADR-0030.
func TestConsoleHosts(t *testing.T) {
	t.Parallel()
	ask := studio(t)
	for host, want := range map[string]int{
		"127.0.0.1:8443": 200, "[::1]:8443": 200, "localhost": 200, "LOCALHOST.:8443": 200, "a.localhost:1": 200, "192.0.2.7:8443": 200,
		"platform.internal:8443": 200, "issuer.example": 200, "certified.example:8443": 200,
		"evil.example": 403, "localhost.evil.example:8443": 403, "127.0.0.1.evil.example": 403, "notlocalhost": 403, "": 403, "evil.example:8443.": 403,
	} {
		for _, path := range []string{"/console", "/console/studio", "/kubernetes/management/console/keys"} {
			answer := ask(func(r *http.Request) { r.Host = host }, "GET", path, "")
			if answer.Code != want {
				t.Errorf("%q %s: %d", host, path, answer.Code)
			}
			var status struct{ Message string }
			if want != http.StatusOK && (json.Unmarshal(answer.Body.Bytes(), &status) != nil || !strings.Contains(status.Message, "Host")) {
				t.Errorf("%q: %s", host, answer.Body)
			}
		}
		// Programs reach the API by any name: a page cannot direct them.
		if answer := ask(func(r *http.Request) { r.Host = host }, "GET", "/healthz", ""); answer.Code != http.StatusOK {
			t.Errorf("%q /healthz: %d", host, answer.Code)
		}
	}
}

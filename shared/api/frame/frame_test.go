package frame_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/store"
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const lost, wrongMethod = "NotFound", "MethodNotAllowed"
	for _, row := range []struct {
		method, path string
		code         int
		reason       metav1.StatusReason
		allow        string
	}{
		{"GET", root, 200, "", ""},
		{"GET", frame.BasePath + root, 200, "", ""},
		{"GET", root + "/ana", 200, "", ""},
		{"GET", frame.BasePath + root + "/ana", 200, "", ""},
		{"GET", root + "/%61na", 200, "", ""},
		{"GET", frame.BasePath + root + "/%61na", 200, "", ""},
		{"GET", root + "/absent", 404, lost, ""},
		{"GET", root + "/a%2Fb", 404, lost, ""},
		{"GET", root + "/..%2Fana", 404, lost, ""},
		{"GET", root + "/ANA", 404, lost, ""},
		{"GET", root + "/%00", 404, lost, ""},
		{"GET", root + "/", 404, lost, ""},
		{"GET", root + "/ana/", 404, lost, ""},
		{"GET", root + "/ana/status", 404, lost, ""},
		{"GET", "/", 404, lost, ""},
		{"GET", frame.BasePath, 404, lost, ""},
		{"GET", frame.BasePath + "/", 404, lost, ""},
		{"GET", frame.BasePath + "x" + root, 404, lost, ""},
		{"GET", frame.BasePath + frame.BasePath + root, 404, lost, ""},
		{"GET", "/%6bubernetes/management" + root, 404, lost, ""},
		{"GET", "/kubernetes%2Fmanagement" + root, 404, lost, ""},
		{"GET", "//apis", 404, lost, ""},
		{"GET", frame.BasePath + "//apis", 404, lost, ""},
		{"GET", frame.BasePath + "/apis/../apis", 404, lost, ""},
		{"POST", "/nothing/here", 404, lost, ""},
		{"POST", root + "/ana", 405, wrongMethod, "DELETE, GET, PATCH, PUT"},
		{"DELETE", root, 405, wrongMethod, "GET, POST"},
		{"HEAD", root, 405, "", "GET, POST"},
		{"OPTIONS", root, 405, wrongMethod, "GET, POST"},
		{"TRACE", frame.BasePath + root, 405, wrongMethod, "GET, POST"},
		{"GET", probe, 405, wrongMethod, "POST"},
		{"GET", root + "?watch=true", 405, wrongMethod, ""},
		{"GET", root + "?watch=1", 405, wrongMethod, ""},
		{"GET", root + "?watch=false", 200, "", ""},
		{"GET", root + "?%zz", 400, "BadRequest", ""},
		{"GET", root + "?a;b", 400, "BadRequest", ""},
	} {
		t.Run(row.method+" "+row.path, func(t *testing.T) {
			answer := w.do(request{method: row.method, path: row.path})
			if row.code == 200 {
				if answer.Code != 200 {
					t.Errorf("answered %d: %s", answer.Code, answer.Body)
				}
				return
			}
			if row.method == http.MethodHead {
				// The response has no body with the reason.
				if answer.Code != row.code || answer.Body.Len() > 0 {
					t.Errorf("answered %d: %q", answer.Code, answer.Body)
				}
			} else {
				refused(t, answer, row.code, row.reason)
			}
			if allow := answer.Header().Get("Allow"); allow != row.allow {
				t.Errorf("Allow %q, want %q", allow, row.allow)
			}
		})
	}
}

func TestTwoFunctionsOneRoute(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("two functions may claim one route")
		}
	}()
	newWorld(t).server.Mount(keys, &frame.Function{Name: "again", Endpoints: keys.Endpoints})
}

func TestOneFunctionAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler = w.server.Mount(probes)
	refused(t, w.do(request{path: root}), 404, "NotFound")
	if answer := w.do(request{path: "/page/a"}); answer.Code != 200 {
		t.Errorf("answered %d", answer.Code)
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		about, header string
		code          int
	}{
		{"none (Spec 5.1)", "", 401},
		{"a bearer", "Bearer " + anaKey, 200},
		{"the scheme in lower case", "bearer " + anaKey, 200},
		{"the scheme in upper case", "BEARER " + anaKey, 200},
		{"more blanks", "Bearer    " + anaKey, 200},
		{"another scheme", "Basic " + anaKey, 401},
		{"no scheme", anaKey, 401},
		{"the scheme alone", "Bearer", 401},
		{"nothing behind the scheme", "Bearer ", 401},
		{"an unknown key", "Bearer " + strings.Repeat("x", 40), 401},
		{"a malformed key", "Bearer pak_123", 401},
		{"two keys", "Bearer " + anaKey + " " + anaKey, 401},
	} {
		t.Run(row.about, func(t *testing.T) {
			r := request{path: root, bearer: nobody}
			if row.header != "" {
				r.header = map[string]string{"Authorization": row.header}
			}
			answer := w.do(r)
			if row.code == 200 {
				if answer.Code != 200 {
					t.Errorf("answered %d: %s", answer.Code, answer.Body)
				}
				return
			}
			refused(t, answer, row.code, metav1.StatusReasonUnauthorized)
			if challenge := answer.Header().Get("WWW-Authenticate"); !strings.HasPrefix(challenge, "Bearer ") {
				t.Errorf("WWW-Authenticate %q", challenge)
			}
			if strings.Contains(answer.Body.String(), anaKey) {
				t.Error("the answer quotes the key")
			}
		})
	}
}

// The server authenticates the caller before it says anything about the request (ADR-0001).
func TestAuthenticationComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range []request{
		{path: root + "?timeout=soon"},
		{path: root + "?%zz"},
		{path: root + "?limit=x"},
		{path: root, header: map[string]string{"Accept": "image/png"}},
		{path: root + "/absent"},
		{path: root + "?watch=true"},
		{method: "POST", path: root, body: "{"},
		{method: "POST", path: root + "?dryRun=Some", body: "{}"},
		{method: "POST", path: root, body: "{}", header: map[string]string{"Content-Type": "image/png"}},
		{method: "PATCH", path: root + "/ana", body: "{"},
		{method: "DELETE", path: root + "/absent"},
		{method: "POST", path: probe, body: asking("panic")},
	} {
		r.bearer = nobody
		t.Log(r.method, r.path)
		refused(t, w.do(r), 401, metav1.StatusReasonUnauthorized)
	}
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		about        string
		bearer       string
		method, path string
		code         int
	}{
		{"the scope permits get", narrowKey, "GET", root + "/ana", 200},
		{"and not list (Spec 2.3)", narrowKey, "GET", root, 403},
		{"and not delete", narrowKey, "DELETE", root + "/ana", 403},
		{"an absent object is refused alike", narrowKey, "DELETE", root + "/absent", 403},
		{"what is not for everybody is for admins", anaKey, "POST", probe, 403},
		{"who may", adminKey, "POST", probe, 201},
		{"everybody may ask for a document", narrowKey, "GET", "/page/a", 200},
	} {
		answer := w.do(request{method: row.method, path: row.path, bearer: row.bearer})
		if answer.Code != row.code {
			t.Errorf("%s: %d, %s", row.about, answer.Code, answer.Body)
		} else if row.code == 403 {
			refused(t, answer, 403, metav1.StatusReasonForbidden)
		}
	}
}

// A request with impersonation headers is not served as the caller.
func TestImpersonation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, header := range []map[string]string{
		{"Impersonate-User": "ben"}, {"impersonate-group": "some"}, {"Impersonate-Extra-Scopes": ""}, {"Impersonate-Uid": "1"},
	} {
		refused(t, w.do(request{method: "DELETE", path: root + "/ana", bearer: adminKey, header: header}), 403, metav1.StatusReasonForbidden)
	}
	if answer := w.do(request{path: root + "/ana", bearer: adminKey}); answer.Code != 200 {
		t.Errorf("the object: %d", answer.Code)
	}
}

func TestPublicByConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if answer := w.do(request{path: "/page/a", bearer: nobody}); answer.Code != 200 || answer.Body.String() != "/page/a" {
		t.Errorf("answered %d: %s", answer.Code, answer.Body)
	}
	w.config = &model.ConfigStatus{AuthenticateVersionEndpoint: true}
	refused(t, w.do(request{path: "/page/a", bearer: nobody}), 401, metav1.StatusReasonUnauthorized)
	if answer := w.do(request{path: "/page/a"}); answer.Code != 200 {
		t.Errorf("answered %d", answer.Code)
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	exactly := func(size int) string {
		head, tail := `{"metadata":{"generateName":"big-"},"spec":{"more":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	if answer := w.do(request{method: "POST", path: root, body: exactly(3 << 20)}); answer.Code != 201 {
		t.Errorf("3 MiB: %d", answer.Code)
	}
	tooLarge := metav1.StatusReasonRequestEntityTooLarge
	refused(t, w.do(request{method: "POST", path: root, body: exactly(3<<20 + 1)}), 413, tooLarge)
	refused(t, w.do(request{method: "PUT", path: root + "/ana", body: exactly(3<<20 + 1)}), 413, tooLarge)
	refused(t, w.do(request{method: "DELETE", path: root + "/ana", body: exactly(3<<20 + 1)}), 413, tooLarge)
	refused(t, w.do(request{
		method: "PATCH", path: root + "/ana", body: exactly(3<<20 + 1),
		header: map[string]string{"Content-Type": "application/merge-patch+json"},
	}), 413, tooLarge)
	refused(t, w.do(request{method: "POST", path: probe, body: exactly(3<<20 + 1)}), 413, tooLarge)
	chunked := w.request(request{method: "POST", path: root, body: exactly(3<<20 + 1)})
	chunked.ContentLength = -1 // it does not say how long it is
	refused(t, w.send(chunked), 413, tooLarge)
}

// tornBody ends too early, like an upload whose client disconnects.
type tornBody struct{}

func (tornBody) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestTornBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, root, tornBody{})
	req.Header.Set("Authorization", "Bearer "+adminKey)
	refused(t, w.send(req), 400, metav1.StatusReasonBadRequest)
}

// Only the log has the causes of internal errors. The request id leads to them.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		r      request
		code   int
		reason metav1.StatusReason
		stack  bool
	}{
		{"a panic", request{method: "POST", path: probe, body: asking("panic")}, 500, "InternalError", true},
		{"a panic with an error", request{method: "POST", path: probe, body: asking("panic with an error")}, 500, "InternalError", true},
		{"an error of unknown type", request{method: "POST", path: probe, body: asking("error")}, 500, "InternalError", false},
		{"a state out of reach", request{method: "POST", path: probe, body: asking("unavailable")}, 503, "ServiceUnavailable", false},
		{"a deployment without a store", request{method: "POST", path: probe, body: asking("absent store")}, 501, "MethodNotAllowed", false},
		{"a wrapped refusal", request{method: "POST", path: probe, body: asking("wrapped")}, 404, "NotFound", false},
		{"an answer that cannot be encoded", request{method: "POST", path: probe, body: asking("unencodable")}, 500, "InternalError", false},
		{"a panic while the answer is made", request{
			path: "/apis/test.example/v1/unprintables", header: map[string]string{"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
		}, 500, "InternalError", true},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			row.r.header = with(row.r.header, "X-Request-Id", "call-7")
			answer := w.do(row.r)
			refused(t, answer, row.code, row.reason)
			if body := answer.Body.String(); strings.Contains(body, "hunter2") || strings.Contains(body, "goroutine") || strings.Contains(body, ".go:") {
				t.Errorf("the answer leaks: %s", body)
			}
			if row.code >= 500 && !strings.Contains(status(t, answer).Message, "call-7") {
				t.Errorf("the answer does not name the request: %s", answer.Body)
			}
			records := w.log.take(t)
			if len(records) != 1 {
				t.Fatalf("the log has %d lines: %v", len(records), records)
			}
			record := records[0]
			level := "ERROR"
			if row.code < 500 || row.code == 501 {
				level = "INFO"
			}
			if record["level"] != level || record["requestID"] != "call-7" || record["status"] != float64(row.code) || record["reason"] != string(row.reason) {
				t.Errorf("logged %v", record)
			}
			cause, _ := record["cause"].(string)
			if row.about != "an answer that cannot be encoded" && !strings.Contains(cause, hush) || cause == "" {
				t.Errorf("the log does not know the cause: %v", record)
			}
			if strings.Contains(cause, "world_test.go") != row.stack {
				t.Errorf("a stack in the log: %v, want %v: %v", !row.stack, row.stack, cause)
			}
			if row.code == 503 && answer.Header().Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", answer.Header().Get("Retry-After"))
			}
			if inFlight := w.count("platform_requests_in_flight", nil); inFlight != 0 {
				t.Errorf("%v requests are in flight for ever", inFlight)
			}
		})
	}
}

func with(header map[string]string, name, value string) map[string]string {
	made := map[string]string{name: value}
	for n, v := range header {
		made[n] = v
	}
	return made
}

// A handler that aborts its connection is not an error of the function.
func TestAbort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer func() {
		if problem := recover(); problem != any(http.ErrAbortHandler) {
			t.Errorf("recovered %v", problem)
		}
	}()
	w.do(request{method: "POST", path: probe, body: asking("abort")})
}

// A bearer token in the place of a name is not logged.
func TestBearersInPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := "pak_" + strings.Repeat("0aZ9x", 9) + "b"
	for _, bearer := range []string{key, "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl"} {
		w.do(request{method: "GET", path: frame.BasePath + root + "/" + bearer})
		records := w.log.take(t)
		if len(records) != 1 || records[0]["path"] != root+"/***" {
			t.Errorf("the log has %v", records)
		}
	}
}

func TestRequestLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w.do(request{
		method: "PATCH", path: frame.BasePath + root + "/ana?fieldManager=hidden", bearer: anaKey,
		body:   `{"spec":{"description":"hidden"}}`,
		header: map[string]string{"Content-Type": "application/merge-patch+json", "X-Request-Id": "a.b-c_9", "traceparent": trace},
	})
	records := w.log.take(t)
	if len(records) != 1 {
		t.Fatalf("the log has %d lines", len(records))
	}
	record := records[0]
	for name, want := range map[string]any{
		"level": "DEBUG", "function": "testkeys", "requestID": "a.b-c_9", "method": "PATCH", "path": root + "/ana", "verb": "patch",
		"status": 200.0, "caller": "user:ana", "key": "ana", "traceID": "0af7651916cd43dd8448eb211c80319c",
	} {
		if record[name] != want {
			t.Errorf("%s is %v, want %v", name, record[name], want)
		}
	}
	if text := fmt.Sprint(record); strings.Contains(text, "hidden") || strings.Contains(text, anaKey) {
		t.Errorf("the log holds what it must not: %s", text)
	}
	if _, timed := record["ms"].(float64); !timed {
		t.Errorf("the log does not tell how long it took: %v", record)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := regexp.MustCompile("^[0-9a-f]{32}$")
	for _, row := range []struct {
		given string
		kept  bool
	}{
		{"", false},
		{"a", true},
		{"4bf92f35-77b3.x_Y", true},
		{strings.Repeat("a", 64), true},
		{strings.Repeat("a", 65), false},
		{"a b", false},
		{"a\"b", false},
		{"a\u00e4", false},
		{"a\nb", false},
		{"<script>", false},
	} {
		answer := w.do(request{path: root, header: map[string]string{"X-Request-Id": row.given}})
		got := answer.Header().Get("X-Request-Id")
		if row.kept && got != row.given || !row.kept && !made.MatchString(got) {
			t.Errorf("%q becomes %q", row.given, got)
		}
		if records := w.log.take(t); records[0]["requestID"] != got {
			t.Errorf("the log says %v, the answer %q", records[0]["requestID"], got)
		}
	}
	first := w.do(request{path: root}).Header().Get("X-Request-Id")
	if second := w.do(request{path: root}).Header().Get("X-Request-Id"); first == second {
		t.Error("two requests have one id")
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(request{path: root})
	w.do(request{path: root})
	w.do(request{path: root + "/ana"})
	w.do(request{path: root + "/absent"})
	w.do(request{path: root, bearer: nobody})
	w.do(request{method: "DELETE", path: root})
	w.do(request{path: "/no/such/place"})
	w.do(request{method: "POST", path: probe, body: asking("panic")})
	for _, row := range []struct {
		function, verb, code string
		want                 float64
	}{
		{"testkeys", "list", "200", 2},
		{"testkeys", "list", "401", 1},
		{"testkeys", "get", "200", 1},
		{"testkeys", "get", "404", 1},
		{"none", "", "405", 1},
		{"none", "", "404", 1},
		{"testprobes", "create", "500", 1},
	} {
		labels := map[string]string{"function": row.function, "verb": row.verb, "code": row.code}
		if got := w.count("platform_requests_total", labels); got != row.want {
			t.Errorf("%v: %v, want %v", labels, got, row.want)
		}
	}
	if got := w.count("platform_requests_total", nil); got != 8 {
		t.Errorf("%v requests in all", got)
	}
	if got := w.count("platform_request_duration_seconds", map[string]string{"function": "testkeys", "verb": "list"}); got != 3 {
		t.Errorf("%v durations", got)
	}
	if got := w.count("platform_requests_in_flight", nil); got != 0 {
		t.Errorf("%v requests in flight", got)
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused(t, w.do(request{method: "POST", path: probe + "?timeout=1ms", body: asking("wait")}), 504, metav1.StatusReasonTimeout)
	records := w.log.take(t)
	if record := records[len(records)-1]; record["cause"] == nil {
		t.Errorf("the log does not know why: %v", record)
	}
	for _, text := range []string{"soon", "-1s", "10"} {
		refused(t, w.do(request{path: root + "?timeout=" + text}), 400, metav1.StatusReasonBadRequest, "timeout")
	}
	for _, text := range []string{"", "0", "0s", "30s", "1000h"} {
		if answer := w.do(request{path: root + "?timeout=" + text}); answer.Code != 200 {
			t.Errorf("timeout %q: %d", text, answer.Code)
		}
	}

	// A client that has disconnected.
	for _, r := range []request{
		{method: "POST", path: probe, body: asking("wait")},
		{path: root},
		{path: root + "/ana"},
		{method: "DELETE", path: root + "/ana"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		refused(t, w.send(w.request(r).WithContext(ctx)), 504, metav1.StatusReasonTimeout)
	}
	if answer := w.do(request{path: root + "/ana"}); answer.Code != 200 {
		t.Errorf("the object is gone: %d", answer.Code)
	}
}

// unreachable is a state that does not respond.
type unreachable struct{ store.Store }

func (unreachable) GetWith(context.Context, string, []string, ...store.Ref) (store.Record, store.Companions, error) {
	return store.Record{}, store.Companions{}, store.ErrUnavailable
}

func (unreachable) List(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, store.ErrUnavailable
}

// A request that cannot be checked is refused (Promise 6): 503, and the client may retry in a second.
func TestStateUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := &platform.Environment{
		Stores: func(string) store.Store { return unreachable{} }, Now: w.env.Now, Random: w.env.Random, Log: w.env.Log,
		Config: w.env.Config,
	}
	w.handler = process.NewServer(env).Mount(keys)
	answer := w.do(request{path: root})
	refused(t, answer, 503, metav1.StatusReasonServiceUnavailable)
	if answer.Header().Get("Retry-After") != "1" || status(t, answer).Details.RetryAfterSeconds != 1 {
		t.Errorf("Retry-After %q: %s", answer.Header().Get("Retry-After"), answer.Body)
	}
}

// Clients can cache documents and revalidate them.
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.do(request{path: "/page/a"})
	if first.Header().Get("ETag") != `"T1"` || first.Header().Get("Content-Type") != "text/plain" || !slices.Contains(first.Header().Values("Vary"), "Accept") {
		t.Errorf("header %v", first.Header())
	}
	if under := w.do(request{path: frame.BasePath + "/page/a"}); under.Body.String() != "/page/a" {
		t.Errorf("below the base path: %s", under.Body)
	}
	for given, code := range map[string]int{
		`"T1"`: 304, `W/"T1"`: 304, `"T0", "T1"`: 304, `*`: 304, `"T2"`: 200, `T1`: 200, ``: 200,
	} {
		answer := w.do(request{path: "/page/a", header: map[string]string{"If-None-Match": given}})
		if answer.Code != code || answer.Header().Get("ETag") != `"T1"` {
			t.Errorf("If-None-Match %s: %d, %v", given, answer.Code, answer.Header())
		}
		if (code == 304) != (answer.Body.Len() == 0) {
			t.Errorf("If-None-Match %s: body %q", given, answer.Body)
		}
	}
	if fresh := w.do(request{path: "/page/fresh", header: map[string]string{"If-None-Match": "*"}}); fresh.Code != 200 || fresh.Header().Get("ETag") != "" {
		t.Errorf("a document without a tag: %d, %v", fresh.Code, fresh.Header())
	}
}

// Over a real connection, since a recorder accepts what a connection does not.
func TestHeadOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	for _, method := range []string{http.MethodHead, http.MethodOptions} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+frame.BasePath+root, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != 405 || answer.Header.Get("Allow") == "" {
			t.Errorf("%s: %d, %v", method, answer.StatusCode, answer.Header)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/page/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("If-None-Match", `"T1"`)
	answer, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != 304 {
		t.Errorf("%d", answer.StatusCode)
	}
}

func decodeInto[T any](t testing.TB, answer *httptest.ResponseRecorder) T {
	t.Helper()
	var into T
	if err := json.Unmarshal(answer.Body.Bytes(), &into); err != nil {
		t.Fatalf("answered %d: %v: %s", answer.Code, err, answer.Body)
	}
	return into
}

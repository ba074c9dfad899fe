package frame_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/store"
)

// watched is a function that lists and watches.
var watched = &frame.Function{Name: "testwatch", Endpoints: []frame.Endpoint{
	frame.List(accesskey.Definition, registry, resource.List[*model.OwnedAccessKey]),
	frame.Watch(accesskey.Definition, registry, resource.Watch[*model.OwnedAccessKey]),
}}

// newWatchWorld returns a world in which watches are short, unless the request asks for a longer time.
func newWatchWorld(t testing.TB) *world {
	w := newWorld(t)
	w.server.Watch = frame.WatchSettings{Window: 50 * time.Millisecond}
	w.handler = w.server.Mount(watched)
	return w
}

// event is a line of a stream.
type event struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

func (e event) String() string {
	metadata, _ := e.Object["metadata"].(map[string]any)
	return fmt.Sprint(e.Type, " ", e.Object["kind"], " ", metadata["name"], " ", metadata["resourceVersion"])
}

func parse(t testing.TB, body string) []event {
	t.Helper()
	var events []event
	for line := range strings.Lines(body) {
		var one event
		if err := json.Unmarshal([]byte(line), &one); err != nil || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("line %q: %v", line, err)
		}
		events = append(events, one)
	}
	return events
}

func (w *world) change(name, document string) {
	w.t.Helper()
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	if _, err := resource.Patch(w.t.Context(), kinds.AccessKeys(w.env), resource.PatchInput{
		Caller: caller, Name: name, Type: resource.MergePatch, Patch: []byte(document),
	}); err != nil {
		w.t.Fatal(err)
	}
}

// ended waits for the log lines of count watches.
func (w *world) ended(count int) []map[string]any {
	w.t.Helper()
	var endings []map[string]any
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		for _, record := range w.log.take(w.t) {
			if record["verb"] == "watch" {
				endings = append(endings, record)
			}
		}
		if len(endings) >= count {
			return endings
		}
	}
	w.t.Fatalf("%d watches have ended, not %d", len(endings), count)
	return nil
}

const goodMatch = "&resourceVersionMatch=NotOlderThan"

func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	for _, row := range []struct {
		query, accept, bearer string
		code                  int
		reason                metav1.StatusReason
		fields                string
	}{
		{query: "", bearer: nobody, code: 401, reason: "Unauthorized"},
		{query: "", bearer: narrowKey, code: 403, reason: "Forbidden"},
		{query: "&labelSelector=%3D", code: 400, reason: "BadRequest", fields: "labelSelector"},
		{query: "&labelSelector=a+in+b", code: 400, reason: "BadRequest", fields: "labelSelector"},
		{query: "&fieldSelector=x", code: 400, reason: "BadRequest", fields: "fieldSelector"},
		{query: "&fieldSelector=spec.key%3Dx", code: 400, reason: "BadRequest", fields: "fieldSelector"},
		{query: "&timeoutSeconds=x", code: 400, reason: "BadRequest", fields: "timeoutSeconds"},
		{query: "&timeoutSeconds=", code: 400, reason: "BadRequest", fields: "timeoutSeconds"},
		{query: "&limit=x", code: 400, reason: "BadRequest", fields: "limit"},
		{query: "&limit=-1", code: 400, reason: "BadRequest", fields: "limit"},
		{query: "&timeoutSeconds=-1", code: 400, reason: "BadRequest", fields: "timeoutSeconds"},
		{query: "&timeoutSeconds=99999999999999999999", code: 400, reason: "BadRequest", fields: "timeoutSeconds"},
		{query: "&timeout=soon", code: 400, reason: "BadRequest", fields: "timeout"},
		{query: "&resourceVersion=x", code: 400, reason: "BadRequest", fields: "resourceVersion"},
		{query: "&resourceVersion=-1", code: 400, reason: "BadRequest", fields: "resourceVersion"},
		{query: "&resourceVersion=007", code: 400, reason: "BadRequest", fields: "resourceVersion"},
		{query: "&resourceVersion=99", code: 410, reason: "Expired"},
		{query: "&resourceVersion=99&sendInitialEvents=false" + goodMatch, code: 410, reason: "Expired"},
		{query: "&resourceVersion=99&sendInitialEvents=true" + goodMatch, code: 504, reason: "Timeout", fields: " "},
		{query: "&sendInitialEvents=true", code: 422, reason: "Invalid", fields: "resourceVersionMatch"},
		{query: goodMatch, code: 422, reason: "Invalid", fields: "resourceVersionMatch"},
		{query: "&resourceVersionMatch=Exact", code: 422, reason: "Invalid", fields: "resourceVersionMatch resourceVersionMatch"},
		{query: "&sendInitialEvents=true&continue=x" + goodMatch, code: 422, reason: "Invalid", fields: "resourceVersionMatch"},
		{accept: "application/yaml", code: 406, reason: "NotAcceptable"},
		{accept: "image/png", code: 406, reason: "NotAcceptable"},
		{accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", code: 406, reason: "NotAcceptable"},
		{accept: "application/json;as=Table;g=meta.k8s.io;v=v1", query: "&includeObject=All", code: 400, reason: "BadRequest", fields: "includeObject"},
	} {
		t.Log(row.query, row.accept)
		answer := w.do(request{path: root + "?watch=true" + row.query, bearer: row.bearer, header: map[string]string{"Accept": row.accept}})
		var fields []string
		switch row.fields {
		case "":
		case " ": // a cause that is of no field
			fields = []string{""}
		default:
			fields = strings.Split(row.fields, " ")
		}
		if strings.HasSuffix(row.accept, "yaml") {
			if answer.Code != row.code || !strings.Contains(answer.Body.String(), "\nreason: "+string(row.reason)+"\n") {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
			continue
		}
		got := status(t, answer)
		if answer.Code != row.code || int(got.Code) != row.code || got.Reason != row.reason {
			t.Errorf("answered %d with %+v, want %d %s", answer.Code, got, row.code, row.reason)
		}
		var found []string
		if got.Details != nil {
			for _, cause := range got.Details.Causes {
				found = append(found, cause.Field)
			}
		}
		if strings.Join(found, ",") != strings.Join(fields, ",") {
			t.Errorf("causes are of %q, want %q", found, fields)
		}
	}
	// A list also checks the options that only a watch uses.
	refused(t, w.do(request{path: root + "?sendInitialEvents=true"}), 422, "Invalid", "sendInitialEvents")
	refused(t, w.do(request{path: root + "?timeoutSeconds=x"}), 400, "BadRequest", "timeoutSeconds")
	for query, watch := range map[string]bool{"watch=true": true, "watch=1": true, "watch=TRUE": true, "watch": true, "watch=yes": true, "watch=": true, "%77atch=1": true, "watch=0&watch=1": false, "watch=1&watch=0": true, "watch=false": false, "watch=False": false, "watch=0": false} {
		answer := w.do(request{path: root + "?" + query})
		if answer.Code != 200 || strings.Contains(answer.Body.String(), `"kind":"OwnedAccessKeyList"`) == watch {
			t.Errorf("%s answers %d %.80s", query, answer.Code, answer.Body)
		}
	}
}

// A deprecated path requests a watch whatever its query says, with the verb, the permission and the options of a watch. It has no
// other method, and no path of one object.
func TestWatchPaths(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	function := &frame.Function{Name: watched.Name, Endpoints: frame.WithWatchPaths(watched.Endpoints...)}
	w.handler = w.server.Mount(function)
	path := strings.Replace(root, "/v1/", "/v1/watch/", 1)
	for _, query := range []string{"", "watch=true", "watch=false"} {
		answer := w.do(request{path: path + "?fieldSelector=metadata.name%3Dana&" + query})
		if events := parse(t, answer.Body.String()); answer.Code != 200 || fmt.Sprint(events) != "[ADDED OwnedAccessKey ana 3]" {
			t.Errorf("%q answers %d %s", query, answer.Code, answer.Body)
		}
	}
	if endings := w.ended(3); endings[0]["verb"] != "watch" || endings[0]["path"] != path {
		t.Errorf("logged %v", endings[0])
	}
	refused(t, w.do(request{path: path, bearer: narrowKey}), 403, "Forbidden")
	refused(t, w.do(request{path: path + "?sendInitialEvents=true"}), 422, "Invalid", "resourceVersionMatch")
	refused(t, w.do(request{path: path + "/ana"}), 404, "NotFound")
	answer := w.do(request{method: http.MethodPost, path: path})
	refused(t, answer, 405, "MethodNotAllowed")
	if allow := answer.Header().Get("Allow"); allow != "GET" {
		t.Errorf("Allow is %q", allow)
	}
	// The list stays what it is, and a second name of a resource has no deprecated path.
	if answer := w.do(request{path: root}); answer.Code != 200 || !strings.Contains(answer.Body.String(), `"kind":"OwnedAccessKeyList"`) {
		t.Errorf("the list answers %d %s", answer.Code, answer.Body)
	}
	if alias := function.Endpoints[1].Alias("keys"); len(frame.WithWatchPaths(alias)) != 1 {
		t.Error("an alias has a deprecated path")
	}
}

// The valid combinations of options are the same as in Kubernetes.
func TestWatchOptionsAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	w.server.Watch.Window = time.Millisecond
	for _, send := range []string{"", "true", "false"} {
		for _, match := range []metav1.ResourceVersionMatch{"", "Exact", "NotOlderThan", "Other"} {
			for _, version := range []string{"", "0", "1"} {
				for _, token := range []string{"", "x"} {
					query := url.Values{"watch": {"true"}}
					options := &internalversion.ListOptions{Watch: true, ResourceVersionMatch: match, ResourceVersion: version, Continue: token}
					if send != "" {
						query.Set("sendInitialEvents", send)
						value := send == "true"
						options.SendInitialEvents = &value
					}
					for name, value := range map[string]string{"resourceVersionMatch": string(match), "resourceVersion": version, "continue": token} {
						if value != "" {
							query.Set(name, value)
						}
					}
					internalversion.SetListOptionsDefaults(options, true)
					want := validation.ValidateListOptions(options, true)
					answer := w.do(request{path: root + "?" + query.Encode()})
					if len(want) == 0 {
						if answer.Code != 200 {
							t.Errorf("%s: %d %s", query.Encode(), answer.Code, answer.Body)
						}
						continue
					}
					var fields []string
					for _, problem := range want {
						fields = append(fields, problem.Field)
					}
					refused(t, answer, 422, "Invalid", fields...)
					var types []string
					for _, cause := range status(t, &httptest.ResponseRecorder{Body: w.do(request{path: root + "?" + query.Encode()}).Body}).Details.Causes {
						types = append(types, string(cause.Type))
					}
					for i, problem := range want {
						if field.ErrorType(types[i]) != problem.Type {
							t.Errorf("%s: cause %d is %s, want %s", query.Encode(), i, types[i], problem.Type)
						}
					}
				}
			}
		}
	}
}

func TestWatchForms(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	w.change("ana", `{"spec":{"displayName":"Ana"}}`)
	get := func(query, accept string) ([]event, string) {
		t.Helper()
		answer := w.do(request{path: root + "?watch=true" + query, header: map[string]string{"Accept": accept}})
		if answer.Code != 200 || answer.Header().Get("Content-Type") != "application/json" || answer.Header().Get("Cache-Control") != "no-cache, private" ||
			answer.Header().Get("X-Request-Id") == "" || answer.Header().Get("Content-Length") != "" {
			t.Errorf("answered %d %v", answer.Code, answer.Header())
		}
		if strings.Contains(answer.Body.String(), anaKey) {
			t.Error("an event holds a key")
		}
		return parse(t, answer.Body.String()), answer.Body.String()
	}
	said := func(events []event) string { return strings.Trim(fmt.Sprint(events), "[]") }
	const marks = "&allowWatchBookmarks=true"

	events, _ := get("", "")
	if got := said(events); got != "ADDED OwnedAccessKey admin 2 ADDED OwnedAccessKey ana 5 ADDED OwnedAccessKey narrow 4" {
		t.Errorf("sent %s", got)
	}
	events, _ = get("&sendInitialEvents=true"+goodMatch+marks+"&fieldSelector=metadata.name%3Dana", "*/*")
	if got := said(events); got != "ADDED OwnedAccessKey ana 5 BOOKMARK OwnedAccessKey <nil> 5 BOOKMARK OwnedAccessKey <nil> 5" {
		t.Errorf("sent %s", got)
	}
	if ends := fmt.Sprint(events[1].Object["metadata"], events[2].Object["metadata"]); strings.Count(ends, `k8s.io/initial-events-end:true`) != 1 {
		t.Errorf("the bookmarks are %s", ends)
	}
	// A watch ends with a bookmark if bookmarks are allowed.
	if events, _ = get("&resourceVersion=3"+marks, ""); said(events) != "ADDED OwnedAccessKey narrow 4 MODIFIED OwnedAccessKey ana 5 BOOKMARK OwnedAccessKey <nil> 5" {
		t.Errorf("sent %s", said(events))
	}
	// Only the first Table has columns.
	events, _ = get("&resourceVersion=3"+marks, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	for i, one := range events {
		columns, _ := one.Object["columnDefinitions"].([]any)
		rows, _ := one.Object["rows"].([]any)
		metadata, _ := one.Object["metadata"].(map[string]any)
		if one.Object["kind"] != "Table" || one.Object["apiVersion"] != "meta.k8s.io/v1" || (len(columns) > 0) != (i == 0) || len(rows) != 1 || metadata["resourceVersion"] != []string{"4", "5", "5"}[i] {
			t.Errorf("event %d is %s %v", i, one.Type, one.Object)
		}
	}
	if len(events) != 3 {
		t.Errorf("%d events", len(events))
	}
	for include, want := range map[string]string{"": "PartialObjectMetadata", "Metadata": "PartialObjectMetadata", "Object": "OwnedAccessKey", "None": "<nil>"} {
		events, _ := get("&sendInitialEvents=true"+goodMatch+marks+"&labelSelector=none&includeObject="+include, "application/json;as=Table;v=v1beta1;g=meta.k8s.io")
		if len(events) == 0 || events[0].Object["apiVersion"] != "meta.k8s.io/v1beta1" {
			t.Fatalf("sent %v", events)
		}
		// The bookmark after the present state is marked in every form.
		if text := fmt.Sprint(events[0].Object); !strings.Contains(text, "initial-events-end:true") {
			t.Errorf("includeObject=%s: %s", include, text)
		}
		events, _ = get("&fieldSelector=metadata.name%3Dana&includeObject="+include, "application/json;as=Table;v=v1;g=meta.k8s.io")
		row := events[0].Object["rows"].([]any)[0].(map[string]any)
		object, _ := row["object"].(map[string]any)
		if got := fmt.Sprint(object["kind"]); got != want {
			t.Errorf("includeObject=%s has rows of %s", include, got)
		}
	}
	events, _ = get("&fieldSelector=metadata.name%3Dana", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	if len(events) != 1 || said(events) != "ADDED PartialObjectMetadata ana 5" || events[0].Object["spec"] != nil || events[0].Object["apiVersion"] != "meta.k8s.io/v1" {
		t.Errorf("sent %v", events)
	}
	if got := w.count("platform_watches", nil); got != 0 {
		t.Errorf("%v watches are open", got)
	}
	if got := w.count("platform_watch_events_total", map[string]string{"function": "testwatch", "type": "MODIFIED"}); got != 2 {
		t.Errorf("%v events of type MODIFIED are counted", got)
	}
}

// Watches show callers only the objects that they may see. Source: ADR-0005, ADR-0007.
func TestWatchOfAnotherCaller(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	body := w.do(request{path: root + "?watch=true", bearer: anaKey}).Body.String()
	for _, one := range parse(t, body) {
		if one.Object["spec"].(map[string]any)["user"] != "ana" {
			t.Errorf("ana is shown %s", one)
		}
	}
	if strings.Count(body, "\n") != 2 {
		t.Errorf("ana is shown %s", body)
	}
	// watch is a verb of its own, and a watch of one name needs permission for that object only.
	watching := &model.Scope{Rules: []model.ScopeRule{{Verbs: []string{"watch"}, Resources: []model.ScopeGroupResources{{
		Group: model.GroupName, Resources: []string{"ownedaccesskeys"}, ResourceNames: []string{"ana"},
	}}}}}
	const onlyWatch = "only-watch-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	w.key("only-watch", onlyWatch, "ana", nil, watching)
	const one = "fieldSelector=metadata.name%3Dana"
	for query, code := range map[string]int{"watch=true&" + one: 200, "watch=true": 403, one: 403, "": 403} {
		if answer := w.do(request{path: root + "?" + query, bearer: onlyWatch}); answer.Code != code {
			t.Errorf("%q answers %d %s", query, answer.Code, answer.Body)
		}
	}
}

// stream opens a watch over HTTP and returns its lines. The channel is closed at the end of the body.
func (w *world) stream(server *httptest.Server, query, bearer string) (<-chan event, context.CancelFunc) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	req := w.request(request{path: root + "?watch=true" + query, bearer: bearer}).WithContext(ctx)
	req.RequestURI = ""
	req.URL, _ = url.Parse(server.URL + root + "?watch=true" + query)
	answer, err := server.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.StatusCode != 200 {
		body, _ := io.ReadAll(answer.Body)
		w.t.Fatalf("answered %d: %s", answer.StatusCode, body)
	}
	lines := make(chan event, 1000)
	go func() {
		defer close(lines)
		defer answer.Body.Close()
		scanner := bufio.NewScanner(answer.Body)
		for scanner.Buffer(nil, 8<<20); scanner.Scan(); {
			var one event
			if json.Unmarshal(scanner.Bytes(), &one) == nil {
				lines <- one
			}
		}
	}()
	return lines, cancel
}

// readTimeout is the time in which the server of a test must have read a request, and bookmarkEvery the pause between two
// bookmarks.
const readTimeout, bookmarkEvery = 5 * time.Second, 30 * time.Millisecond

// serving runs a test over both protocols at once, each in a world of its own.
func serving(t *testing.T, settings frame.WatchSettings, test func(t *testing.T, w *world, server *httptest.Server)) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newWatchWorld(t)
			w.server.Watch = settings
			server := httptest.NewUnstartedServer(w.handler)
			// It also limits the handshake, which takes time on a busy machine.
			server.Config.ReadTimeout = readTimeout
			if protocol == "HTTP/2" {
				server.EnableHTTP2 = true
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			test(t, w, server)
		})
	}
}

func next(t testing.TB, lines <-chan event) event {
	t.Helper()
	select {
	case one, open := <-lines:
		if !open {
			t.Fatal("the stream has ended")
		}
		return one
	case <-time.After(30 * time.Second):
		t.Fatal("nothing comes")
	}
	return event{}
}

// rest expects the end of a stream, with nothing but bookmarks before it.
func rest(t testing.TB, lines <-chan event) {
	t.Helper()
	patience := time.After(30 * time.Second)
	for {
		select {
		case one, open := <-lines:
			if !open {
				return
			}
			if one.Type != "BOOKMARK" {
				t.Errorf("before the end comes %s", one)
			}
		case <-patience:
			t.Fatal("the stream does not end")
		}
	}
}

// Events come as they happen, however long it takes, and bookmarks between them.
func TestWatchStreams(t *testing.T) {
	serving(t, frame.WatchSettings{BookmarkEvery: bookmarkEvery, CheckEvery: 20 * time.Millisecond}, func(t *testing.T, w *world, server *httptest.Server) {
		quiet, stop := w.stream(server, "&sendInitialEvents=false"+goodMatch, "")
		marked, stopMarked := w.stream(server, "&allowWatchBookmarks=true&sendInitialEvents=false"+goodMatch, anaKey)
		// Longer than the server allows for reading a request.
		for i := range int(readTimeout/bookmarkEvery) + 10 {
			if one := next(t, marked); one.Type != "BOOKMARK" {
				t.Fatalf("bookmark %d is %s", i, one)
			}
		}
		w.change("ana", `{"spec":{"displayName":"`+t.Name()+`"}}`)
		if one := next(t, quiet); one.Type != "MODIFIED" {
			t.Errorf("after a change comes %s", one)
		}
		for one := next(t, marked); one.Type != "MODIFIED"; one = next(t, marked) {
			if one.Type != "BOOKMARK" {
				t.Fatalf("before a change comes %s", one)
			}
		}
		// The change is one of the caller's own key, but not of its rights: the watch goes on beyond several checks.
		for range 3 {
			if one := next(t, marked); one.Type != "BOOKMARK" {
				t.Fatalf("after a change comes %s", one)
			}
		}
		stop()
		stopMarked()
		for _, record := range w.ended(2) {
			if record["ended"] != "the client is gone" {
				t.Errorf("ended with %v", record)
			}
		}
		if got := w.count("platform_watches", nil); got != 0 {
			t.Errorf("%v watches are open", got)
		}
	})
}

// deadlined is a connection that notes the deadlines for its writes.
type deadlined struct {
	*httptest.ResponseRecorder
	writes []time.Time
}

func (d *deadlined) SetWriteDeadline(end time.Time) error {
	d.writes = append(d.writes, end)
	return nil
}

// Each write of a watch has a deadline, and none is left at the end, so the connection serves later requests.
func TestWatchLeavesTheConnection(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	answer := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	// The last bookmark is written however short the window was.
	w.handler.ServeHTTP(answer, w.request(request{path: root + "?watch=true&allowWatchBookmarks=true"}))
	if len(answer.writes) < 2 || !answer.writes[len(answer.writes)-1].IsZero() {
		t.Fatalf("the deadlines are %v", answer.writes)
	}
	if !slices.ContainsFunc(answer.writes, func(end time.Time) bool { return !end.IsZero() }) {
		t.Error("no write has a deadline")
	}
}

// The reasons for which a watch ends. Source: ADR-0007.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	const bearer = "short-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	for _, row := range []struct {
		what string
		ttl  int64
		with func(w *world)
		why  string
		mark bool
	}{
		{"its window", 0, func(w *world) { w.server.Watch.Window = 100 * time.Millisecond }, "its duration has elapsed", true},
		{"the key's end", 1, func(*world) {}, "the access key has expired", false},
		{"disabled", 0, func(w *world) { w.change("short", `{"spec":{"disabled":true}}`) }, "the credential has changed", false},
		{"another owner", 0, func(w *world) { w.change("short", `{"spec":{"user":"ben"}}`) }, "the credential has changed", false},
		{"other groups", 0, func(w *world) { w.change("short", `{"spec":{"groups":["x"]}}`) }, "the credential has changed", false},
		{"another scope", 0, func(w *world) { w.change("short", `{"spec":{"scope":{"roles":[{"role":"platformCLI"}]}}}`) }, "the credential has changed", false},
		{"a scope without it", 0, func(w *world) { w.change("short", `{"spec":{"scope":{}}}`) }, "the credential has changed", false},
		{"a key that made it is narrowed", 0, func(w *world) { w.change("maker", `{"spec":{"scope":{"roles":[{"role":"platformCLI"}]}}}`) }, "the credential has changed", false},
		{"a key that made it may no longer watch", 0, func(w *world) { w.change("maker", `{"spec":{"scope":{}}}`) }, "the credential has changed", false},
		{"deleted", 0, func(w *world) {
			caller := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
			if _, err := resource.Delete(w.t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: caller, Name: "short"}); err != nil {
				w.t.Fatal(err)
			}
		}, "the credential has changed", false},
		{"a process that drains", 0, func(w *world) { w.server.EndWatches() }, "the process is draining", true},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			w := newWatchWorld(t)
			w.server.Watch = frame.WatchSettings{CheckEvery: 20 * time.Millisecond}
			const makerBearer = "maker-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
			w.key("maker", makerBearer, "ana", nil, nil)
			w.change("maker", `{"spec":{"ttl":86400}}`)
			maker, err := accesskey.OpenAuthenticator(w.env).Bearer(t.Context(), makerBearer)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := resource.Create(t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{
				Caller: maker, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "short"}, Spec: model.OwnedAccessKeySpec{Key: bearer}},
			}); err != nil {
				t.Fatal(err)
			}
			if row.ttl > 0 {
				// The clock of this world stands still: a second check would start the time again.
				w.server.Watch.CheckEvery = time.Hour
				w.change("short", fmt.Sprintf(`{"spec":{"ttl":%d}}`, row.ttl))
			}
			if row.what == "its window" {
				row.with(w)
			}
			server := httptest.NewServer(w.handler)
			defer server.Close()
			lines, stop := w.stream(server, "&allowWatchBookmarks=true&labelSelector=none", bearer)
			defer stop()
			if one := next(t, lines); one.Type != "BOOKMARK" {
				t.Fatalf("begins with %s", one)
			}
			if row.what != "its window" {
				row.with(w)
			}
			rest(t, lines)
			record := w.ended(1)[0]
			want := 1.0
			// On a busy machine a window may end before its watch has begun, so that its only bookmark is the last.
			if row.mark && (row.what != "its window" || record["events"] != want) {
				want = 2
			}
			if record["ended"] != row.why || record["status"] != 200.0 || record["events"] != want || record["level"] != "DEBUG" {
				t.Errorf("ended with %v", record)
			}
		})
	}
}

// If the lifetime of a key counts from its last use, other requests extend it. The watch itself does not.
func TestWatchIsNoUse(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	w.server.Watch = frame.WatchSettings{Window: 300 * time.Millisecond, CheckEvery: 10 * time.Millisecond}
	before, err := kinds.AccessKeys(w.env).Store.Get(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	clock := now
	w.env.Now = func() time.Time { return clock }
	w.do(request{path: root + "?watch=true", bearer: anaKey})
	after, err := kinds.AccessKeys(w.env).Store.Get(t.Context(), "ana")
	if err != nil || after.Revision != before.Revision || after.Activity.After(now) {
		t.Errorf("the key is %+v, %v", after, err)
	}
}

// unhurried is a connection whose writes have no deadline.
type unhurried struct{ http.ResponseWriter }

func (u unhurried) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (unhurried) SetWriteDeadline(time.Time) error { return nil }

// A client that does not read is disconnected, and does not delay others.
func TestWatchDropsTheStuck(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	w.server.Watch = frame.WatchSettings{StuckAfter: 100 * time.Millisecond}
	// The client that reads has no deadline, because a busy machine may let it wait for longer.
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("sendInitialEvents") {
			answer = unhurried{answer}
		}
		w.handler.ServeHTTP(answer, r)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	stuck, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	_, err = fmt.Fprintf(stuck, "GET %s?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", root, adminKey)
	if err != nil {
		t.Fatal(err)
	}
	lively, stop := w.stream(server, "&sendInitialEvents=false"+goodMatch, "")
	defer stop()
	for patience := time.Now().Add(30 * time.Second); w.count("platform_watches", nil) != 2; <-time.After(time.Millisecond) {
		if time.Now().After(patience) {
			t.Fatal("the watches do not begin")
		}
	}
	large := strings.Repeat("x", 200<<10)
	for i := 0; ; i++ {
		if i == 400 {
			t.Fatal("the client that does not read is still there")
		}
		w.change("ana", fmt.Sprintf(`{"metadata":{"annotations":{"x":"%d%s"}}}`, i, large))
		if one := next(t, lively); one.Type != "MODIFIED" {
			t.Fatalf("the other sees %s", one)
		}
		if w.count("platform_watches", nil) == 1 {
			break
		}
	}
	if record := w.ended(1)[0]; record["ended"] != "the client is gone" {
		t.Errorf("ended with %v", record)
	}
}

// failing is a state whose log works for a number of calls.
type failing struct {
	store.Store
	good int
	err  error
}

func (f *failing) Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]store.Event, error) {
	if f.good--; f.good < 0 {
		if f.err == nil {
			panic("lost " + hush)
		}
		return nil, f.err
	}
	return f.Store.Events(ctx, after, limit, min(wait, time.Millisecond))
}

// An error after the start of a watch is its last event, or its end. Source: ADR-0007.
func TestWatchFails(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		err    error
		code   float64
		reason string
		why    string
		level  string
	}{
		"trimmed":   {fmt.Errorf("reading: %w", store.ErrGone), 410, "Expired", "an error was sent", "INFO"},
		"away":      {fmt.Errorf("reading: %w", store.ErrUnavailable), 0, "", "the state cannot be reached", "ERROR"},
		"broken":    {errors.New("lost " + hush), 500, "InternalError", "an error was sent", "ERROR"},
		"panicking": {nil, 500, "InternalError", "an error was sent", "ERROR"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWatchWorld(t)
			server := process.NewServer(&platform.Environment{
				Stores: func(name string) store.Store {
					if name == accesskey.Definition.Resource.Resource {
						return &failing{Store: w.env.Stores(name), good: 3, err: row.err}
					}
					return w.env.Stores(name)
				},
				Now: w.env.Now, Random: w.env.Random, Log: w.env.Log, Config: w.env.Config, Version: w.env.Version,
			})
			server.Metrics = w.server.Metrics
			w.handler = server.Mount(watched)
			answer := w.do(request{path: root + "?watch=true&fieldSelector=metadata.name%3Dana"})
			events := parse(t, answer.Body.String())
			if answer.Code != 200 || len(events) == 0 || events[0].Type != "ADDED" {
				t.Fatalf("answered %d %s", answer.Code, answer.Body)
			}
			if strings.Contains(answer.Body.String(), "hunter2") {
				t.Errorf("an error says what only the log may: %s", answer.Body)
			}
			if row.code == 0 {
				if len(events) != 1 {
					t.Errorf("sent %v", events)
				}
			} else if last := events[len(events)-1]; len(events) != 2 || last.Type != "ERROR" || last.Object["kind"] != "Status" ||
				last.Object["apiVersion"] != "v1" || last.Object["code"] != row.code || last.Object["reason"] != row.reason || last.Object["status"] != "Failure" {
				t.Errorf("sent %v", events)
			}
			if record := w.ended(1)[0]; record["ended"] != row.why || record["level"] != row.level || row.reason != "" && record["reason"] != row.reason {
				t.Errorf("ended with %v", record)
			}
		})
	}
}

// A writer that cannot stream gets all events at the end.
type unflushed struct{ *httptest.ResponseRecorder }

func (unflushed) Flush(int) {}

func TestWatchWithoutStreaming(t *testing.T) {
	t.Parallel()
	w := newWatchWorld(t)
	recorder := unflushed{httptest.NewRecorder()}
	w.handler.ServeHTTP(http.ResponseWriter(recorder), w.request(request{path: root + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=3600"}))
	events := parse(t, recorder.Body.String())
	if len(events) != 5 || events[4].Type != "BOOKMARK" {
		t.Errorf("sent %v", events)
	}
}

package frame_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/chain"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/postgressink/postgrestest"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// book stores events for a test. A test can make it refuse them.
type book struct {
	mu      sync.Mutex
	events  []audit.Event
	refuses func(audit.Event) bool
}

func (b *book) Write(_ context.Context, records []*audit.Record, _ bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var news []audit.Event
	for _, r := range records {
		var event audit.Event
		if err := json.Unmarshal(r.JSON, &event); err != nil {
			return err
		}
		if event.Annotations[audit.Log] != "" {
			continue // about the log itself
		}
		if b.refuses != nil && b.refuses(event) {
			return errors.New("refused")
		}
		news = append(news, event)
	}
	b.events = append(b.events, news...)
	return nil
}

func (*book) Close() error { return nil }

func (b *book) refuse(what func(audit.Event) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = what
}

// take returns the stored events and forgets them.
func (b *book) take() []audit.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

// audited configures the world to record to sinks. Every request waits until its event is stored.
func (w *world) audited(config *model.ConfigAudit, openers ...audit.Opener) *audit.Trail {
	config.Enabled = true
	w.config = &model.ConfigStatus{Audit: config}
	trail := audit.NewTrail(audit.Options{
		Config: w.env.Config, Openers: openers, Log: w.env.Log, Metrics: w.server.Metrics.(audit.Metrics), Flush: true,
	})
	w.server.Audit = trail
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		trail.Close(ctx)
	})
	return trail
}

func (w *world) booked(config *model.ConfigAudit) *book {
	b := &book{}
	w.audited(config, audit.Opener{Name: "book", Open: func(*model.ConfigAudit) (audit.Sink, error) { return b, nil }})
	return b
}

func rules(rules ...model.AuditRule) *model.ConfigAudit {
	return &model.ConfigAudit{Policy: &model.AuditPolicy{Rules: rules}}
}

// told returns the content of an event in one line.
func told(e audit.Event) string {
	text := string(e.Level) + " " + string(e.Stage) + " " + e.User.Username + " " + e.Verb
	if ref := e.ObjectRef; ref != nil {
		text += " " + ref.Resource + "/" + ref.Name
	}
	if e.ResponseStatus != nil {
		text += " " + http.StatusText(int(e.ResponseStatus.Code))
	}
	if decision := e.Annotations[audit.AuthorizationDecision]; decision != "" {
		text += ", " + decision
	}
	return text
}

// Source: Spec 2.7, 6; ADR-0016.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		request request
		code    int
		want    []string
	}{
		{"a get", request{path: root + "/ana"}, 200, []string{
			"RequestResponse RequestReceived root get ownedaccesskeys/ana",
			"RequestResponse ResponseComplete root get ownedaccesskeys/ana OK, allow",
		}},
		{"a create with a name of the server's", request{method: "POST", path: root, body: `{"metadata":{"generateName":"made-"}}`}, 201, []string{
			"RequestResponse RequestReceived root create ownedaccesskeys/",
			"RequestResponse ResponseComplete root create ownedaccesskeys/made-* Created, allow",
		}},
		{"a request without a credential", request{path: root + "/ana", bearer: nobody}, 401, []string{
			"RequestResponse RequestReceived system:anonymous get ownedaccesskeys/ana",
			"RequestResponse ResponseComplete system:anonymous get ownedaccesskeys/ana Unauthorized",
		}},
		{"a request that the scope forbids", request{method: "DELETE", path: root + "/ana", bearer: narrowKey}, 403, []string{
			"RequestResponse RequestReceived ana delete ownedaccesskeys/ana",
			"RequestResponse ResponseComplete ana delete ownedaccesskeys/ana Forbidden, forbid",
		}},
		{"an object that is not there", request{path: root + "/none"}, 404, []string{
			"RequestResponse RequestReceived root get ownedaccesskeys/none",
			"RequestResponse ResponseComplete root get ownedaccesskeys/none Not Found, allow",
		}},
		{"a panic", request{method: "POST", path: probe, body: asking("panic")}, 500, []string{
			"RequestResponse RequestReceived root create probes/",
			"RequestResponse Panic root create probes/ Internal Server Error, allow",
		}},
		{"an answer that cannot be encoded", request{method: "POST", path: probe, body: asking("unencodable")}, 500, []string{
			"RequestResponse RequestReceived root create probes/",
			"RequestResponse ResponseComplete root create probes/ Internal Server Error, allow",
		}},
		{"a document that everybody may read", request{path: "/page/one", bearer: nobody}, 200, []string{
			"RequestResponse RequestReceived system:anonymous get",
			"RequestResponse ResponseComplete system:anonymous get OK",
		}},
		{"an unknown path", request{path: "/nowhere", bearer: nobody}, 404, []string{
			"RequestResponse RequestReceived system:anonymous get",
			"RequestResponse ResponseComplete system:anonymous get Not Found",
		}},
		{"a wrong method", request{method: "PUT", path: root}, 405, []string{
			"RequestResponse RequestReceived system:anonymous put",
			"RequestResponse ResponseComplete system:anonymous put Method Not Allowed",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.booked(rules(model.AuditRule{Level: "RequestResponse"}))
			answer := w.do(row.request)
			if answer.Code != row.code {
				t.Fatalf("answered %d: %s", answer.Code, answer.Body)
			}
			events := b.take()
			if len(events) != len(row.want) {
				t.Fatalf("%d events instead of %d", len(events), len(row.want))
			}
			for i, event := range events {
				want, loose, _ := strings.Cut(row.want[i], "*")
				if got := told(event); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, loose) {
					t.Errorf("%q instead of %q", got, row.want[i])
				}
				if id := answer.Header().Get("Audit-Id"); event.AuditID != id || len(id) != 36 {
					t.Errorf("the event has the id %q and the answer %q", event.AuditID, id)
				}
				if event.Annotations[audit.RequestID] != answer.Header().Get("X-Request-Id") || len(event.SourceIPs) != 1 ||
					event.Kind != "Event" || event.APIVersion != "audit.k8s.io/v1" || event.StageTimestamp.Before(&event.RequestReceivedTimestamp) {
					t.Errorf("%+v", event)
				}
			}
		})
	}
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.booked(rules(model.AuditRule{Level: "RequestResponse", OmitStages: []string{"RequestReceived"}}))
	const bearer = "brought-key-7fQ2mZx94LwKc81RtVb6"
	for _, row := range []struct {
		name         string
		request      request
		sent, answer string
		omitted      string
	}{
		{"a create", request{method: "POST", path: root, body: `{"metadata":{"name":"made"},"spec":{"key":"` + bearer + `","user":"bob"}}`},
			`"key":"***"`, `"key":"***"`, ""},
		{"a create in YAML", request{method: "POST", path: root, body: "metadata: {name: yaml}\nspec: {key: " + bearer + "2, user: bob}",
			header: map[string]string{"Content-Type": "application/yaml"}}, `"key":"***"`, `"name":"yaml"`, ""},
		{"a body that is refused", request{method: "POST", path: root, body: `{"spec":{"key":["` + bearer + `"]}}`}, `"key":"***"`, `"kind":"Status"`, ""},
		{"a body that quotes its secret", request{method: "POST", path: root, body: `{"spec":{"key":"` + bearer + `","description":"it is ` + bearer + `"}}`},
			`"description":"it is ***"`, `"kind":"Status"`, ""},
		{"a body that is broken", request{method: "POST", path: root, body: `{"spec":{"key":"` + bearer}, "", `"kind":"Status"`, "decode-failed"},
		{"a merge patch", request{method: "PATCH", path: root + "/made", body: `{"spec":{"description":"two","key":"` + bearer + `"}}`,
			header: map[string]string{"Content-Type": "application/merge-patch+json"}}, `{"spec":{"description":"two","key":"***"}}`, `"description":"two"`, ""},
		{"a JSON patch", request{method: "PATCH", path: root + "/made", body: `[{"op":"replace","path":"/spec/description","value":"three"}]`,
			header: map[string]string{"Content-Type": "application/json-patch+json"}}, `"value":"three"`, `"description":"three"`, ""},
		{"an apply patch", request{method: "PATCH", path: root + "/made?fieldManager=m&force=true", body: "metadata: {name: made}\napiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nspec: {description: four}",
			header: map[string]string{"Content-Type": "application/apply-patch+yaml"}}, `"description":"four"`, `"description":"four"`, ""},
		{"a list", request{path: root}, "", `"items":[`, ""},
		{"a Table", request{path: root + "/made", header: map[string]string{"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}}, "", `"kind":"OwnedAccessKey"`, ""},
		{"a delete", request{method: "DELETE", path: root + "/made", body: `{"propagationPolicy":"Background"}`}, `{"propagationPolicy":"Background"}`, `"kind":"Status"`, ""},
	} {
		answer := w.do(row.request)
		events := b.take()
		if len(events) != 1 {
			t.Fatalf("%s: %d events for the answer %d", row.name, len(events), answer.Code)
		}
		event := events[0]
		if !strings.Contains(string(event.RequestObject), row.sent) || !strings.Contains(string(event.ResponseObject), row.answer) ||
			event.Annotations[audit.RequestOmitted] != row.omitted || event.Annotations[audit.ResponseOmitted] != "" {
			t.Errorf("%s: sent %s, answered %s, %v", row.name, event.RequestObject, event.ResponseObject, event.Annotations)
		}
		text, err := json.Marshal(event)
		if err != nil || strings.Contains(string(text), bearer) || strings.Contains(string(text), adminKey) || strings.Contains(string(text), "managedFields") {
			t.Errorf("%s: %s", row.name, text)
		}
	}
}

// A request that may change the configuration is recorded whatever the policy says, before and after the change.
func TestChangesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	off := &model.ConfigAudit{}
	silent := func(path string) *model.ConfigAudit {
		return &model.ConfigAudit{Enabled: true, Path: path, Policy: rules(model.AuditRule{Level: "None"}).Policy}
	}
	for _, row := range []struct {
		name          string
		before, after *model.ConfigAudit
		one, two      int
	}{
		{"turned off", silent("one"), off, 1, 0},
		{"moved", silent("one"), silent("two"), 1, 1},
		{"turned on", off, silent("two"), 0, 1},
		{"as before", silent("one"), silent("one"), 1, 0},
		{"off", off, off, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			books := map[string]*book{"one": {}, "two": {}}
			w.audited(&model.ConfigAudit{}, audit.Opener{Name: "book", Open: func(config *model.ConfigAudit) (audit.Sink, error) {
				return books[config.Path], nil
			}})
			w.config = &model.ConfigStatus{Audit: row.before}
			definition := *accesskey.Definition
			definition.Resource = model.SchemeGroupVersion.WithResource("configs")
			w.handler = w.server.Mount(&frame.Function{Name: "testconfigure", Endpoints: []frame.Endpoint{
				frame.Update(&definition, registry, func(context.Context, *accesskey.Registry, resource.UpdateInput[*model.OwnedAccessKey]) (resource.Result[*model.OwnedAccessKey], error) {
					w.config = &model.ConfigStatus{Audit: row.after}
					return resource.Result[*model.OwnedAccessKey]{}, errors.New("refused after all")
				}),
			}})
			w.do(request{method: "PUT", path: "/apis/management.platform.sh/v1/configs/config", body: `{"spec":{"description":"a change"}}`})
			for name, want := range map[string]int{"one": row.one, "two": row.two} {
				events := books[name].take()
				if len(events) != want {
					t.Errorf("%s has %d events", name, len(events))
				}
				for _, event := range events {
					if event.Level != audit.Request || event.Stage != audit.ResponseComplete || !strings.Contains(string(event.RequestObject), "a change") {
						t.Errorf("%s %s", told(event), event.RequestObject)
					}
				}
			}
		})
	}
}

// The verified address comes first. What a client claims is marked. Source: ADR-0016.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name           string
		proxies        int
		forwarded      []string
		source, claims string
	}{
		{"nothing is claimed", 0, nil, "192.0.2.1", ""},
		{"a claim", 0, []string{"203.0.113.9"}, "192.0.2.1", "203.0.113.9"},
		{"one proxy", 1, []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7", "203.0.113.9,192.0.2.1"},
		{"two proxies, in two headers", 2, []string{"203.0.113.9, 198.51.100.7:443", "10.0.0.1"}, "198.51.100.7", "203.0.113.9,10.0.0.1,192.0.2.1"},
		{"a request past the proxies", 2, []string{"203.0.113.9"}, "192.0.2.1", "203.0.113.9"},
		{"no address", 1, []string{"unknown"}, "192.0.2.1", ""},
	} {
		w := newWorld(t)
		w.server.Proxies = row.proxies
		b := w.booked(rules(model.AuditRule{Level: "Metadata"}))
		r := w.request(request{path: root})
		r.Header["X-Forwarded-For"] = row.forwarded
		w.send(r)
		for _, event := range b.take() {
			if strings.Join(event.SourceIPs, " ") != row.source || event.Annotations[audit.Claimed] != row.claims {
				t.Errorf("%s: %q, claimed is %q", row.name, event.SourceIPs, event.Annotations[audit.Claimed])
			}
		}
	}
}

// A credential that a client puts into the path, the user agent or another part of the head appears in no event and in no line
// of the log. Source: ADR-0016.
func TestStrayCredentials(t *testing.T) {
	t.Parallel()
	const other = "Own-Key_7fQ2mZx94LwKc81RtVb6-7fQ2mZx94"
	w := newWorld(t)
	b := w.booked(rules(model.AuditRule{Level: "RequestResponse"}))
	for _, r := range []request{
		{path: root + "/" + anaKey, bearer: anaKey},
		{path: root + "/" + other},
		{path: root + "/" + strings.ReplaceAll(anaKey, "-", "%2D"), bearer: anaKey},
		{path: "/nowhere/" + other},
		{path: root, header: map[string]string{"User-Agent": "curl/8 " + other}},
		{path: root, bearer: anaKey, header: map[string]string{"User-Agent": anaKey, "X-Request-Id": anaKey}},
		{method: strings.ToUpper("x" + strings.ReplaceAll(anaKey, "-", "")), path: root, bearer: anaKey},
	} {
		w.do(r)
	}
	var texts []string
	for _, event := range b.take() {
		text, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, line := range w.log.take(t) {
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if len(texts) < 14 {
		t.Errorf("only %d texts were left behind", len(texts))
	}
	for _, text := range texts {
		for _, secret := range []string{anaKey, other, strings.ReplaceAll(anaKey, "-", "%2D"), strings.ToLower(strings.ReplaceAll(anaKey, "-", ""))} {
			if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
	}
}

func TestLevelsOfPayloads(t *testing.T) {
	t.Parallel()
	for level, want := range map[string][2]bool{"Metadata": {false, false}, "Request": {true, false}, "RequestResponse": {true, true}} {
		w := newWorld(t)
		b := w.booked(rules(model.AuditRule{Level: level}))
		w.do(request{method: "POST", path: root, body: `{"metadata":{"name":"made"}}`})
		events := b.take()
		last := events[len(events)-1]
		if got := [2]bool{last.RequestObject != nil, last.ResponseObject != nil}; got != want || string(last.Level) != level {
			t.Errorf("%s: objects are recorded: %v", level, got)
		}
	}
	w := newWorld(t)
	b := w.booked(rules(model.AuditRule{Level: "None"}))
	if answer := w.do(request{path: root}); len(b.take()) != 0 || answer.Header().Get("Audit-Id") == "" {
		t.Error("None is recorded")
	}
	// Requests that reveal secrets are recorded even if the rule omits them, but the secrets are not.
	w.do(request{path: root + "?reveal=true"})
	events := b.take()
	if len(events) != 1 || events[0].Level != audit.Metadata || events[0].ResponseObject != nil {
		t.Errorf("%+v", events)
	}
	w.config = &model.ConfigStatus{}
	if answer := w.do(request{path: root}); answer.Header().Get("Audit-Id") != "" {
		t.Error("there is an id of events without an audit")
	}
}

// A watch has an event before its first byte, and one at its end.
func TestEventsOfAWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler = w.server.Mount(keys, &frame.Function{Name: "testwatch", Endpoints: []frame.Endpoint{
		frame.Watch(accesskey.Definition, registry, resource.Watch[*model.OwnedAccessKey]),
	}})
	b := w.booked(rules(model.AuditRule{Level: "RequestResponse", FailurePolicy: "Fail"}))
	w.do(request{path: root + "?watch=true&timeoutSeconds=1"})
	var stages []string
	for _, event := range b.take() {
		stages = append(stages, told(event))
	}
	want := "RequestResponse RequestReceived root watch ownedaccesskeys/; RequestResponse ResponseStarted root watch ownedaccesskeys/ OK, allow; " +
		"RequestResponse ResponseComplete root watch ownedaccesskeys/ OK, allow"
	if got := strings.Join(stages, "; "); got != want {
		t.Errorf("%s", got)
	}
	b.refuse(func(e audit.Event) bool { return e.Stage == audit.ResponseStarted })
	if answer := w.do(request{path: root + "?watch=true&timeoutSeconds=1"}); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("a watch that cannot be recorded: %d", answer.Code)
	}
}

// A request that cannot be recorded beforehand is not executed. A request that cannot be recorded afterwards is not acknowledged.
func TestFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.booked(rules(model.AuditRule{Level: "Metadata", FailurePolicy: "Fail"}))
	at := func(stage audit.Stage) func(audit.Event) bool {
		return func(e audit.Event) bool { return e.Stage == stage && e.Verb == "create" }
	}
	create := func(name string) int {
		return w.do(request{method: "POST", path: root, body: `{"metadata":{"name":"` + name + `"}}`}).Code
	}
	b.refuse(at(audit.RequestReceived))
	answer := w.do(request{method: "POST", path: root, body: `{"metadata":{"name":"first"}}`})
	refused(t, answer, http.StatusServiceUnavailable, "ServiceUnavailable")
	if answer.Header().Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	if got := w.do(request{path: root + "/first"}).Code; got != http.StatusNotFound {
		t.Errorf("it was done: %d", got)
	}
	b.refuse(at(audit.ResponseComplete))
	if got := create("second"); got != http.StatusServiceUnavailable {
		t.Errorf("it was acknowledged with %d", got)
	}
	b.refuse(nil)
	if got := create("third"); got != http.StatusCreated {
		t.Errorf("afterwards %d", got)
	}
	received := 0
	for _, e := range b.take() {
		if e.Verb == "create" && e.Stage == audit.RequestReceived {
			received++
		}
	}
	if received != 2 {
		t.Errorf("%d of 2 attempts are known of", received)
	}
	if got := w.count("platform_audit_events_total", map[string]string{"outcome": "refused", "level": "Metadata"}); got != 2 {
		t.Errorf("%v are counted as refused", got)
	}
}

// Where the audit can be mended, admins are served although their events cannot be recorded yet. The events wait until the
// sink takes them. Source: ADR-0024.
func TestAlsoUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	get := frame.Get(accesskey.Definition, registry, resource.Get[*model.OwnedAccessKey])
	w.handler = w.server.Mount(&frame.Function{Name: "testmend", Endpoints: []frame.Endpoint{get.AlsoUnrecorded()}})
	b := w.booked(rules(model.AuditRule{Level: "Metadata", FailurePolicy: "Fail"}))
	b.refuse(func(audit.Event) bool { return true })
	for bearer, want := range map[string]int{adminKey: http.StatusOK, anaKey: http.StatusServiceUnavailable, "wrong": http.StatusServiceUnavailable} {
		if got := w.do(request{path: root + "/ana", bearer: bearer}).Code; got != want {
			t.Errorf("%s: %d, want %d", bearer, got, want)
		}
	}
	b.refuse(nil)
	stages := 0
	for end := time.Now().Add(30 * time.Second); stages < 2 && time.Now().Before(end); {
		for _, event := range b.take() {
			if event.User.Username == "root" {
				stages++
			}
		}
		w.do(request{path: root + "/ana", bearer: anaKey})
	}
	if stages != 2 {
		t.Errorf("%d events of the admin were recorded afterwards", stages)
	}
}

// A scheduled run is recorded, and so is each object that it removes. Under Fail it removes nothing that is not recorded.
func TestEventsOfASchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.booked(rules(model.AuditRule{Level: "Metadata", FailurePolicy: "Fail"}))
	ran := 0
	sweep := &frame.Function{Name: "testsweep", Schedule: frame.Scheduled(registry,
		func(ctx context.Context, keys *accesskey.Registry) (int, error) {
			ran++
			_, err := resource.Delete(ctx, keys, resource.DeleteInput{Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), Name: "ana"})
			return 1, err
		},
		func(removed int) []slog.Attr { return []slog.Attr{slog.Int("removed", removed)} })}
	b.refuse(func(audit.Event) bool { return true })
	if err := w.server.Run(t.Context(), sweep); err == nil || ran != 0 {
		t.Errorf("it ran %d times: %v", ran, err)
	}
	b.refuse(nil)
	if err := w.server.Run(t.Context(), sweep); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, event := range b.take() {
		lines = append(lines, told(event))
		if event.Verb == "run" && event.Stage == audit.ResponseComplete && event.Annotations["management.platform.sh/removed"] != "1" {
			t.Errorf("%v", event.Annotations)
		}
	}
	want := "Metadata RequestReceived testsweep run; Metadata ResponseComplete testsweep delete ownedaccesskeys/ana OK; " +
		"Metadata ResponseComplete testsweep run OK"
	if got := strings.Join(lines, "; "); !strings.HasSuffix(got, want) {
		t.Errorf("%s", got)
	}
}

// Each further object that a request removes has an event of its own, which names the request. The caller removed the selected
// objects, and the collector removed their dependents. Source: ADR-0016.
func TestEventsOfRemovals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, labels string
		finalizer    bool
		request      request
		want         string
	}{
		{"of a delete", "", false, request{method: "DELETE", path: root + "/owner"},
			"collectgarbage delete ownedaccesskeys/child OK; root delete ownedaccesskeys/owner OK, allow"},
		{"of a collection", "tree=old", false, request{method: "DELETE", path: root + "?labelSelector=tree%3Dold"},
			"root delete ownedaccesskeys/owner OK; collectgarbage delete ownedaccesskeys/child OK; root deletecollection ownedaccesskeys/ OK, allow"},
		{"of the last finalizer", "", true, request{
			method: "PATCH", path: root + "/owner", body: `{"metadata":{"finalizers":null}}`,
			header: map[string]string{"Content-Type": "application/merge-patch+json"}},
			"collectgarbage delete ownedaccesskeys/child OK; root patch ownedaccesskeys/owner OK, allow"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newDeletions(t)
			admin := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
			create := func(key *model.OwnedAccessKey) *model.OwnedAccessKey {
				written, err := resource.Create(t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: admin, Object: key})
				if err != nil {
					t.Fatal(err)
				}
				return written.Object
			}
			parent := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "owner", Labels: map[string]string{"tree": "old"}}}
			if row.finalizer {
				parent.Finalizers = []string{"example.com/hold"}
			}
			owner := create(parent)
			create(&model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID},
			}}})
			if row.finalizer {
				if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: admin, Name: "owner"}); err != nil {
					t.Fatal(err)
				}
			}
			b := w.booked(rules(model.AuditRule{Level: "Metadata", OmitStages: []string{"RequestReceived"}}))
			answer := w.do(row.request)
			if answer.Code != http.StatusOK {
				t.Fatalf("answered %d: %s", answer.Code, answer.Body)
			}
			var lines []string
			for _, event := range b.take() {
				lines = append(lines, strings.TrimPrefix(told(event), "Metadata ResponseComplete "))
				cause := answer.Header().Get("Audit-Id")
				if event.AuditID == cause {
					cause = ""
				} else if event.ObjectRef.UID == "" {
					t.Errorf("%s has no uid", told(event))
				}
				if got := event.Annotations[audit.Cause]; got != cause {
					t.Errorf("%s is caused by %q, want %q", told(event), got, cause)
				}
			}
			if got := strings.Join(lines, "; "); got != row.want {
				t.Errorf("recorded is %s", got)
			}
		})
	}
}

// Objects that go with their owner have their event, even if the request that removes the owner has none.
func TestEventsOfRemovalsAlone(t *testing.T) {
	t.Parallel()
	w := newDeletions(t)
	admin := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	create := func(key *model.OwnedAccessKey) *model.OwnedAccessKey {
		written, err := resource.Create(t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: admin, Object: key})
		if err != nil {
			t.Fatal(err)
		}
		return written.Object
	}
	owner := create(&model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "owner"}})
	create(&model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID},
	}}})
	b := w.booked(rules(model.AuditRule{Level: "None", Users: []string{"root"}}, model.AuditRule{Level: "Metadata"}))
	answer := w.do(request{method: "DELETE", path: root + "/owner"})
	events := b.take()
	if answer.Code != http.StatusOK || len(events) != 1 || told(events[0]) != "Metadata ResponseComplete collectgarbage delete ownedaccesskeys/child OK" ||
		events[0].Annotations[audit.Cause] != answer.Header().Get("Audit-Id") || !strings.HasSuffix(events[0].RequestURI, "/owner") {
		t.Errorf("answered %d, recorded %+v", answer.Code, events)
	}
}

// Under Fail, a request is refused if one of its removals cannot be recorded.
func TestRemovalsThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	w := newDeletions(t)
	b := w.booked(rules(model.AuditRule{Level: "Metadata", FailurePolicy: "Fail"}))
	b.refuse(func(e audit.Event) bool { return e.Verb == "delete" })
	refused(t, w.do(request{method: "DELETE", path: root + "?fieldSelector=metadata.name%3Dana"}), http.StatusServiceUnavailable, "ServiceUnavailable")
	b.refuse(nil)
	events := b.take()
	if last := told(events[len(events)-1]); !strings.HasPrefix(last, "Metadata ResponseComplete root deletecollection ownedaccesskeys/ Service Unavailable") {
		t.Errorf("recorded is %s", last)
	}
}

// outage is a sink that can fail and recover.
type outage struct {
	config *model.ConfigAudit
	opener audit.Opener
	// broken reports whether the sink fails from the start.
	broken bool
	fail   func()
	mend   func()
	// kept returns the ids of the stored events.
	kept func() map[string]bool
}

// TestSinksThatFail lets every kind of sink fail in its own way. Under Fail nothing is acknowledged that is not stored, and
// under Ignore everything is served. Source: ADR-0016.
func TestSinksThatFail(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T) *outage{
		"a full disk": fullDisk, "a read-only folder": readOnly, "PostgreSQL stopped": postgresStopped, "a Redis that refuses": redisRefuses,
	} {
		for _, policy := range []string{"Fail", "Ignore"} {
			t.Run(name+", "+policy, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				o := begin(t)
				o.config.Policy = rules(model.AuditRule{Level: "RequestResponse", FailurePolicy: policy}).Policy
				trail := w.audited(o.config, o.opener)
				acknowledged := map[string]bool{}
				ask := func(times int) (served int) {
					for range times {
						answer := w.do(request{path: root})
						switch {
						case answer.Code == http.StatusOK:
							served++
							acknowledged[answer.Header().Get("Audit-Id")] = true
						case answer.Code != http.StatusServiceUnavailable:
							t.Errorf("answered %d", answer.Code)
						}
					}
					return served
				}
				if got := 3; !o.broken && ask(got) != got {
					t.Fatalf("not all of %d are served by a sink that works", got)
				}
				o.fail()
				// A full disk may have room in the last block of a file.
				asked, served := 20, 0
				if policy == "Ignore" {
					asked = 2
				}
				for range asked {
					one := ask(1)
					if served += one; one == 0 {
						break
					}
				}
				if policy == "Fail" && served == asked || policy == "Ignore" && served != asked {
					t.Errorf("%d of %d are served by a sink that does not work", served, asked)
				}
				o.mend()
				// The pause after a failure may be longer than a request waits.
				for range 20 {
					if ask(1) == 1 {
						break
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				trail.Close(ctx)
				kept := o.kept()
				for id := range acknowledged {
					if !kept[id] {
						t.Errorf("%s was acknowledged and is not kept", id)
					}
				}
				if len(acknowledged) == 0 {
					t.Error("nothing was served in the end")
				}
			})
		}
	}
}

// ids returns the audit IDs of the events whose stage is ResponseComplete.
func ids(t *testing.T, lines []string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, line := range lines {
		var event audit.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if event.Stage == audit.ResponseComplete {
			found[event.AuditID] = true
		}
	}
	return found
}

func inFile(t *testing.T, directory string) func() map[string]bool {
	return func() map[string]bool {
		report, err := chain.Verify(directory)
		if err != nil || len(report.Findings) > 0 {
			t.Errorf("the chain is not whole: %v %v", report, err)
		}
		text, err := os.ReadFile(filepath.Join(directory, chain.Name))
		if err != nil {
			t.Fatal(err)
		}
		return ids(t, strings.Split(strings.TrimSpace(string(text)), "\n"))
	}
}

func postgresStopped(t *testing.T) *outage {
	server := postgrestest.Server(t)
	return &outage{
		config: &model.ConfigAudit{DataStoreEndpoint: secret.String(server.URL())}, opener: postgressink.Opener,
		fail: server.Kill, mend: server.Start,
		kept: func() map[string]bool {
			rows, err := server.Connect().Query(t.Context(), `SELECT event::text FROM audit_events`)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var lines []string
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, line)
			}
			return ids(t, lines)
		},
	}
}

func redisRefuses(t *testing.T) *outage {
	server := redistest.Server(t, redistest.Argument("--maxmemory-policy", "noeviction"))
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	memory := func(bytes string) func() {
		return func() {
			if err := client.ConfigSet(context.Background(), "maxmemory", bytes).Err(); err != nil {
				t.Error(err)
			}
		}
	}
	return &outage{
		config: &model.ConfigAudit{DataStoreEndpoint: secret.String(server.URL())}, opener: redissink.Opener,
		fail: memory("1"), mend: memory("0"),
		kept: func() map[string]bool {
			entries, err := client.XRange(context.Background(), "p1:{audit}:events", "-", "+").Result()
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, e := range entries {
				lines = append(lines, e.Values["event"].(string))
			}
			return ids(t, lines)
		},
	}
}

package frame_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore/redistest"
)

const (
	root  = "/apis/management.platform.sh/v1/ownedaccesskeys"
	probe = "/apis/test.example/v1/probes"
	hush  = "redis://:hunter2@state.internal"
)

// The bearer tokens of the world.
const (
	adminKey  = "admin-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	anaKey    = "ana-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-"
	narrowKey = "narrow-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
)

var now = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)

// world contains test-only functions over a real state.
type world struct {
	t       testing.TB
	env     *platform.Environment
	server  *frame.Server
	metrics *prometheus.Registry
	handler http.Handler
	log     lines
	config  *model.ConfigStatus
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the records so far and forgets them.
func (l *lines) take(t testing.TB) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var records []map[string]any
	for line := range strings.Lines(l.text.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		records = append(records, record)
	}
	l.text.Reset()
	return records
}

func newWorld(t testing.TB) *world {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	w := &world{t: t, metrics: prometheus.NewRegistry(), config: &model.ConfigStatus{}}
	w.env = &platform.Environment{
		Stores:  client.Resource,
		Now:     func() time.Time { return now },
		Random:  rand.Reader,
		Log:     slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Config:  func() *model.ConfigStatus { return w.config },
		Version: "test",
	}
	w.server = process.NewServer(w.env)
	w.server.Metrics = metrics.New(w.metrics)
	w.key("admin", adminKey, "root", []string{identity.Admins}, nil)
	w.key("ana", anaKey, "ana", nil, nil)
	w.key("narrow", narrowKey, "ana", nil, &model.Scope{Rules: []model.ScopeRule{{
		Verbs: []string{"get"}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"ownedaccesskeys"}}},
	}}})
	w.handler = w.server.Mount(keys, probes, unprintable)
	return w
}

// key stores a key with a known bearer token.
func (w *world) key(name, bearer, user string, groups []string, scope *model.Scope) {
	w.t.Helper()
	object := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.Spec = model.OwnedAccessKeySpec{User: user, Groups: groups, Key: bearer, Scope: scope}
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	if _, err := resource.Create(w.t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: object}); err != nil {
		w.t.Fatal(err)
	}
}

// request is one request of a table; the zero value of Bearer is the admin's.
type request struct {
	method, path, bearer, body string
	header                     map[string]string
}

const nobody = "-"

func (w *world) do(r request) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.send(w.request(r))
}

func (w *world) request(r request) *http.Request {
	w.t.Helper()
	if r.method == "" {
		r.method = http.MethodGet
	}
	req := httptest.NewRequestWithContext(w.t.Context(), r.method, r.path, strings.NewReader(r.body))
	switch r.bearer {
	case nobody:
	case "":
		req.Header.Set("Authorization", "Bearer "+adminKey)
	default:
		req.Header.Set("Authorization", "Bearer "+r.bearer)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	return req
}

func (w *world) send(req *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, req)
	return recorder
}

// status parses a response as a Status.
func status(t testing.TB, answer *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var got metav1.Status
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Kind != "Status" || got.APIVersion != "v1" {
		t.Fatalf("the answer %d is no Status (%v): %s", answer.Code, err, answer.Body)
	}
	return got
}

// refused expects a Status with the same code as the response.
func refused(t testing.TB, answer *httptest.ResponseRecorder, code int, reason metav1.StatusReason, fields ...string) {
	t.Helper()
	got := status(t, answer)
	if answer.Code != code || int(got.Code) != code || got.Reason != reason || got.Status != metav1.StatusFailure || got.Message == "" {
		t.Errorf("answered %d with %+v, want %d %s", answer.Code, got, code, reason)
	}
	var found []string
	if got.Details != nil {
		for _, cause := range got.Details.Causes {
			found = append(found, cause.Field)
		}
	}
	if strings.Join(found, " ") != strings.Join(fields, " ") {
		t.Errorf("causes are of the fields %q, want %q", found, fields)
	}
}

// count returns the value of a counter or gauge, or the number of observations, of all series with the labels.
func (w *world) count(name string, labels map[string]string) float64 {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if has(metric, labels) {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func has(metric *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, pair := range metric.GetLabel() {
		if value, asked := labels[pair.GetName()]; asked {
			if value != pair.GetValue() {
				return false
			}
			found++
		}
	}
	return found == len(labels)
}

func registry(env *platform.Environment) *accesskey.Registry {
	return kinds.AccessKeys(env).WithFieldManager(fieldmanager.New)
}

// keys returns a function with every verb of a stored resource.
var keys = &frame.Function{Name: "testkeys", Endpoints: []frame.Endpoint{
	frame.Create(accesskey.Definition, registry, resource.Create[*model.OwnedAccessKey]),
	frame.Get(accesskey.Definition, registry, resource.Get[*model.OwnedAccessKey]),
	frame.List(accesskey.Definition, registry, resource.List[*model.OwnedAccessKey]),
	frame.Update(accesskey.Definition, registry, resource.Update[*model.OwnedAccessKey]),
	frame.Patch(accesskey.Definition, registry, resource.Patch[*model.OwnedAccessKey]),
	frame.Delete(accesskey.Definition, registry, resource.Delete[*model.OwnedAccessKey]),
}}

// heldBack passes the request of a probe to its test, and waits for the result.
type heldBack struct{}

// probing is the object that clients send to a probe.
type probing struct {
	metav1.TypeMeta `json:",inline"`
	// Do says what the operation does.
	Do string `json:"do"`
}

func (p *probing) DeepCopyObject() runtime.Object { return new(*p) }

// asking returns the body of a request to a probe.
func asking(do string) string { return fmt.Sprintf(`{"do":%q}`, do) }

// probes behaves as its body requests.
var probes = &frame.Function{Name: "testprobes", Endpoints: []frame.Endpoint{
	frame.ReviewWithWarnings(schema.GroupVersionResource{Group: "test.example", Version: "v1", Resource: "probes"}, "Probe", "probe",
		func(*platform.Environment) heldBack { return heldBack{} },
		func(ctx context.Context, _ heldBack, in frame.ReviewRequest[*probing]) (frame.ReviewResult[any], error) {
			var none frame.ReviewResult[any]
			switch in.Object.Do {
			case "panic":
				panic("lost " + hush)
			case "panic with an error":
				panic(errors.New("lost " + hush))
			case "warn":
				return frame.ReviewResult[any]{Object: in.Object, Warnings: []string{"first", "second"}}, nil
			case "abort":
				panic(http.ErrAbortHandler)
			case "error":
				return none, errors.New("lost " + hush)
			case "unavailable":
				return none, apierror.Unavailable().Because(errors.New("lost " + hush))
			case "absent store":
				return none, apierror.NotImplemented("there is no store").Because(errors.New("lost " + hush))
			case "wrapped":
				return none, fmt.Errorf("asking: %w", apierror.NotFound(schema.GroupResource{Resource: "probes"}, "x").Because(errors.New("lost "+hush)))
			case "wait":
				<-ctx.Done()
				return none, fmt.Errorf("waiting: %w", ctx.Err())
			case "unencodable":
				return frame.ReviewResult[any]{Object: func() {}}, nil
			default:
				return frame.ReviewResult[any]{Object: map[string]any{
					"caller": in.Caller.Owner.String(), "kind": in.Object.Kind, "do": in.Object.Do, "sent": string(in.JSON),
				}}, nil
			}
		}),
	frame.Document("/page/{name}", func(config *model.ConfigStatus) bool { return !config.AuthenticateVersionEndpoint },
		func(*platform.Environment) heldBack { return heldBack{} },
		func(_ context.Context, _ heldBack, in frame.DocumentInput) (*frame.Page, error) {
			if in.Path == "/page/fresh" {
				return &frame.Page{MediaType: "text/plain", Body: []byte("fresh")}, nil
			}
			return &frame.Page{MediaType: "text/plain", Body: []byte(in.Path), ETag: "T1"}, nil
		}),
}}

// unprintable lists objects that cannot be converted to a Table.
var unprintable = func() *frame.Function {
	definition := *accesskey.Definition
	definition.Resource = schema.GroupVersionResource{Group: "test.example", Version: "v1", Resource: "unprintables"}
	definition.Cells = func(*model.OwnedAccessKey, time.Time) []any { panic("lost " + hush) }
	return &frame.Function{Name: "testunprintable", Endpoints: []frame.Endpoint{
		frame.List(&definition, registry, func(ctx context.Context, r *accesskey.Registry, in resource.ListInput) (runtime.Object, error) {
			return resource.List(ctx, r, in)
		}),
	}}
}()

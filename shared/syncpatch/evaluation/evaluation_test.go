package evaluation_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
	"management.platform.sh/shared/syncpatch/expression"
)

// patient settings give patches enough time on a busy machine.
var patient = settings.Patches{ExpressionTime: time.Minute, ObjectTime: time.Minute, Workers: 1}

// ask sends a body, and returns the answer and its warnings.
func ask(t *testing.T, e *evaluation.Evaluator, contentType, body string, strictness codec.Strictness) (*model.SyncPatchEvaluation, []string, error) {
	t.Helper()
	var warnings []string
	answer, err := e.Review(t.Context(), frame.Question{
		ContentType: contentType, Body: []byte(body), Validation: strictness,
		Warn: func(more ...string) { warnings = append(warnings, more...) },
	})
	return answer, warnings, err
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	yaml = "application/yaml"
	head = "apiVersion: management.platform.sh/v1\nkind: SyncPatchEvaluation\n"
)

func TestReview(t *testing.T) {
	t.Parallel()
	e := evaluation.Open(&platform.Environment{Patches: patient})
	for _, row := range []struct {
		about, contentType, body string
		object, failure          string
		warnings                 int
	}{
		{"YAML", yaml, head + `spec: {patches: [{path: a, expression: value + 1}], object: {a: 1}}`, `{"a":2}`, "", 0},
		{"JSON, without kind", "application/json", `{"spec":{"patches":[{"path":"a","expression":"value + 1"}],"object":{"a":1}}}`, `{"a":2}`, "", 0},
		{"the way back", yaml, `spec: {direction: HostToTenant, patches: [{path: a, expression: '1', reverseExpression: '2'}], object: {a: 0}}`, `{"a":2}`, "", 0},
		{
			"patches of a configuration (2.8 patches)", yaml,
			`spec: {resource: endpoints, configuration: {sync: {toHost: {endpoints: {patches: [{path: a, expression: '"b"'}]}}}}, object: {a: x}}`, `{"a":"b"}`, "", 0,
		},
		{"an expression that fails", yaml, `spec: {patches: [{path: a, expression: value + 1}, {path: b, expression: value.c.d}], object: {a: 1, b: {}}}`, `{"a":1,"b":{}}`, "TypeError", 0},
		{"what is hardly meant", yaml, `spec: {patches: [{path: a, expression: 'null'}], object: {a: 1, b: 2}}`, `{"b":2}`, "", 1},
		{"an unknown field", yaml, `spec: {patches: [{path: a, expression: '1'}], object: {a: 0}, patch: []}`, `{"a":1}`, "", 1},
		{"a status that was sent is nothing", yaml, `{spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}, status: {error: {message: x, index: 0, path: x}}}`, `{"a":1}`, "", 0},
	} {
		answer, warnings, err := ask(t, e, row.contentType, row.body, codec.Warn)
		if err != nil {
			t.Errorf("%s: %v", row.about, err)
			continue
		}
		if got := string(answer.Status.Object.Raw); got != row.object || len(warnings) != row.warnings || answer.Kind != "SyncPatchEvaluation" || answer.APIVersion != "management.platform.sh/v1" {
			t.Errorf("%s: answered %s of %v with the warnings %q", row.about, got, answer.TypeMeta, warnings)
		}
		if failed := answer.Status.Error; (failed != nil) != (row.failure != "") || failed != nil && !strings.Contains(failed.Message, row.failure) {
			t.Errorf("%s: the error is %+v", row.about, failed)
		}
	}
}

// All problems of a request are reported at once, each at its field. Source: ADR-0013.
func TestRefused(t *testing.T) {
	t.Parallel()
	e := evaluation.Open(&platform.Environment{Patches: patient})
	for _, row := range []struct {
		about, contentType, body string
		strictness               codec.Strictness
		code                     int32
		fields                   []string
	}{
		{"patches", yaml, `spec: {patches: [{path: 'a[', expression: value +}, {path: b, expression: value, labels: {}}], object: {}}`, codec.Warn, 422,
			[]string{"spec.patches[0].path", "spec.patches[0].expression", "spec.patches[1]", "spec.context.tenant.name"}},
		{"patches without a path", yaml, `spec: {patches: [{expression: value}, {path: null, expression: value}, {path: '', expression: value}], object: {}}`, codec.Warn, 422,
			[]string{"spec.patches[1].path", "spec.patches[2].path", "spec.patches[0].path", "spec.patches[1].path"}},
		{"nothing", "application/json", `{}`, codec.Warn, 422, []string{"spec.patches", "spec.object"}},
		{"enumerations", yaml, `spec: {direction: Up, namespaceMode: Some, checks: [All], patches: [{path: a, expression: value}], object: {}}`, codec.Warn, 422,
			[]string{"spec.direction", "spec.namespaceMode", "spec.checks[0]"}},
		{"a configuration", yaml, `spec: {resource: pods, configuration: {sync: {toHost: {pods: {patches: [{path: a, expression: import x}]}}}}, object: {}}`, codec.Warn, 422,
			[]string{"spec.configuration.sync.toHost.pods.patches[0].expression"}},
		{"an unknown field under Strict", yaml, `spec: {patches: [{path: a, expression: value}], object: {}, patch: []}`, codec.Strict, 400, []string{"spec.patch"}},
		{"no body", yaml, ``, codec.Warn, 400, nil},
		{"another kind", yaml, `{apiVersion: v1, kind: Pod}`, codec.Warn, 400, []string{"kind", "apiVersion"}},
		{"another version", yaml, `{apiVersion: management.platform.sh/v9, kind: SyncPatchEvaluation}`, codec.Warn, 400, []string{"apiVersion"}},
		{"another media type", "text/plain", `{}`, codec.Warn, 415, nil},
	} {
		answer, _, err := ask(t, e, row.contentType, row.body, row.strictness)
		if err == nil {
			t.Errorf("%s: answered %+v", row.about, answer)
			continue
		}
		status := apierror.From(err).Status()
		var fields []string
		if status.Details != nil {
			for _, cause := range status.Details.Causes {
				fields = append(fields, cause.Field)
			}
		}
		if status.Code != row.code || !slices.Equal(fields, row.fields) {
			t.Errorf("%s: %d with %q, want %d with %q", row.about, status.Code, fields, row.code, row.fields)
		}
	}
}

// Patches are enterprise-only. Source: Spec 2.8 (patches).
func TestEdition(t *testing.T) {
	t.Parallel()
	const body = `spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}`
	for edition, want := range map[string]int32{"": 0, settings.Enterprise: 0, settings.Community: 403} {
		_, _, err := ask(t, evaluation.Open(&platform.Environment{Edition: edition, Patches: patient}), yaml, body, codec.Warn)
		code := int32(0)
		if err != nil {
			code = apierror.From(err).Status().Code
		}
		if code != want {
			t.Errorf("%q: %v", edition, err)
		}
	}
}

// An attack is an error that names the limit and the place. The object stays as it was, and the next evaluation is right.
// Source: ADR-0014.
func TestLimits(t *testing.T) {
	t.Parallel()
	e := evaluation.Open(&platform.Environment{Patches: patient.Patches{ObjectTime: time.Minute, Workers: 1, MemoryBytes: 32 << 20, ResultBytes: 1000}})
	for text, limit := range map[string]expression.Limit{
		`(() => { for (;;); })()`:                               expression.LimitTime,
		`Array.from({length: 1e9}, (_, i) => "x".repeat(1000))`: syncpatch.LimitMemory,
		`"x".repeat(2000)`:                                      expression.LimitResult,
		`(f => f(f))(f => f(f))`:                                expression.LimitDepth,
	} {
		body := encode(t, map[string]any{"spec": map[string]any{
			"patches": []any{map[string]any{"path": "a[*]", "expression": text}}, "object": map[string]any{"a": []any{1}},
		}})
		answer, _, err := ask(t, e, "application/json", body, codec.Warn)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		failed := answer.Status.Error
		// Which of time and memory is used up first depends on the machine.
		named := failed != nil && (strings.Contains(failed.Message, string(limit)) || limit == syncpatch.LimitMemory && strings.Contains(failed.Message, string(expression.LimitTime)))
		if !named || failed.Path != "a.0" || string(answer.Status.Object.Raw) != `{"a":[1]}` {
			t.Errorf("%s: %+v, %s", text, failed, answer.Status.Object.Raw)
		}
	}
	generous := evaluation.Open(&platform.Environment{Patches: patient})
	if answer, _, err := ask(t, generous, yaml, `spec: {patches: [{path: a, expression: value + 1}], object: {a: 1}}`, codec.Warn); err != nil || answer.Status.Error != nil {
		t.Errorf("%+v, %v", answer, err)
	}
}

// Without a worker, the service is not available. A client that has gone gets the error of its context.
func TestWithoutWorker(t *testing.T) {
	t.Parallel()
	const body = `spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}`
	lost := errors.New("fork: resource temporarily unavailable")
	e := &evaluation.Evaluator{Run: func(context.Context, *syncpatch.Checked) (*syncpatch.Result, error) { return nil, lost }}
	_, _, err := ask(t, e, yaml, body, codec.Warn)
	if status := apierror.From(err).Status(); status.Code != 503 || !errors.Is(err, lost) || strings.Contains(status.Message, "fork") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e = evaluation.Open(&platform.Environment{Patches: patient})
	if _, err := e.Review(ctx, frame.Question{ContentType: yaml, Body: []byte(body), Warn: func(...string) {}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Absent settings are the defaults of the engine, and all others reach it.
func TestSettings(t *testing.T) {
	t.Parallel()
	if got := evaluation.Settings(settings.Patches{}).Limits.WithDefaults(); got != syncpatch.DefaultLimits() {
		t.Errorf("%+v", got)
	}
	got := evaluation.Settings(settings.Patches{
		ExpressionTime: 1, ObjectTime: 2, MemoryBytes: 3, ResultBytes: 4, Depth: 5, Workers: 6, InProcess: true,
	})
	if got.Limits != (syncpatch.Limits{Expression: 1, Object: 2, Memory: 3, Result: 4, Depth: 5}) || got.Processes != 6 || !got.InProcess {
		t.Errorf("%+v", got)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	e := evaluation.Open(&platform.Environment{Patches: patient})
	answer, _, err := ask(t, e, yaml, `spec: {patches: [{path: 'a[*]', expression: value + 1}, {path: b, expression: '1'}], object: {a: [1, 2]}}`, codec.Warn)
	if err != nil {
		t.Fatal(err)
	}
	for _, include := range []metav1.IncludeObjectPolicy{metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject} {
		table, err := evaluation.Table(answer, include)
		if err != nil || len(table.Rows) != 3 {
			t.Fatalf("%+v, %v", table, err)
		}
		if got, want := table.Rows[1].Cells, []any{int32(0), "a.1", "Applied", "", "2", "3"}; !reflect.DeepEqual(got, want) {
			t.Errorf("the row is %v, want %v", got, want)
		}
		if got := table.Rows[2].Cells; got[1] != "b" || got[2] != "Skipped" || got[3] == "" || len(got) != len(table.ColumnDefinitions) {
			t.Errorf("the row is %v", got)
		}
		if object := table.Rows[0].Object.Object; (object == nil) != (include == metav1.IncludeNone) || (object == answer) != (include == metav1.IncludeObject) {
			t.Errorf("%s: the object is %v", include, object)
		}
	}
	if _, err := evaluation.Table(&model.Self{}, metav1.IncludeNone); err == nil {
		t.Error("it printed something else")
	}
}

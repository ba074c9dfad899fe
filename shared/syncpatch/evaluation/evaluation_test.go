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
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
	"management.platform.sh/shared/syncpatch/expression"
)

// patient settings give patches enough time on a busy machine.
var patient = settings.Patches{ExpressionTime: time.Minute, ObjectTime: time.Minute, Workers: 1}

// ask evaluates an evaluation in YAML.
func ask(t *testing.T, e *evaluation.Evaluator, text string) (*model.SyncPatchEvaluation, error) {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var asked model.SyncPatchEvaluation
	if err := json.Unmarshal(body, &asked); err != nil {
		t.Fatal(err)
	}
	asked.Status, err = e.Evaluate(t.Context(), &asked, syncpatch.AbsentPaths(asked.Spec.Patches, body))
	return &asked, err
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	e := evaluation.New("", patient)
	for _, row := range []struct {
		about, body     string
		object, failure string
		warnings        int
	}{
		{"an expression", `spec: {patches: [{path: a, expression: value + 1}], object: {a: 1}}`, `{"a":2}`, "", 0},
		{"the way back", `spec: {direction: HostToTenant, patches: [{path: a, expression: '1', reverseExpression: '2'}], object: {a: 0}}`, `{"a":2}`, "", 0},
		{
			"patches of a configuration (2.8 patches)",
			`spec: {resource: endpoints, configuration: {sync: {toHost: {endpoints: {patches: [{path: a, expression: '"b"'}]}}}}, object: {a: x}}`, `{"a":"b"}`, "", 0,
		},
		{"an expression that fails", `spec: {patches: [{path: a, expression: value + 1}, {path: b, expression: value.c.d}], object: {a: 1, b: {}}}`, `{"a":1,"b":{}}`, "TypeError", 0},
		{"a patch that is probably not meant", `spec: {patches: [{path: a, expression: 'null'}], object: {a: 1, b: 2}}`, `{"b":2}`, "", 1},
		{"a status that was sent is ignored", `{spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}, status: {error: {message: x, index: 0, path: x}}}`, `{"a":1}`, "", 0},
	} {
		answer, err := ask(t, e, row.body)
		if err != nil {
			t.Errorf("%s: %v", row.about, err)
			continue
		}
		if got := string(answer.Status.Object.Raw); got != row.object || len(answer.Status.Warnings) != row.warnings {
			t.Errorf("%s: answered %s with the warnings %q", row.about, got, answer.Status.Warnings)
		}
		if failed := answer.Status.Error; (failed != nil) != (row.failure != "") || failed != nil && !strings.Contains(failed.Message, row.failure) {
			t.Errorf("%s: the error is %+v", row.about, failed)
		}
	}
}

// All problems of a request are reported at once, each at its field. Source: ADR-0013.
func TestRefused(t *testing.T) {
	t.Parallel()
	e := evaluation.New("", patient)
	for _, row := range []struct {
		about, body string
		fields      []string
	}{
		{"patches", `spec: {patches: [{path: 'a[', expression: value +}, {path: b, expression: value, labels: {}}], object: {}}`,
			[]string{"spec.patches[0].path", "spec.patches[0].expression", "spec.patches[1]", "spec.context.tenant.name"}},
		{"patches without a path", `spec: {patches: [{expression: value}, {path: null, expression: value}, {path: '', expression: value}], object: {}}`,
			[]string{"spec.patches[1].path", "spec.patches[2].path", "spec.patches[0].path", "spec.patches[1].path"}},
		{"nothing", `{}`, []string{"spec.patches", "spec.object"}},
		{"enumerations", `spec: {direction: Up, namespaceMode: Some, naming: VCluster, checks: [All], patches: [{path: a, expression: value}], object: {}}`,
			[]string{"spec.direction", "spec.namespaceMode", "spec.naming", "spec.checks[0]"}},
		{"a configuration", `spec: {resource: pods, configuration: {sync: {toHost: {pods: {patches: [{path: a, expression: import x}]}}}}, object: {}}`,
			[]string{"spec.configuration.sync.toHost.pods.patches[0].expression"}},
	} {
		answer, err := ask(t, e, row.body)
		if err == nil {
			t.Errorf("%s: answered %+v", row.about, answer)
			continue
		}
		status := apierror.From(err).Status()
		var fields []string
		for _, cause := range status.Details.Causes {
			fields = append(fields, cause.Field)
		}
		if status.Code != 422 || !slices.Equal(fields, row.fields) {
			t.Errorf("%s: %d with %q, want 422 with %q", row.about, status.Code, fields, row.fields)
		}
	}
}

// Patches are enterprise-only. Source: Spec 2.8 (patches).
func TestEdition(t *testing.T) {
	t.Parallel()
	const body = `spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}`
	for edition, want := range map[string]int32{"": 0, settings.Enterprise: 0, settings.Community: 403} {
		_, err := ask(t, evaluation.New(edition, patient), body)
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
	e := evaluation.New("", settings.Patches{ObjectTime: time.Minute, Workers: 1, MemoryBytes: 32 << 20, ResultBytes: 1000})
	for text, limit := range map[string]expression.Limit{
		`(() => { for (;;); })()`:                               expression.LimitTime,
		`Array.from({length: 1e9}, (_, i) => "x".repeat(1000))`: syncpatch.LimitMemory,
		`"x".repeat(2000)`:                                      expression.LimitResult,
		`(f => f(f))(f => f(f))`:                                expression.LimitDepth,
	} {
		body := encode(t, map[string]any{"spec": map[string]any{
			"patches": []any{map[string]any{"path": "a[*]", "expression": text}}, "object": map[string]any{"a": []any{1}},
		}})
		answer, err := ask(t, e, body)
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
	generous := evaluation.New("", patient)
	if answer, err := ask(t, generous, `spec: {patches: [{path: a, expression: value + 1}], object: {a: 1}}`); err != nil || answer.Status.Error != nil {
		t.Errorf("%+v, %v", answer, err)
	}
}

// Without a worker, the answer says that this is a fault of the platform. A client that has gone gets the error of its context.
func TestWithoutWorker(t *testing.T) {
	t.Parallel()
	const body = `spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}`
	lost := errors.New("fork: resource temporarily unavailable")
	e := &evaluation.Evaluator{Run: func(context.Context, *model.SyncPatchEvaluationSpec) (syncpatch.Outcome, error) {
		return syncpatch.Outcome{}, lost
	}}
	_, err := ask(t, e, body)
	if status := apierror.From(err).Status(); status.Code != 500 || !errors.Is(err, lost) || strings.Contains(status.Message, "fork") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e = evaluation.New("", patient)
	valid := &model.SyncPatchEvaluation{Spec: model.SyncPatchEvaluationSpec{
		Patches: []model.SyncPatch{{Path: "a", Expression: "1"}}, Object: &model.JSON{Raw: []byte(`{"a":0}`)},
	}}
	if _, err := e.Evaluate(ctx, valid, nil); !errors.Is(err, context.Canceled) {
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
	if got.Limits != (syncpatch.Limits{Expression: 1, Object: 2, Memory: 3, Result: 4, Depth: 5}) || got.Processes != 7 || !got.InProcess {
		t.Errorf("%+v", got)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	e := evaluation.New("", patient)
	answer, err := ask(t, e, `spec: {patches: [{path: 'a[*]', expression: value + 1}, {path: b, expression: '1'}], object: {a: [1, 2]}}`)
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

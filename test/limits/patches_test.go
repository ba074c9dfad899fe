package limits_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/settings"
)

// evaluationRequest returns an evaluation of expressions, each at a path of its own. The object has only the first path.
func evaluationRequest(expressions ...string) request {
	var patches []model.SyncPatch
	for i, text := range expressions {
		patches = append(patches, model.SyncPatch{Path: fmt.Sprint("a", i), Expression: text})
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"object": map[string]any{"a0": "text"}, "patches": patches}})
	if err != nil {
		panic(err)
	}
	return request{method: http.MethodPost, path: evaluations, body: string(body)}
}

// repeatedExpression returns a list with an expression a number of times.
func repeatedExpression(n int, expression string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = expression
	}
	return all
}

// tryEvaluation tries expressions that a limit of a world stops, and expressions that it does not stop. Says is the expected text of the error.
func tryEvaluation(set map[string]string, below []string, above, says string) func(*testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, set)
		failure := func(expression string) *model.SyncPatchError {
			got := w.send(evaluationRequest(expression))
			var evaluation model.SyncPatchEvaluation
			if err := json.Unmarshal([]byte(got.body), &evaluation); err != nil || got.status != http.StatusCreated {
				t.Fatalf("%.100s: %d %.500s", expression, got.status, got.body)
			}
			return evaluation.Status.Error
		}
		for _, expression := range below {
			if err := failure(expression); err != nil {
				t.Errorf("%.100s: %+v", expression, err)
			}
		}
		if err := failure(above); err == nil || !strings.Contains(err.Message, says) || err.Path != "a0" {
			t.Errorf("%.100s: %+v", above, err)
		}
	}
}

// longExpression returns an expression of a length.
func longExpression(n int) string { return "1" + strings.Repeat(" ", n-1) }

const endless = "(() => { for (;;) {} })()"

var patchRows = map[string]row{
	"patches": {fmt.Sprintf("%d patches", limits.Patches), func(t *testing.T) {
		sizeCase{
			limit: limits.Patches, status: http.StatusUnprocessableEntity, field: "spec.patches",
			ask: func(n int) request { return evaluationRequest(repeatedExpression(n, "1")...) },
		}.try(t)
	}},
	"expression-bytes": {bytes(limits.ExpressionBytes), func(t *testing.T) {
		sizeCase{
			limit: limits.ExpressionBytes, status: http.StatusUnprocessableEntity, field: "spec.patches[0].expression",
			says: []string{fmt.Sprint(limits.ExpressionBytes)}, ask: func(n int) request { return evaluationRequest(longExpression(n)) },
		}.try(t)
	}},
	"expression-depth": {fmt.Sprintf("%d levels", limits.ExpressionDepth), func(t *testing.T) {
		sizeCase{
			limit: limits.ExpressionDepth, status: http.StatusUnprocessableEntity, field: "spec.patches[0].expression",
			says: []string{fmt.Sprint(limits.ExpressionDepth)},
			ask:  func(n int) request { return evaluationRequest(strings.Repeat("(", n) + "1" + strings.Repeat(")", n)) },
		}.try(t)
	}},
	"expressions-bytes": {bytes(limits.ExpressionsBytes), func(t *testing.T) {
		const full = limits.ExpressionsBytes/limits.ExpressionBytes - 1
		sizeCase{
			limit: limits.ExpressionsBytes, status: http.StatusUnprocessableEntity, field: fmt.Sprintf("spec.patches[%d].expression", full+1),
			ask: func(n int) request {
				left := n - full*limits.ExpressionBytes - 1
				return evaluationRequest(append(repeatedExpression(full, longExpression(limits.ExpressionBytes)), longExpression(left), "1")...)
			},
		}.try(t)
	}},
	"pattern-steps": {fmt.Sprintf("%d steps", limits.PatternSteps), func(t *testing.T) {
		sizeCase{
			limit: limits.PatternSteps, status: http.StatusUnprocessableEntity, field: "spec.patches[0].expression",
			says: []string{fmt.Sprint(limits.PatternSteps)},
			ask:  func(n int) request { return evaluationRequest("/" + strings.Repeat("a", n) + "/.test(value)") },
		}.try(t)
	}},
	"patch-expression-time": {try: tryEvaluation(
		map[string]string{settings.PatchExpressionTime: "300ms", settings.PatchObjectTime: "25s"},
		[]string{"1"}, endless, "the limit of time per expression, 300ms, is exceeded",
	)},
	"patch-object-time": {try: tryEvaluation(
		map[string]string{settings.PatchExpressionTime: "25s", settings.PatchObjectTime: "400ms"},
		[]string{"1"}, endless, "the limit of time per object, 400ms, is exceeded",
	)},
	"patch-memory": {try: tryEvaluation(
		withSettings(settings.PatchMemory, "16Mi"), []string{"Array.from({length: 1e4}, () => 0).length"},
		`(() => { const all = []; for (;;) { all.push(Array.from({length: 1e4}, () => 0)) } })()`, "the limit of memory, 16777216 bytes, is exceeded",
	)},
	"patch-result": {try: tryEvaluation(
		withSettings(settings.PatchResult, "1Ki"), []string{`"x".repeat(1000)`, `"x".repeat(1020)`}, `"x".repeat(1025)`, "the limit of result size, 1024 bytes, is exceeded",
	)},
	"patch-depth": {try: tryEvaluation(
		withSettings(settings.PatchDepth, "10"), []string{strings.Repeat("[", 9) + strings.Repeat("]", 9), strings.Repeat("[", 10) + strings.Repeat("]", 10)},
		strings.Repeat("[", 11)+strings.Repeat("]", 11), "the limit of depth, 10 levels, is exceeded",
	)},
	"patch-trace-bytes": {bytes(limits.PatchTraceBytes), func(t *testing.T) {
		w := newWorld(t, patient)
		// A match contains its path, with the name of the field and a number, and the values before and after the patch.
		const name, number = 1017, 7
		trace := func(matches int) (listed int, omitted int32) {
			got := w.send(request{method: http.MethodPost, path: evaluations, body: fmt.Sprintf(
				`{"spec":{"object":{"%[1]s":[%[2]s]},"patches":[{"path":"%[1]s[*]","expression":"value + 1"}]}}`, strings.Repeat("x", name), repeat(matches, "1"))})
			var evaluation model.SyncPatchEvaluation
			if err := json.Unmarshal([]byte(got.body), &evaluation); err != nil || got.status != http.StatusCreated || len(evaluation.Status.Patches) != 1 {
				t.Fatalf("%d %.500s: %v", got.status, got.body, err)
			}
			return len(evaluation.Status.Patches[0].Matches), evaluation.Status.Patches[0].OmittedMatches
		}
		const fit = limits.PatchTraceBytes / (name + number)
		if listed, omitted := trace(fit - 20); listed != fit-20 || omitted != 0 {
			t.Errorf("below: %d are listed, and %d are not", listed, omitted)
		}
		if listed, omitted := trace(fit + 20); omitted == 0 || listed+int(omitted) != fit+20 {
			t.Errorf("above: %d are listed, and %d are not", listed, omitted)
		}
	}},
	"patch-workers": {try: tryEvaluations},
}

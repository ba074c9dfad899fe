package framework

import (
	"strings"
	"testing"

	"management.platform.sh/shared/process/processtest"
)

// Evaluations run in workers of the program. Their requests and responses are handled like the requests and responses of every
// resource. Source: Spec 2.8; ADR-0014.
func TestEvaluations(t *testing.T) {
	t.Parallel()
	path := strings.Replace(processtest.Root, "ownedaccesskeys", "syncpatchevaluations", 1)
	const good = `{"spec":{"patches":[{"path":"a","expression":"value + 1"}],"object":{"a":1}}}`
	s := serve(t, "evaluatepatches", map[string]string{"PLATFORM_PATCH_EXPRESSION_TIME": "10s", "PLATFORM_PATCH_OBJECT_TIME": "10s"})
	for _, row := range []struct {
		about, query, contentType, accept, body string
		code                                    int
		contains                                string
	}{
		{"JSON", "", "application/json", "", good, 201, `"object":{"a":2}`},
		{"YAML in", "", "application/yaml", "", "spec:\n  patches:\n  - {path: a, expression: value + 1}\n  object: {a: 1}\n", 201, `"object":{"a":2}`},
		{"YAML out", "", "application/json", "application/yaml", good, 201, "outcome: Applied"},
		{"a dry run is the same", "?dryRun=All", "application/json", "", good, 201, `"object":{"a":2}`},
		{"Table", "", "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", good, 201, `"cells":[0,"a","Applied","","1","2"]`},
		{"Strict", "?fieldValidation=Strict", "application/json", "", strings.Replace(good, "{", `{"more":1,`, 1), 400, `"field":"more"`},
		// Which of memory and time is used up first depends on the machine, and on the race detector.
		{"a limit", "", "application/json", "", strings.Replace(good, "value + 1", `Array.from({length: 1e9}, (_, i) => 'x'.repeat(1e6) + i)`, 1), 201, "limit of "},
		{"the next one", "", "application/json", "", good, 201, `"object":{"a":2}`},
		{"invalid", "", "application/json", "", strings.Replace(good, "value + 1", "value +", 1), 422, `"field":"spec.patches[0].expression"`},
	} {
		answer, text := s.do("POST", path+row.query, row.body, map[string]string{"Content-Type": row.contentType, "Accept": row.accept})
		if answer.StatusCode != row.code || !strings.Contains(text, row.contains) {
			t.Errorf("%s: answered %d %s", row.about, answer.StatusCode, text)
		}
	}
	community := serve(t, "evaluatepatches", map[string]string{"PLATFORM_EDITION": "community"})
	if answer, text := community.do("POST", path, good, map[string]string{"Content-Type": "application/json"}); answer.StatusCode != 403 || !strings.Contains(text, "enterprise") {
		t.Errorf("the community has %d %s", answer.StatusCode, text)
	}
}

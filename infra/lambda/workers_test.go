package lambda_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/process/processtest"
)

// The program, whose environment has only its settings, starts itself again as a worker. An attack ends the worker but
// not the program. Source: ADR-0014.
func TestBootstrapStartsWorkers(t *testing.T) {
	t.Parallel()
	w := processtest.New(t)
	p := start(t, "evaluatepatches", time.Minute, "PLATFORM_REDIS_URL="+w.URL, "PLATFORM_PATCH_OBJECT_TIME=20s")
	for _, row := range []struct{ expression, object, failure string }{
		{"value + 1", `{"a":2}`, ""},
		{`Array.from({length: 1e9}, (_, i) => 'x'.repeat(1000) + i)`, `{"a":1}`, "limit"},
		{"(() => { for (;;); })()", `{"a":1}`, "limit"},
		{"value + 1", `{"a":2}`, ""},
	} {
		body, err := json.Marshal(map[string]any{"spec": map[string]any{
			"patches": []any{map[string]any{"path": "a", "expression": row.expression}}, "object": map[string]any{"a": 1},
		}})
		if err != nil {
			t.Fatal(err)
		}
		path := strings.Replace(processtest.Root, "ownedaccesskeys", "syncpatchevaluations", 1)
		event := fmt.Sprintf(`{"version":"2.0","rawPath":%q,"rawQueryString":"","headers":{"authorization":"Bearer %s","host":%q,"content-type":"application/json"},"body":%q,
			"requestContext":{"domainName":%q,"requestId":"x","stage":"$default","http":{"method":"POST","path":%q,"sourceIp":"192.0.2.1"}}}`,
			path, processtest.Admin, apiDomain, body, apiDomain, path)
		var got struct {
			StatusCode int
			Body       string
		}
		whole(t, p.call(event), &got)
		var answer model.SyncPatchEvaluation
		if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || got.StatusCode != 201 {
			t.Fatalf("%s: %d %s", row.expression, got.StatusCode, got.Body)
		}
		failed := answer.Status.Error
		if string(answer.Status.Object.Raw) != row.object || (failed != nil) != (row.failure != "") || failed != nil && !strings.Contains(failed.Message, row.failure) {
			t.Errorf("%s: %s, %+v", row.expression, answer.Status.Object.Raw, failed)
		}
	}
}

package syncpatch_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// All labels and references survive the round trip. Spec 2.8 rule 2.
func FuzzRoundTrip(f *testing.F) {
	f.Add("release", "app", "my-secret", "default", "apps")
	f.Add("platform.sh/managed-by", "platform.sh/namespace", "", "", "")
	f.Add("matchLabels", "", "a-x-b", "c", "")
	f.Add("vcluster.loft.sh/managed-by", "release", "a.b", "c", "d")
	f.Fuzz(func(t *testing.T, key, other, name, namespace, own string) {
		for _, text := range []string{key, other, name, namespace, own} {
			if !utf8.ValidString(text) || strings.HasPrefix(text, "platform.sh/label-my-vcluster-x-") ||
				strings.HasPrefix(text, "vcluster.loft.sh/label-my-vcluster-x-") || strings.HasPrefix(text, "vcluster.loft.sh/ns-label") {
				t.Skip()
			}
		}
		if key == "matchLabels" || key == "matchExpressions" || other == "matchLabels" || other == "matchExpressions" {
			key, other = "app", "release"
		}
		labels := map[string]any{key: "a", other: "b"}
		selector := map[string]any{"matchLabels": map[string]any{key: "a", other: nil}, "matchExpressions": []any{map[string]any{"key": key, "operator": "Exists"}}}
		request := syncpatch.Request{
			Context: tenant(),
			Object: map[string]any{
				"metadata": map[string]any{"namespace": own, "labels": labels}, "selector": selector,
				"ref": map[string]any{"name": name, "namespace": namespace}, "names": []any{name},
			},
			Patches: []model.SyncPatch{
				{Path: "metadata.labels", Labels: &model.SyncPatchLabels{}},
				{Path: "selector", Labels: &model.SyncPatchLabels{}},
				{Path: "ref", Reference: &model.SyncPatchReference{APIVersion: "v1", Kind: "Secret", NamePath: "name", NamespacePath: "namespace"}},
				{Path: "names[*]", Reference: &model.SyncPatchReference{APIVersion: "v1", Kind: "ConfigMap"}},
			},
			Checks: []string{model.CheckRoundTrip, model.CheckFixpoint},
		}
		for _, naming := range []string{model.NamingNeutral, model.NamingVCluster} {
			request.Naming = naming
			result := evaluate(t, request)
			if result.Error != nil {
				t.Fatalf("%+v", result.Error)
			}
			for _, check := range result.Checks {
				if !check.Passed {
					t.Errorf("%s of %s with the naming %s: %s", check.Type, encode(t, request.Object), naming, encode(t, check))
				}
			}
		}
	})
}

// Every request is refused, or evaluated without being changed. An error leaves the object as it was, and every patch has
// an outcome.
func FuzzEvaluate(f *testing.F) {
	f.Add(`{"object":{"a":[1,"x",null]},"patches":[{"path":"a[*]","expression":"value + 1"},{"path":"a[*]","labels":{}}],"checks":["RoundTrip","Fixpoint"]}`)
	f.Add(`{"direction":"HostToTenant","object":{"ref":"v5ri45ovgqam9c"},"patches":[{"path":"ref","reference":{"apiVersion":"v1","kind":"Secret"}}],"context":{"tenant":{"name":"my-vcluster"},"references":[{"name":"my-secret"}]}}`)
	f.Add(`{"object":{"m":{"":{"*":1}}},"patches":[{"path":"m[*]['*']","expression":"null"},{"path":"","labels":{}}],"context":{"tenant":{"name":"t"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var spec model.SyncPatchEvaluationSpec
		if json.Unmarshal([]byte(text), &spec) != nil {
			t.Skip()
		}
		request, problems := syncpatch.CheckSpec(t.Context(), &spec)
		if (request == nil) != (len(syncpatch.Errors(problems)) > 0) {
			t.Fatalf("a request with the problems %v is %v", problems, request)
		}
		if request == nil {
			return
		}
		before := encode(t, request.Request())
		result, err := syncpatch.Evaluate(context.Background(), request, syncpatch.DefaultLimits())
		if err != nil {
			t.Fatalf("a request without problems: %v", err)
		}
		if after := encode(t, request.Request()); after != before {
			t.Fatalf("the request is %s, and was %s", after, before)
		}
		if result.Error != nil && !reflect.DeepEqual(result.Object, request.Request().Object) {
			t.Fatalf("the object that failed is %s", encode(t, result.Object))
		}
		if len(result.Patches) != len(request.Request().Patches) || len(result.Checks) != len(request.Request().Checks) {
			t.Fatalf("%d patches and %d checks have answers", len(result.Patches), len(result.Checks))
		}
		for _, p := range result.Patches {
			if len(p.Matches)+int(p.OmittedMatches) == 0 {
				t.Errorf("patch %d has no match", p.Index)
			}
			if p.Reason == "" && p.Outcome != model.PatchApplied && p.Outcome != model.PatchDeleted {
				t.Errorf("patch %d is %s without a reason", p.Index, p.Outcome)
			}
		}
		if _, err := result.Status(); err != nil {
			t.Fatal(err)
		}
	})
}

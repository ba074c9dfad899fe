package evaluatepatches

import (
	"slices"
	"testing"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/syncpatch/evaluation"
)

const (
	yaml = "application/yaml"
	head = "apiVersion: management.platform.sh/v1\nkind: SyncPatchEvaluation\n"
	spec = `spec: {namespaceMode: Multi, patches: [{path: a, labels: {}}], object: {a: {b: c}}}`
)

// ask evaluates the object in a body, as the frame hands it over.
func ask(t *testing.T, deps Deps, contentType, body string, strictness codec.Strictness) (*model.SyncPatchEvaluation, []string, error) {
	t.Helper()
	object := &model.SyncPatchEvaluation{}
	sent, warnings, err := codec.DecodeObject(contentType, []byte(body), object, model.SchemeGroupVersion.WithKind(evaluation.Kind), strictness)
	if err != nil {
		return nil, nil, err
	}
	out, err := Do(t.Context(), deps, Input{Object: object, JSON: sent.JSON})
	return out.Object, append(warnings, out.Warnings...), err
}

// The response has the results of the evaluator, which needs no state. Source: Spec 2.8.
func TestDo(t *testing.T) {
	t.Parallel()
	deps := open(&platform.Environment{Edition: settings.Enterprise})
	for _, row := range []struct {
		about, contentType, body string
		warnings                 int
	}{
		{"YAML", yaml, head + spec, 0},
		{"JSON, without kind", "", `{"spec":{"patches":[{"path":"a","labels":{}}],"namespaceMode":"Multi","object":{"a":{"b":"c"}}}}`, 0},
		{"an unknown field", yaml, spec + "\nsepc: {}", 1},
		{"a warning of the evaluation", yaml, `spec: {patches: [{path: b, expression: 'null'}], object: {a: {b: c}}}`, 1},
	} {
		got, warnings, err := ask(t, deps, row.contentType, row.body, codec.Warn)
		if err != nil {
			t.Errorf("%s: %v", row.about, err)
			continue
		}
		if string(got.Status.Object.Raw) != `{"a":{"b":"c"}}` || len(got.Status.Patches) != 1 || len(warnings) != row.warnings ||
			got.Kind != "SyncPatchEvaluation" || got.APIVersion != "management.platform.sh/v1" {
			t.Errorf("%s: answered %+v with the warnings %q", row.about, got, warnings)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	deps := open(&platform.Environment{Edition: settings.Enterprise})
	for _, row := range []struct {
		about, contentType, body string
		strictness               codec.Strictness
		code                     int32
		fields                   []string
	}{
		{"an unknown field under Strict", yaml, `spec: {patches: [{path: a, expression: value}], object: {}, patch: []}`, codec.Strict, 400, []string{"spec.patch"}},
		{"a patch without a path", yaml, `spec: {patches: [{expression: value}], object: {}}`, codec.Warn, 422, []string{"spec.patches[0].path"}},
		{"no body", yaml, ``, codec.Warn, 400, nil},
		{"another kind", yaml, `{apiVersion: v1, kind: Pod}`, codec.Warn, 400, []string{"apiVersion", "kind"}},
		{"another version", yaml, `{apiVersion: management.platform.sh/v9, kind: SyncPatchEvaluation}`, codec.Warn, 400, []string{"apiVersion"}},
		{"another media type", "text/plain", `{}`, codec.Warn, 415, nil},
	} {
		answer, _, err := ask(t, deps, row.contentType, row.body, row.strictness)
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

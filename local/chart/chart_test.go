package chart

import (
	"strings"
	"testing"
	"testing/fstest"

	"management.platform.sh/infra/helm"
)

// small is a chart with one template.
func small(template string) fstest.MapFS {
	return fstest.MapFS{
		"Chart.yaml":          {Data: []byte("name: small\nversion: 1.2.3\nappVersion: v4\n")},
		"values.yaml":         {Data: []byte("count: 1\nobject: {a: 1, b: 2}\nlist: [x]\n")},
		"values.schema.json":  {Data: []byte(`{"type":"object","additionalProperties":false,"properties":{"count":{"type":"integer"},"object":{"type":"object"},"list":{"type":"array"}}}`)},
		"templates/one.yaml":  {Data: []byte(template)},
		"templates/NOTES.txt": {Data: []byte("{{ fail \"notes are not rendered\" }}")},
		"templates/_help.tpl": {Data: []byte(`{{- define "named" -}}{{ .Chart.Name }}-{{ .Release.Name }}{{- end }}`)},
	}
}

// Values change those of the chart: objects are merged, lists are replaced, and null removes a value.
func TestRender(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about, template, want string
		values                []map[string]any
	}{
		{"values of the chart", `{{ .Values.count }} {{ .Values.object.a }}`, "1 1", nil},
		{"changes", `{{ .Values.count }} {{ .Values.object.a }} {{ .Values.object.b }}`, "2 1 3", []map[string]any{{"count": 2.0}, {"object": map[string]any{"b": 3.0}}}},
		{"a list", `{{ join "," .Values.list }}`, "y,z", []map[string]any{{"list": []any{"y", "z"}}}},
		{"null", `{{ toYaml .Values.object }}`, "b: 2", []map[string]any{{"object": map[string]any{"a": nil}}}},
		{"the release", `{{ include "named" . }} {{ .Chart.AppVersion }} {{ .Release.Namespace }}`, "small-mine v9 here", nil},
		{"documents", "---\na: 1\n---\n\n---\nb: 2\n", "a: 1\n---\nb: 2", nil},
	} {
		release := Release{Name: "mine", Namespace: "here"}
		if strings.Contains(row.template, "AppVersion") {
			release.AppVersion = "v9"
		}
		got, err := Render(small(row.template), release, row.values...)
		if err != nil || string(got) != "---\n"+row.want+"\n" {
			t.Errorf("%s: %q, %v", row.about, got, err)
		}
	}
}

// An error names the value, and says nothing of templates.
func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		template, want string
		values         map[string]any
	}{
		{"", "values: cuont is a forbidden property", map[string]any{"cuont": 1.0}},
		{"", `values: count must be of type integer: "string"`, map[string]any{"count": "1"}},
		{`{{ required "count: say how many" .Values.other }}`, "count: say how many", nil},
		{`{{ fail "count: too many" }}`, "count: too many", nil},
		{`{{ template "absent" . }}`, "rendering the chart: ", nil},
	} {
		got, err := Render(small(row.template), Release{}, row.values)
		if err == nil || got != nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s: %q, %v", row.template, got, err)
		}
	}
	if _, err := Render(helm.Chart(), Release{Name: "platform", Namespace: "here"}); err == nil || !strings.Contains(err.Error(), "image.repository") {
		t.Errorf("the chart without values: %v", err)
	}
}

// Package chart renders the Helm chart of the platform without Helm. Its engine has the functions that the templates of this chart use,
// and a test compares its output with Helm's. Source: ADR-0053.
package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// Release is what a rendering is for.
type Release struct {
	Name, Namespace string
	// Service is the tool that renders.
	Service string
	// AppVersion is the version of the program. Empty: the version in Chart.yaml.
	AppVersion string
}

// metadata is the part of Chart.yaml that templates read.
type metadata struct{ Name, Version, AppVersion string }

// Render returns the objects of a chart for a release, as YAML documents. Values change the chart's own; null removes one. Errors name
// the value.
func Render(chart fs.FS, release Release, values ...map[string]any) ([]byte, error) {
	about, err := read[metadata](chart, "Chart.yaml")
	if err != nil {
		return nil, err
	}
	if release.AppVersion != "" {
		about.AppVersion, about.Version = release.AppVersion, release.AppVersion
	}
	all, err := read[map[string]any](chart, "values.yaml")
	if err != nil {
		return nil, err
	}
	for _, changes := range values {
		all = merge(all, changes)
	}
	if err := check(chart, all); err != nil {
		return nil, err
	}
	templates := template.New("").Option("missingkey=zero")
	templates.Funcs(functions(templates))
	names, err := fs.Glob(chart, "templates/*")
	if err != nil {
		return nil, fmt.Errorf("listing the templates: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(chart, name)
		if err != nil {
			return nil, fmt.Errorf("reading a template: %w", err)
		}
		if _, err := templates.New(name).Parse(string(text)); err != nil {
			return nil, fmt.Errorf("reading a template: %w", err)
		}
	}
	data := map[string]any{"Values": all, "Release": release, "Chart": about, "Files": chartFiles{chart}}
	var out bytes.Buffer
	for _, name := range names {
		if path.Ext(name) != ".yaml" {
			continue
		}
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name, data); err != nil {
			return nil, renderError(err)
		}
		for _, document := range documents(text.String()) {
			fmt.Fprintf(&out, "---\n%s\n", document)
		}
	}
	return out.Bytes(), nil
}

// renderError returns the message of fail and required without the path through the templates.
func renderError(err error) error {
	if refusal := (*refusedError)(nil); errors.As(err, &refusal) {
		return refusal
	}
	return fmt.Errorf("rendering the chart: %w", err)
}

// read reads a file of the chart in YAML.
func read[T any](chart fs.FS, name string) (T, error) {
	var content T
	text, err := fs.ReadFile(chart, name)
	if err == nil {
		err = yaml.Unmarshal(text, &content)
	}
	if err != nil {
		return content, fmt.Errorf("reading the chart's %s: %w", name, err)
	}
	return content, nil
}

// documents splits YAML into its documents, without the empty ones.
func documents(text string) []string {
	var found []string
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		if document = strings.Trim(document, "\n"); strings.TrimSpace(document) != "" {
			found = append(found, document)
		}
	}
	return found
}

// merge returns values with changes. Objects are merged, and all else is replaced.
func merge(values, changes map[string]any) map[string]any {
	merged := maps.Clone(values)
	for name, change := range changes {
		before, isObject := merged[name].(map[string]any)
		after, staysObject := change.(map[string]any)
		switch {
		case change == nil:
			delete(merged, name)
		case isObject && staysObject:
			merged[name] = merge(before, after)
		default:
			merged[name] = change
		}
	}
	return merged
}

// check compares values with the schema of the chart.
func check(chart fs.FS, values map[string]any) error {
	text, err := fs.ReadFile(chart, "values.schema.json")
	if err != nil {
		return fmt.Errorf("reading the schema of the values: %w", err)
	}
	var schema spec.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return fmt.Errorf("reading the schema of the values: %w", err)
	}
	result := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default).Validate(values)
	var wrong []string
	for _, err := range result.Errors {
		wrong = append(wrong, "values: "+strings.TrimPrefix(strings.Replace(err.Error(), " in body ", " ", 1), "."))
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		return errors.New(strings.Join(slices.Compact(wrong), "\n"))
	}
	return nil
}

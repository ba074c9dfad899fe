// Command generate writes what the Helm chart has from elsewhere: the settings in values.schema.json and the names of the numbers among them
// from package settings, and the dashboard and the alerts in files. Run it from the top of the repository: `go run ./infra/helm/generate`. Source: ADR-0053.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"management.platform.sh/shared/settings"
)

const (
	chart      = "infra/helm/platform"
	dashboards = "infra/dashboards"
)

// chartSettings are the settings that the chart sets from values of their own.
var chartSettings = []string{
	settings.RedisURL, settings.EncryptionKey, settings.Issuer, settings.Config, settings.AdminKey,
	settings.TLSCertFile, settings.TLSKeyFile, settings.TLSNames, settings.ShutdownDelay,
}

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	for _, name := range []string{"alerts.yaml", "grafana.json"} {
		text, err := os.ReadFile(filepath.Join(root, dashboards, name))
		if err != nil {
			return fmt.Errorf("reading a dashboard: %w", err)
		}
		if err := os.WriteFile(filepath.Join(root, chart, "files", name), text, 0o644); err != nil {
			return fmt.Errorf("writing a dashboard: %w", err)
		}
	}
	file := filepath.Join(root, chart, "values.schema.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	if text, err = withSettings(text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the schema: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, chart, "templates", "_settings.tpl"), numbers(), 0o644); err != nil {
		return fmt.Errorf("writing the names of settings: %w", err)
	}
	return nil
}

// requireSections makes a schema require the sections, which have values below them. Values of the chart have all sections, and null removes
// one: a template would fail at its first value, without naming it.
func requireSections(schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	var sections []string
	for name, property := range properties {
		section, _ := property.(map[string]any)
		if _, isSection := section["properties"]; isSection {
			sections = append(sections, name)
			requireSections(section)
		}
	}
	if slices.Sort(sections); len(sections) > 0 {
		schema["required"] = sections
	}
}

// numbers returns the template platform.numbers: the names of the settings that are whole numbers, with spaces between them. A number may
// be written as a text, and a schema cannot say in words what is wrong with such a text.
func numbers() []byte {
	var names []string
	for _, setting := range settings.List {
		if inChart(setting) && isNumber(setting) {
			names = append(names, setting.Name)
		}
	}
	slices.Sort(names)
	return fmt.Appendf(nil, "{{/* Written by infra/helm/generate: the settings that are whole numbers. */}}\n{{- define \"platform.numbers\" -}}\n%s\n{{- end }}\n",
		strings.Join(names, " "))
}

// isNumber reports whether the value of a setting is a whole number.
func isNumber(setting settings.Setting) bool {
	return len(setting.Words) == 0 && setting.Unit == "number"
}

// withSettings returns a schema of values whose property settings has the settings that a chart may set.
func withSettings(schema []byte) ([]byte, error) {
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var whole map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(schema, &whole); err != nil {
		return nil, err
	}
	properties, ok := whole["properties"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it has no properties, only %v", slices.Sorted(maps.Keys(whole)))
	}
	known := map[string]any{}
	for _, setting := range settings.List {
		if inChart(setting) {
			known[setting.Name] = property(setting)
		}
	}
	properties["settings"] = map[string]any{"type": "object", "additionalProperties": false, "properties": known}
	requireSections(whole)
	text, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// inChart reports whether the property settings of the chart has a setting: the server reads it, it is no secret, and no other value of
// the chart gives it.
func inChart(setting settings.Setting) bool {
	return setting.Name != "" && setting.Readers&settings.Serve != 0 && !setting.Secret &&
		!slices.Contains(chartSettings, setting.Name) && !slices.Contains(chartSettings, setting.Instead)
}

// property returns the JSON schema of a setting. A number or a boolean may be written without quotes.
func property(setting settings.Setting) map[string]any {
	meaning := []string{setting.Meaning}
	if setting.Default != "" {
		meaning = append(meaning, "Default: "+setting.Default+".")
	}
	if allowed := setting.Allowed(); allowed != "" {
		meaning = append(meaning, "Allowed: "+allowed+".")
	}
	schema := map[string]any{"type": "string", "description": strings.Join(meaning, " ")}
	switch {
	case slices.Equal(setting.Words, []string{"true", "false"}):
		schema["type"], schema["enum"] = []string{"string", "boolean"}, []any{"true", "false", true, false}
	case len(setting.Words) > 0:
		schema["enum"] = setting.Words
	case isNumber(setting):
		schema["type"] = []string{"string", "integer"}
		if least, err := strconv.Atoi(setting.Min); err == nil {
			schema["minimum"] = least
		}
		if most, err := strconv.Atoi(setting.Max); err == nil {
			schema["maximum"] = most
		}
	}
	return schema
}

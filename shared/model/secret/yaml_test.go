package secret_test

import (
	"errors"
	"strings"
	"testing"

	yamlv2 "go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model/secret"
)

// The error about a YAML text repeats no value of the text. Source: ADR-0003.
func TestYAMLError(t *testing.T) {
	t.Parallel()
	const value = "hunter2Hunter2"
	for _, text := range []string{
		"token: *" + value, "a: &" + value + " [*" + value + "]", "token: !!int " + value, "token: !!float " + value,
		"token: !!binary '" + value + "!'", "{? {a: " + value + "} : b}", "{? [" + value + "] : b}", "token: \"" + value, "token: '" + value,
		"token: `" + value, "token: @" + value, "a: [" + value, "token: " + value + "\n b: c", "%" + value, "token: !<" + value + " x", "a: |" + value,
		"!!map " + value, "token: !!timestamp " + value, "\t" + value,
	} {
		var tree struct {
			Token int `yaml:"token"`
			A     int `yaml:"a"`
		}
		_, conversion := yaml.YAMLToJSON([]byte(text))
		for _, err := range []error{conversion, yamlv2.Unmarshal([]byte(text), &tree), yamlv3.Unmarshal([]byte(text), &tree)} {
			if err == nil {
				continue
			}
			if got := secret.YAMLError(err); strings.Contains(got, value[:6]) || got == "" {
				t.Errorf("%q: %q becomes %q", text, err, got)
			}
		}
	}
	for text, want := range map[string]string{
		"error converting YAML to JSON: yaml: line 3: could not find expected ':'": "error converting YAML to JSON: yaml: line 3: could not find expected ':'",
		"yaml: line 2: did not find expected ',' or '}'":                           "line 2: did not find expected ',' or '}'",
		"yaml: unknown anchor 'hunter2' referenced":                                "unknown anchor",
		"yaml: unmarshal errors:\n  line 2: key \"a\" already set in map":          "unmarshal errors:; line 2: key \"a\" already set in map",
	} {
		if got := secret.YAMLError(errors.New(text)); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

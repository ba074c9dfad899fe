package chart

import (
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"

	"management.platform.sh/infra/helm"
)

// Manifests prints what the chart makes.
type Manifests struct {
	Values    []string `short:"f" placeholder:"FILE" help:"A file with values in YAML, - for standard input. A later file takes precedence. The values are those of the Helm chart."`
	Name      string   `default:"platform" help:"Name of the release, from which the objects have their names."`
	Namespace string   `short:"n" default:"default" help:"Namespace of the objects."`

	Version string `kong:"-"`
}

// Run prints the objects as YAML documents, for kubectl apply.
func (c *Manifests) Run() error {
	var values []map[string]any
	for _, file := range c.Values {
		text, err := readFile(file)
		if err != nil {
			return fmt.Errorf("--values: %w", err)
		}
		var changes map[string]any
		if err := yaml.UnmarshalStrict(text, &changes); err != nil {
			return fmt.Errorf("--values: %s: %w", file, err)
		}
		values = append(values, changes)
	}
	objects, err := Render(helm.Chart(), Release{Name: c.Name, Namespace: c.Namespace, Service: "platform", AppVersion: c.Version}, values...)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(objects); err != nil {
		return fmt.Errorf("printing the objects: %w", err)
	}
	return nil
}

func readFile(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

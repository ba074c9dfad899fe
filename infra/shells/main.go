// Command shells makes from the catalog what platforms deploy. `generate` writes the files that are kept in the
// repository: a program per function for AWS Lambda, and the manifests for Knative. `build` makes the bootstraps and
// their zip files; the same source makes the same files. `stage` writes the source that Cloud Functions builds. Run it
// from the top of the repository. A function listed in the catalog is part of every form. Source: ADR-0010.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/template"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "shells:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("a command is missing: use generate, build or stage, followed by the names of functions or by nothing for all of them")
	}
	chosen, err := choose(args[1:])
	if err != nil {
		return err
	}
	switch args[0] {
	case "generate":
		return generate(".", catalog.Functions)
	case "build":
		return buildLambda(filepath.Join("build", "lambda"), chosen)
	case "stage":
		return stage(".", filepath.Join("build", "gcf"), chosen)
	default:
		return fmt.Errorf("unknown command %q: use generate, build or stage", args[0])
	}
}

// choose returns the functions of those names, or all.
func choose(names []string) ([]*frame.Function, error) {
	if len(names) == 0 {
		return catalog.Functions, nil
	}
	var chosen []*frame.Function
	for _, name := range names {
		i := slices.IndexFunc(catalog.Functions, func(f *frame.Function) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the catalog has no function %q", name)
		}
		chosen = append(chosen, catalog.Functions[i])
	}
	return chosen, nil
}

// The folders that contain only generated files.
const (
	lambdaFolder  = "infra/lambda/functions"
	knativeFolder = "infra/knative"
)

// files returns the generated files by path.
func files(functions []*frame.Function) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, f := range functions {
		if (f.Schedule != nil) == (len(f.Endpoints) > 0) {
			return nil, fmt.Errorf("%s must have either routes or a schedule", f.Name)
		}
		for path, text := range map[string]*template.Template{
			lambdaFolder + "/" + f.Name + "/main.go": lambdaMain,
			knativeFolder + "/" + f.Name + ".yaml":   knativeService,
		} {
			filled, err := fill(text, f)
			if err != nil {
				return nil, err
			}
			found[path] = filled
		}
	}
	return found, nil
}

func fill(text *template.Template, f *frame.Function) ([]byte, error) {
	var out bytes.Buffer
	if err := text.Execute(&out, f); err != nil {
		return nil, fmt.Errorf("writing for %s: %w", f.Name, err)
	}
	return out.Bytes(), nil
}

// generate writes the generated files, and removes those of functions that are gone.
func generate(root string, functions []*frame.Function) error {
	wanted, err := files(functions)
	if err != nil {
		return err
	}
	for _, folder := range []string{lambdaFolder, knativeFolder} {
		if err := os.RemoveAll(filepath.Join(root, folder)); err != nil {
			return fmt.Errorf("removing earlier generated files: %w", err)
		}
	}
	for path, text := range wanted {
		if err := writeFile(filepath.Join(root, path), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, text []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, text, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

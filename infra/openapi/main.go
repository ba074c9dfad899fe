// Command openapi writes the documents with which the API describes itself. Discovery lists the resources. OpenAPI
// describes their fields: kubectl requests version 3 for explain, create and apply; older clients and client-side apply
// request version 2, as JSON or protobuf. The command reads the catalog and the docstrings of the model. The function
// that serves the documents embeds them, so that no schema is built while a request waits. The command also writes the
// schemas for the computation of field ownership, the routes that the fallback must know, and the reference for readers. Run it from the top of
// the repository: `go run ./infra/openapi`.
// Source: Spec 2, 4; ADR-0003.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"management.platform.sh/functions/catalog"
)

// The folders of the packages that embed the documents: the function that serves them, and the package that computes
// field ownership.
const (
	target       = "functions/discoverapi"
	schemaTarget = "shared/api/fieldmanager/schemas"
)

func main() {
	err := write(target, schemaTarget)
	if err == nil {
		err = writeReference(".")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func write(dir, schemaDir string) error {
	files, err := documents(resources)
	if err != nil {
		return err
	}
	content := make(map[string][]byte, len(files)+3)
	for name, text := range files {
		content[filepath.Join(dir, "openapi", name)] = text
	}
	if content[filepath.Join(dir, "discovery.json")], err = discovery(catalog.Functions); err != nil {
		return err
	}
	if content[filepath.Join(dir, "routes.json")], err = routes(catalog.Functions); err != nil {
		return err
	}
	ofKinds, err := schemas(files[v3Name], resources)
	if err != nil {
		return err
	}
	for name, text := range ofKinds {
		content[filepath.Join(schemaDir, name)] = text
	}
	for path, text := range content {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", path, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

// Command openapi writes the description that the API gives of itself: OpenAPI v3, which kubectl asks
// for explain, create and apply, and OpenAPI v2 as JSON and as protobuf, which older clients and
// client-side apply ask for. The functions embed what it writes, so that no schema is built while a
// request waits. It describes the resources of resources.go and nothing that is not served. Run it from
// the top of the repository: `go run ./infra/openapi`. Source: Spec 2, 4; ADR-0003.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// target is the folder that is embedded by the function which serves the documents.
const target = "functions/discoverapi/openapi"

func main() {
	if err := write(target); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	documents, err := documents(resources)
	if err != nil {
		return err
	}
	for name, content := range documents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", path, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

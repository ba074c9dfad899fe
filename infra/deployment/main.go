// Command deployment writes the parts of the manifests that depend on the functions: the table that Terraform reads,
// the sections of serverless.yml with one entry per function, the routes of an NGINX gateway, and the Redis users with
// the rights that functions need. It reads the catalog, so that every function in it is part of every deployment. The
// parts that are the same for all functions are written by hand, in serverless.yml and infra/terraform. Run it from the
// top of the repository: `go run ./infra/deployment`. Source: ADR-0001.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"management.platform.sh/functions/catalog"
)

// The files that are written.
const (
	tableFile     = "infra/terraform/functions.json"
	functionsFile = "infra/serverless/functions.json"
	rolesFile     = "infra/serverless/roles.json"
	usersFile     = "infra/redis/users.acl"
	groupsFile    = "infra/redis/users.json"
	routesFile    = "infra/nginx/routes.conf"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "deployment:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	entries, err := table(catalog.Functions)
	if err != nil {
		return err
	}
	list := users(catalog.Functions)
	if err := os.WriteFile(filepath.Join(root, usersFile), accessControl(list), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", usersFile, err)
	}
	if err := os.WriteFile(filepath.Join(root, routesFile), gatewayRoutes(entries), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", routesFile, err)
	}
	userOf := map[string]string{}
	for _, one := range list {
		for _, function := range one.functions {
			userOf[function] = one.name
		}
	}
	for file, content := range map[string]any{
		groupsFile:    userOf,
		tableFile:     entries,
		functionsFile: serverlessFunctions(entries),
		rolesFile:     serverlessRoles(entries),
	} {
		text, err := encode(content)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(root, file), text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
	}
	return nil
}

// encode returns JSON in which each entry of an object has a line of its own, and everything below it is on that line: a change to one
// function changes one line. An object with one entry is not an entry of its own.
func encode(content any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return nil, err
	}
	lines, err := entryLines(bytes.TrimSpace(text.Bytes()))
	return append(lines, '\n'), err
}

// entryLines writes each entry of an object of compact JSON on a line of its own.
func entryLines(object []byte) ([]byte, error) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(object, &entries); err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	lines.WriteString("{")
	separator := "\n"
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		value := []byte(entries[name])
		if len(entries) == 1 {
			var err error
			if value, err = entryLines(value); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(&lines, "%s%q: %s", separator, name, value)
		separator = ",\n"
	}
	lines.WriteString("\n}")
	return lines.Bytes(), nil
}

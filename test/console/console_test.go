// Package console_test runs the unit tests of the console, which need no browser: those in functions/serveconsole/web/tests, with the
// test runner of node. They are in TypeScript, so that each is bundled first. The pages in a browser are those of package browser_test.
// Source: ADR-0030.
package console_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sources is the folder of the console.
const sources = "../../functions/serveconsole/web"

// need skips a test for which something is missing on a laptop. CI has everything.
func need(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("%s: %v", what, err)
}

// The rules of the console hold: how lists follow the API, how YAML is read, masked and shared, and where mistakes are shown.
func TestRules(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("node")
	need(t, "node is not installed", err)
	_, err = os.Stat(filepath.Join(sources, "node_modules", "yaml"))
	need(t, "the packages of the console are not installed: run go run ./infra/console", err)
	files, err := filepath.Glob(filepath.Join(sources, "tests", "*.test.ts"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Errorf("there are %d test files", len(files))
	}
	readSources(t)
	// One call for all files: without a cache, each call would compile the bundler.
	bundles := t.TempDir()
	run(t, "go", slices.Concat([]string{"tool", "-modfile=../tools/go.mod", "esbuild"}, files, []string{
		"--bundle", "--external:node:*", "--format=esm", "--sourcemap=inline", "--log-level=warning", "--out-extension:.js=.mjs", "--outdir=" + bundles,
	})...)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output := run(t, "node", "--enable-source-maps", "--test", "--test-reporter=tap", filepath.Join(bundles, name+".test.mjs"))
			// A file without tests passes as well.
			if !strings.Contains(output, "\n# pass ") || strings.Contains(output, "\n# tests 0\n") {
				t.Errorf("no test has run:\n%s", output)
			}
		})
	}
}

// readSources reads what node and the bundler read: go test keeps a result until a file changes that the test itself has opened.
func readSources(t *testing.T) {
	t.Helper()
	paths := []string{"../tools/go.mod", filepath.Join(sources, "package-lock.json")}
	err := filepath.WalkDir(sources, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if strings.HasPrefix(filepath.Ext(path), ".ts") {
			paths = append(paths, path)
		}
		return err
	})
	for _, path := range paths {
		if err == nil {
			_, err = os.ReadFile(path)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, output)
	}
	return string(output)
}

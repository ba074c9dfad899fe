package drift_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each attack of docs/security.md names a test that exists: a story, or a function in a package. Source: ADR-0021.
func TestAttacks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n| Attack | What refuses it | Test |\n|---|---|---|\n")
	if !found {
		t.Fatal("there is no table of attacks")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	cell := regexp.MustCompile("^`([^`]+)`(?: (Test\\w+))?$")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 3 {
			t.Errorf("a row has %d cells: %s", len(cells), row)
			continue
		}
		named := cell.FindStringSubmatch(strings.TrimSpace(cells[2]))
		if named == nil {
			t.Errorf("no test: %s", row)
			continue
		}
		path := filepath.Join("../..", named[1])
		if named[2] == "" {
			if _, err := os.Stat(path); err != nil || filepath.Ext(path) != ".txtar" {
				t.Errorf("no story %s: %v", named[1], err)
			}
			continue
		}
		files, err := filepath.Glob(filepath.Join(path, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		exists := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			exists = exists || strings.Contains(string(source), "\nfunc "+named[2]+"(t *testing.T) {")
		}
		if !exists {
			t.Errorf("%s has no %s", named[1], named[2])
		}
	}
}

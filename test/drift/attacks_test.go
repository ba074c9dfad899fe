package drift_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each attack of docs/attacks.md names tests that exist: stories, or functions in packages. Source: ADR-0021.
func TestAttacks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := strings.Split(string(text), "\n| Attack | What refuses it | Test |\n|---|---|---|\n")[1:]
	if len(tables) != 2 {
		t.Fatalf("there are %d tables of attacks", len(tables))
	}
	for _, rest := range tables {
		table, _, _ := strings.Cut(rest, "\n\n")
		for row := range strings.Lines(table) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
			if len(cells) != 3 {
				t.Errorf("a row has %d cells: %s", len(cells), row)
				continue
			}
			for _, one := range namedTests(cells[2]) {
				if wrong := noTest(t, one); wrong != "" {
					t.Errorf("%s: %s", wrong, row)
				}
			}
		}
	}
}

// Each row of the list of exact rules in docs/people.md names tests that exist.
func TestExactAnswers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/people.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n| part of an answer | refused | accepted or left out | tests |\n|---|---|---|---|\n")
	if !found {
		t.Fatal("there is no table")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		for _, one := range namedTests(cells[len(cells)-1]) {
			if wrong := noTest(t, one); wrong != "" {
				t.Errorf("%s: %s", wrong, row)
			}
		}
	}
}

// namedTest matches a test in the tables: a package with a function, or a story.
var namedTest = regexp.MustCompile("^`([^`]+)`(?: (Test\\w+))?$")

// namedTests returns the tests of a cell, each with its folder: a test without one is in the folder of the test before it.
func namedTests(cell string) []string {
	var named []string
	folder := ""
	for one := range strings.SplitSeq(strings.TrimSpace(cell), ", ") {
		if strings.HasPrefix(one, "Test") {
			one = folder + " " + one
		} else {
			folder, _, _ = strings.Cut(one, " ")
		}
		named = append(named, one)
	}
	return named
}

// noTest returns the reason why a cell does not name a test. Empty: it names a test.
func noTest(t *testing.T, cell string) string {
	t.Helper()
	match := namedTest.FindStringSubmatch(cell)
	if match == nil {
		return "no test"
	}
	path := filepath.Join("../..", match[1])
	if match[2] == "" {
		if _, err := os.Stat(path); err != nil || filepath.Ext(path) != ".txtar" {
			return "no story " + match[1]
		}
		return ""
	}
	files, err := filepath.Glob(filepath.Join(path, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+match[2]+"(t *testing.T) {") {
			return ""
		}
	}
	return match[1] + " has no " + match[2]
}

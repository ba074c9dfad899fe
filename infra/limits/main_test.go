package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"management.platform.sh/shared/limits"
)

// The document in the repository is equal to what the command writes.
func TestWritten(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(filepath.Join("..", "..", document))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(want), mark)
	folder := t.TempDir()
	if err := write(folder); err == nil {
		t.Error("a document that is missing is no error")
	}
	if err := os.Mkdir(filepath.Join(folder, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, document)
	if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(folder); err == nil {
		t.Error("a document without the mark is no error")
	}
	if err := os.WriteFile(file, []byte(head+mark+"an older table\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("%s is not what the table says: make gen (%v)", document, err)
	}
}

// A row cannot break the table.
func TestTable(t *testing.T) {
	t.Parallel()
	text := table([]limits.Limit{
		{Name: "a", What: "a|b\nc", Bound: "<1", Where: "shared/a", Answer: "400"}, {Name: "b", Setting: "PLATFORM_B"},
	})
	want := "| `a` | a\\|b c | &lt;1 | 400 |  |\n| `b` |  |  |  | `PLATFORM_B` |\n"
	if !strings.HasSuffix(text, want) {
		t.Error(text)
	}
}

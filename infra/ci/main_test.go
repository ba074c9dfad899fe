package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The component in the repository has the script as it is.
func TestWritten(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	want, err := os.ReadFile(filepath.Join(root, component))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, script))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := write(folder); err == nil {
		t.Error("a script that is missing is no error")
	}
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(script, string(source))
	if err := write(folder); err == nil {
		t.Error("a component that is missing is no error")
	}
	head, rest, _ := strings.Cut(string(want), begin)
	_, tail, _ := strings.Cut(rest, end)
	put(component, head+begin+tail)
	if err := write(folder); err == nil {
		t.Error("a component without the last line is no error")
	}
	put(component, head+begin+"      an older script\n"+end+tail)
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, component)); err != nil || string(got) != string(want) {
		t.Errorf("%s does not have the lines of %s: make gen (%v)", component, script, err)
	}
}

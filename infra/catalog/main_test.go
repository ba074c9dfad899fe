package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// The list in the repository has the folders of the functions.
func TestGenerated(t *testing.T) {
	t.Parallel()
	wanted, err := generate(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(filepath.Join("../..", file)); err != nil || string(kept) != string(wanted) {
		t.Errorf("%s is not what would be generated: run make gen (%v)", file, err)
	}
}

// Listed functions keep their order, new functions come last, and functions without a folder are left out.
func TestOrder(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{file: {Data: []byte("\tzebra.Function,\n\tgone.Function,\n\tape.Function,\n")}}
	for _, name := range []string{"zebra", "ape", "bear", itself} {
		root[path.Join("functions", name, name+".go")] = &fstest.MapFile{Data: []byte("package " + name + "\n\nvar Function = 1\n")}
	}
	text, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(string(text[strings.Index(string(text), "frame.Function{"):])), " "); got != "frame.Function{ zebra.Function, ape.Function, bear.Function, }" {
		t.Error(got)
	}
	if imports := strings.Count(string(text), `"management.platform.sh/functions/`); imports != 3 {
		t.Errorf("%d imports", imports)
	}
	root["functions/bear/bear.go"] = &fstest.MapFile{Data: []byte("package bear\n")}
	if _, err := generate(root); err == nil || !strings.Contains(err.Error(), "bear declares no Function") {
		t.Errorf("a folder without a function: %v", err)
	}
}

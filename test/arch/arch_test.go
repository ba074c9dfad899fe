// Package arch_test enforces the structure of the code: which package may import which, what a function links, which words an
// operation consists of, and what every comment must say. A rule is a function from facts to findings, with a readable
// table. Planted faults show that each rule finds something. Package drift_test checks the promises of the
// documents. Source: ADR-0001.
package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "management.platform.sh"
)

// room is a package of this module, as the rules see it.
type room struct {
	// path is the folder below the module: shared/model.
	path string
	// files are all files of the folder, of every platform, with the tests.
	files []file
	// links are the modules that a program with this package contains.
	links []string
}

type file struct {
	path      string
	test      bool
	generated bool
	tree      *ast.File
}

// imports returns the import paths of the test files or of the other files, each once.
func (r *room) imports(test bool) []string {
	var paths []string
	for _, f := range r.files {
		if f.test != test {
			continue
		}
		for _, spec := range f.tree.Imports {
			paths = append(paths, strings.Trim(spec.Path.Value, `"`))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func parse(name string, source []byte) (file, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	return file{path: name, test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(tree), tree: tree}, nil
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath string
	Dir        string
	DepOnly    bool
	Standard   bool
	Deps       []string
	Module     *struct{ Path string }
}

// rooms are the packages of this module.
var rooms = sync.OnceValues(func() ([]*room, error) {
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,DepOnly,Standard,Deps,Module", "./...")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return nil, explain(err)
	}
	modules := map[string]string{}
	var ours []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil {
			modules[p.ImportPath] = p.Module.Path
		}
		if !p.DepOnly {
			ours = append(ours, p)
		}
	}
	var found []*room
	for _, p := range ours {
		r := &room{path: strings.TrimPrefix(p.ImportPath, module+"/")}
		for _, dep := range p.Deps {
			if m := modules[dep]; m != "" && m != module {
				r.links = append(r.links, m)
			}
		}
		slices.Sort(r.links)
		r.links = slices.Compact(r.links)
		names, err := filepath.Glob(filepath.Join(root, r.path, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			source, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			f, err := parse(path.Join(r.path, filepath.Base(name)), source)
			if err != nil {
				return nil, err
			}
			r.files = append(r.files, f)
		}
		found = append(found, r)
	}
	return found, nil
})

// tree is the text of every file that is part of the project, by its path.
var tree = sync.OnceValues(func() (map[string]string, error) {
	command := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return nil, explain(err)
	}
	texts, folders := map[string]string{}, map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(output), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !bytes.ContainsRune(text, 0) {
			texts[name] = string(text)
		}
		for folder := path.Dir(name); !folders[folder]; folder = path.Dir(folder) {
			folders[folder] = true
			// Read here, so that the cache of go test sees that a file was added.
			if _, err := os.ReadDir(filepath.Join(root, folder)); err != nil {
				return nil, err
			}
		}
	}
	return texts, nil
})

// explain adds the output of the program to its failure.
func explain(err error) error {
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return errors.Join(err, errors.New(string(ended.Stderr)))
	}
	return err
}

// all returns the packages of this module.
func all(t *testing.T) []*room {
	t.Helper()
	// The files are read for the cache of go test, which knows nothing of what go list reads.
	if _, err := tree(); err != nil {
		t.Fatal(err)
	}
	found, err := rooms()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("go list found %d packages: that cannot be all", len(found))
	}
	return found
}

// plant makes rooms from sources by path. A source without a package clause is a list of imports, one per line.
func plant(t *testing.T, sources map[string]string) []*room {
	t.Helper()
	byPath := map[string]*room{}
	for name, source := range sources {
		if !strings.Contains(source, "package ") {
			text := "package planted\n"
			for p := range strings.FieldsSeq(source) {
				text += "import _ \"" + p + "\"\n"
			}
			source = text
		}
		f, err := parse(name, []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		folder := path.Dir(name)
		if byPath[folder] == nil {
			byPath[folder] = &room{path: folder}
		}
		byPath[folder].files = append(byPath[folder].files, f)
	}
	var planted []*room
	for _, r := range byPath {
		slices.SortFunc(r.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
		planted = append(planted, r)
	}
	slices.SortFunc(planted, func(a, b *room) int { return strings.Compare(a.path, b.path) })
	return planted
}

// report fails the test for each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, finding := range findings {
		t.Error(finding)
	}
}

// expect fails the test unless there is exactly one finding for each wanted text, and contains it.
func expect(t *testing.T, findings []string, want ...string) {
	t.Helper()
	if len(findings) != len(want) {
		t.Errorf("got findings %q, want %q", findings, want)
		return
	}
	for i, finding := range findings {
		if !strings.Contains(finding, want[i]) {
			t.Errorf("got finding %q, want %q", finding, want[i])
		}
	}
}

// line is a line of a table: a name, and the patterns behind its colon.
type line struct {
	name     string
	patterns []string
}

func lines(table string) []line {
	var found []line
	for text := range strings.Lines(table) {
		text, _, _ = strings.Cut(text, "#")
		name, rest, ok := strings.Cut(text, ":")
		if ok {
			found = append(found, line{strings.TrimSpace(name), strings.Fields(rest)})
		}
	}
	return found
}

// matches reports whether a path matches a pattern: * is one step, and a last step of three dots is the
// folder and everything in it.
func matches(pattern, name string) bool {
	if folder, deep := strings.CutSuffix(pattern, "/..."); deep {
		return name == folder || strings.HasPrefix(name, folder+"/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

// find returns the line for a name: the line with exactly this name, or else the first that matches.
func find(table []line, name string) (line, bool) {
	for _, l := range table {
		if l.name == name {
			return l, true
		}
	}
	i := slices.IndexFunc(table, func(l line) bool { return matches(l.name, name) })
	if i < 0 {
		return line{}, false
	}
	return table[i], true
}

func TestMatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"shared/model", "shared/model", true},
		{"shared/model", "shared/models", false},
		{"functions/*", "functions/whoami", true},
		{"functions/*", "functions/whoami/more", false},
		{"infra/...", "infra", true},
		{"infra/...", "infra/openapi/generated", true},
		{"infra/...", "infrared", false},
	}
	for _, test := range tests {
		if matches(test.pattern, test.name) != test.want {
			t.Errorf("matches(%q, %q) is not %v", test.pattern, test.name, test.want)
		}
	}
	if l, ok := find(lines("a/*: x\na/b: y z # why\n"), "a/b"); !ok || l.name != "a/b" || len(l.patterns) != 2 {
		t.Errorf("found %+v", l)
	}
}

var word = regexp.MustCompile(`^(?:(?:A|An|The) )?([\pL\pN_]+)`)

package main

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// matches reports whether a pattern of a part matches a package of its module.
func matches(pattern, name string) bool {
	folder, all := strings.CutSuffix(pattern, "...")
	folder = strings.TrimSuffix(folder, "/")
	return name == folder || all && (folder == "" || strings.HasPrefix(name, folder+"/"))
}

// tests reports whether one of the parts runs the tests of a package.
func tests(parts []part, module, name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool {
		return p.module == module && !slices.Contains(p.except, name) &&
			slices.ContainsFunc(p.packages, func(pattern string) bool { return matches(pattern, name) })
	})
}

var testFunction = regexp.MustCompile(`(?m)^func (Test|Fuzz|Example)`)

// withTests returns the folders with tests, by the folder of their go.mod and below it.
func withTests(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go", "*go.mod")
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(output))
	folders := map[string][]string{}
	for _, file := range files {
		if filepath.Base(file) == "go.mod" {
			folders[strings.TrimPrefix(filepath.Dir(file), ".")] = nil
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) || filepath.Base(file) == "go.mod" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !testFunction.Match(text) {
			continue
		}
		folder, module := filepath.ToSlash(filepath.Dir(file)), ""
		for name := range folders {
			if name != "" && (folder == name || strings.HasPrefix(folder, name+"/")) {
				module = name
			}
		}
		name := strings.TrimPrefix(strings.TrimPrefix(folder, module), "/")
		if !slices.Contains(folders[module], name) {
			folders[module] = append(folders[module], name)
		}
	}
	return folders
}

// The tests of every package run in check or in check-deep. If a package leaves tests out of short runs, check-deep runs it as well.
func TestEveryPackageRuns(t *testing.T) {
	t.Parallel()
	all := withTests(t)
	if len(all[""]) < 100 || len(all) < 5 {
		t.Fatalf("these cannot be all packages: %q", all)
	}
	for module, names := range all {
		for _, name := range names {
			switch inCheck, inDeep := tests(check, module, name), tests(deep, module, name); {
			case !inCheck && !inDeep:
				t.Errorf("%s/%s runs neither in check nor in check-deep", module, name)
			case inCheck && !inDeep && runsLessInShort(t, name):
				t.Errorf("%s leaves tests out of short runs, and check-deep does not run them", name)
			}
		}
	}
}

// runsLessInShort reports whether tests of a package run less when they are to be short.
func runsLessInShort(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, name, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte("testing.Short()"))
	}) && !slices.ContainsFunc(check, func(p part) bool {
		return slices.Contains(p.packages, name) && !slices.Contains(p.flags, short) // a part of its own, which is not short
	})
}

// A part without a package, and a package that two parts of check have, are mistakes of the list.
func TestParts(t *testing.T) {
	t.Parallel()
	all := withTests(t)
	for _, p := range slices.Concat(check, deep) {
		for _, pattern := range slices.Concat(p.packages, p.except, p.first) {
			if !slices.ContainsFunc(all[p.module], func(name string) bool { return matches(pattern, name) }) {
				t.Errorf("%s: %s has no tests", p.name, pattern)
			}
		}
		for _, name := range p.needs {
			if _, known := needs[name]; !known {
				t.Errorf("%s needs %s, which is not in the list", p.name, name)
			}
		}
		if (p.target == "") == (len(p.packages) == 0) {
			t.Errorf("%s has both a target and packages, or neither", p.name)
		}
	}
	for _, name := range all[""] {
		var by []string
		for _, p := range check {
			if tests([]part{p}, "", name) {
				by = append(by, p.name)
			}
		}
		if len(by) > 1 {
			t.Errorf("%s runs in %q", name, by)
		}
	}
}

// The table in the page for contributors has the same parts as the list.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "contributing.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table()) {
		t.Errorf("docs/contributing.md must have this table:\n%s", table())
	}
}

// table returns the table of parts for the page.
func table() string {
	var text strings.Builder
	text.WriteString("| part | runs in | what it checks | packages |\n| --- | --- | --- | --- |\n")
	for _, set := range []struct {
		name  string
		parts []part
	}{{"check", check}, {"check-deep", deep}} {
		for _, p := range set.parts {
			packages := "-"
			if len(p.packages) > 0 {
				var names []string
				for _, pattern := range p.packages {
					names = append(names, cmp.Or(strings.TrimPrefix(strings.TrimSuffix("/"+filepath.ToSlash(filepath.Join(p.module, pattern)), "/..."), "/"), "."))
				}
				packages = "`" + strings.Join(names, "`, `") + "`"
				if len(p.except) > 0 {
					packages += ", without those of other parts"
				}
			}
			text.WriteString("| `" + p.name + "` | `make " + set.name + "` | " + p.about + " | " + packages + " |\n")
		}
	}
	return text.String()
}

// The report names packages with their seconds, and counts the packages with cached results.
func TestPackages(t *testing.T) {
	t.Parallel()
	const events = `{"Action":"start","Package":"p/a"}
{"Action":"pass","Package":"p/a","Test":"TestOne","Elapsed":9}
{"Action":"pass","Package":"p/a","Elapsed":1.5}
{"Action":"output","Package":"p/b","Output":"ok  \tp/b\t(cached)\n"}
{"Action":"pass","Package":"p/b","Elapsed":0}
{"Action":"skip","Package":"p/none","Elapsed":0}
{"Action":"fail","Package":"p/c","Elapsed":61}
`
	found, cached, err := packages(strings.NewReader(events), "test")
	if err != nil || cached != 1 || len(found) != 3 {
		t.Fatalf("%+v, %d, %v", found, cached, err)
	}
	free, err := freeBytes(".")
	if err != nil || free <= 0 {
		t.Fatalf("%d bytes are free, %v", free, err)
	}
	r := &report{folder: ".", free: free, begun: time.Now(), tests: found, rows: []row{{name: "test", wall: time.Minute, packages: 3, cached: 1, failed: true}}}
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"60 s", "FAILED", "disk: ", "61.0 s  test  p/c"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Index(out.String(), "p/c") > strings.Index(out.String(), "p/a") {
		t.Errorf("the slowest package is not the first:\n%s", out.String())
	}
	if _, _, err := packages(strings.NewReader("no event\n"), "test"); err == nil {
		t.Error("what is no event is read")
	}
}

// Before anything runs, each missing program is reported in one line that names it and says how to get it.
func TestMissing(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	lines := install(t.Context(), folder, []string{"redis-server", "chromium"})
	for i, want := range []string{"redis-server is missing: on Debian, apt-get install redis-server", "chromium-headless-shell or chromium or chromium-browser or google-chrome is missing: on Debian, apt-get install chromium-headless-shell"} {
		if len(lines) != 2 || !strings.HasPrefix(lines[i], want) || strings.Contains(lines[i], "\n") {
			t.Fatalf("%q", lines)
		}
	}
	t.Setenv("CI", "true")
	if err := prepare(t.Context(), []string{"redis-server"}, nil); err == nil {
		t.Error("a missing program does not stop CI")
	}
	t.Setenv("CI", "")
	if err := prepare(t.Context(), []string{"redis-server"}, nil); err != nil {
		t.Errorf("a missing program stops a laptop: %v", err)
	}
	if err := prepare(t.Context(), []string{"rediss"}, nil); err == nil {
		t.Error("a need that is not in the list is accepted")
	}
	// A browser that is installed but does not start.
	if err := os.WriteFile(filepath.Join(folder, "chromium"), []byte("#!/bin/sh\necho no display\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := startError(t.Context(), "chromium"); err == nil || !strings.Contains(err.Error(), "chromium does not start: exit status 1: no display") {
		t.Errorf("a browser that does not start: %v", err)
	}
	// A lock file that is newer than its packages.
	for _, name := range []string{"node_modules/.package-lock.json", "package-lock.json"} {
		path := filepath.Join(folder, needs["playwright"].npm, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if !needs["playwright"].isMissing(folder) {
			t.Errorf("packages are there before %s is", name)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	locked := filepath.Join(folder, needs["playwright"].npm, "package-lock.json")
	for _, row := range []struct {
		after   time.Duration
		missing bool
	}{{-time.Hour, false}, {time.Hour, true}} {
		at := time.Now().Add(row.after)
		if err := os.Chtimes(locked, at, at); err != nil {
			t.Fatal(err)
		}
		if got := needs["playwright"].isMissing(folder); got != row.missing {
			t.Errorf("a lock file %s after its packages: missing %v", row.after, got)
		}
	}
}

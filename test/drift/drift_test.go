// Package drift_test compares facts that are stated twice: the catalog with the folders and with the API's description of
// itself, the documents with the files, the targets and the flags that they name. If the two differ, one
// of them is wrong, and the finding says where. Package arch_test enforces the structure of the code. Source: ADR-0006.
package drift_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// project has the texts of all files of the project by path. Folders have the text "".
type project map[string]string

// holds reports whether a file or folder exists. The path may have a slash at its end.
func (p project) holds(name string) bool {
	_, ok := p[path.Clean(name)]
	return ok
}

// pathsWith returns the paths with this prefix and suffix, in order.
func (p project) pathsWith(begin, end string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range p {
			if strings.HasPrefix(name, begin) && strings.HasSuffix(name, end) && !yield(name) {
				return
			}
		}
	})
}

// documents returns the paths of the texts for readers.
func (p project) documents() []string { return p.pathsWith("", ".md") }

var read = sync.OnceValues(func() (project, error) {
	output, err := run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	texts := project{}
	for name := range strings.SplitSeq(strings.TrimSuffix(output, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if bytes.ContainsRune(text, 0) {
			text = nil
		}
		texts[name] = string(text)
		for folder := path.Dir(name); !texts.holds(folder); folder = path.Dir(folder) {
			texts[folder] = ""
			// The folder is read here, so that the cache of go test notices an added file.
			if _, err := os.ReadDir(filepath.Join(root, folder)); err != nil {
				return nil, err
			}
		}
	}
	return texts, nil
})

// files returns the project.
func files(t *testing.T) project {
	t.Helper()
	texts, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if len(texts.documents()) < 5 || len(texts) < 100 {
		t.Fatalf("the project has %d files: that cannot be all", len(texts))
	}
	return texts
}

// run runs a program in the folder of the project and returns what it prints.
func run(name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Dir = root
	var failure strings.Builder
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, failure.String())
	}
	return string(output), nil
}

// differences finds entries that only one side has.
func differences[V any](left string, inLeft map[string]V, right string, inRight map[string]V) []string {
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(inLeft)) {
		if _, ok := inRight[name]; !ok {
			findings = append(findings, fmt.Sprintf("%s has %q, %s has not", left, name, right))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inRight)) {
		if _, ok := inLeft[name]; !ok {
			findings = append(findings, fmt.Sprintf("%s has %q, %s has not", right, name, left))
		}
	}
	return findings
}

// set makes a set of the values to compare.
func set(names ...string) map[string]bool {
	found := map[string]bool{}
	for _, name := range names {
		found[name] = true
	}
	return found
}

// report fails the test for each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, finding := range findings {
		t.Error(finding)
	}
}

// expect fails the test unless there is exactly one finding for each wanted text, which contains the text.
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

//go:build unix

package script_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

var versionHeading = regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) \(`)

// previousCommit returns the commit of the newest release before this one: the commit of its tag, or the commit that added its section to the
// changelog.
var previousCommit = sync.OnceValues(func() (string, error) {
	git := func(args ...string) (string, error) {
		command := exec.Command("git", args...)
		command.Dir = repository
		text, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	text, err := os.ReadFile(filepath.Join(repository, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	present, err := git("rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		return "", errors.Join(err, errors.New("the history of this checkout is cut off: git fetch --unshallow"))
	}
	for _, version := range versionHeading.FindAllStringSubmatch(string(text), -1) {
		commit, err := git("rev-parse", "--quiet", "--verify", "v"+version[1]+"^{commit}")
		if err != nil {
			added, err := git("log", "--reverse", "--format=%H", "-S## "+version[1]+" (", "--", "CHANGELOG.md")
			if err != nil {
				return "", err
			}
			commit, _, _ = strings.Cut(added, "\n")
		}
		if commit != "" && commit != present {
			return commit, nil
		}
	}
	return "", errors.New("the changelog has no release before this commit")
})

// havePrevious reports whether there is a previous release to test with. In CI there is one.
func havePrevious() (bool, error) {
	_, err := previousCommit()
	if err != nil && os.Getenv("CI") != "" {
		return false, err
	}
	return err == nil, nil
}

// previousProgram builds the program of the previous release from the history. It is built once for each commit.
var previousProgram = sync.OnceValues(func() (string, error) {
	commit, err := previousCommit()
	if err != nil {
		return "", err
	}
	program := filepath.Join(repository, "build", "test", "platform-"+commit)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	folder, err := os.MkdirTemp("", "previous-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	archive := filepath.Join(folder, "source.tar")
	for _, each := range [][]string{
		{"git", "-C", repository, "archive", "--output", archive, commit},
		{"tar", "-xf", archive, "-C", folder},
	} {
		if output, err := exec.Command(each[0], each[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(each, " "), err, output)
		}
	}
	// The program is renamed at the end, so that tests that build it at the same time see a whole program or none.
	built := filepath.Join(folder, "platform")
	if err := goBuild(folder, "build", "-trimpath", "-o", built, "./local"); err != nil {
		return "", err
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	part := program + fmt.Sprintf(".%d", os.Getpid())
	if err := os.WriteFile(part, content, 0o700); err != nil {
		return "", err
	}
	return program, os.Rename(part, program)
})

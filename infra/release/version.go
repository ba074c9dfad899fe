package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is the commit that is released.
type release struct {
	root    string
	version string
	commit  string
	time    time.Time
	notes   string
}

// describe returns the release of a checkout: the version that CHANGELOG.md names, if the commit has its tag, and
// otherwise a snapshot on the way to the next version.
func describe(ctx context.Context, root string) (release, error) {
	git := func(args ...string) (string, error) {
		text, err := output(ctx, root, nil, "git", args...)
		return strings.TrimSpace(text), err
	}
	changed, err := git("status", "--porcelain")
	if err != nil {
		return release{}, err
	}
	if changed != "" {
		return release{}, fmt.Errorf("a release is made of a commit, and these files differ from it:\n%s", changed)
	}
	head, err := git("log", "-1", "--format=%H %ct")
	if err != nil {
		return release{}, err
	}
	commit, seconds, _ := strings.Cut(head, " ")
	instant, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return release{}, fmt.Errorf("reading the time of the commit: %w", err)
	}
	tags, err := git("tag", "--points-at", "HEAD")
	if err != nil {
		return release{}, err
	}
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return release{}, err
	}
	version, notes, err := versionOf(string(text), strings.Fields(tags), commit)
	return release{root: root, version: version, commit: commit, time: time.Unix(instant, 0).UTC(), notes: notes}, err
}

var versionHeading = regexp.MustCompile(`(?m)^## (\d+)\.(\d+)\.(\d+) \(\d{4}-\d{2}-\d{2}\)\n`)

// versionOf returns the version of a commit with its notes.
func versionOf(changelog string, tags []string, commit string) (version, notes string, err error) {
	newest := versionHeading.FindStringSubmatchIndex(changelog)
	if newest == nil {
		return "", "", errors.New("CHANGELOG.md names no version: it needs a heading such as \"## 1.2.3 (2006-01-02)\"")
	}
	number := func(i int) string { return changelog[newest[2*i]:newest[2*i+1]] }
	_, unreleased, found := strings.Cut(changelog[:newest[0]], "## Unreleased\n")
	if !found {
		return "", "", errors.New("CHANGELOG.md has no heading \"## Unreleased\" above its newest version")
	}
	version = number(1) + "." + number(2) + "." + number(3)
	unreleased = strings.TrimSpace(unreleased)
	if slices.Contains(tags, "v"+version) {
		if unreleased != "" {
			return "", "", fmt.Errorf("the commit is tagged v%s, and CHANGELOG.md has entries under Unreleased: they are part of %s or of the next version", version, version)
		}
		notes = changelog[newest[1]:]
		if next := versionHeading.FindStringIndex(notes); next != nil {
			notes = notes[:next[0]]
		}
		return version, strings.TrimSpace(notes) + "\n", nil
	}
	patch, err := strconv.Atoi(number(3))
	if err != nil {
		return "", "", err
	}
	return fmt.Sprintf("%s.%s.%d-next.g%.10s", number(1), number(2), patch+1, commit), unreleased + "\n", nil
}

// output runs a program and returns what it prints.
func output(ctx context.Context, folder string, env []string, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), env...)
	var failure strings.Builder
	command.Stderr = &failure
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, failure.String())
	}
	return string(text), nil
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// outcome is the result of a test with its subtests.
type outcome struct {
	Passed, Skipped int
	// Failed are the names of the failed tests.
	Failed []string
	// Counted are the cases that a test has counted itself, such as "404 vectors". They follow "counted: " in its output.
	Counted []string
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

var countedLine = regexp.MustCompile(`^\s+\w+\.go:\d+: counted: (.+)\n$`)

// outcomes reads the output of go test -json. A test with subtests counts as its subtests. Stories are counted together for all shapes. The
// output of failed tests is written to reasons.
func outcomes(r io.Reader, reasons io.Writer) (map[string]*outcome, error) {
	ended, counted, parents, said := map[string]string{}, map[string][]string{}, map[string]bool{}, map[string][]string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the results of a test: %w: %.200s", err, lines.Bytes())
		}
		switch {
		case e.Test == "":
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			ended[e.Test] = e.Action
			if e.Action == "fail" {
				fmt.Fprint(reasons, strings.Join(said[e.Test], ""))
			}
			delete(said, e.Test)
		case e.Action == "run":
			ended[e.Test] = "fail" // unless it ends
			if at := strings.LastIndex(e.Test, "/"); at > 0 {
				parents[e.Test[:at]] = true
			}
		case e.Action == "output":
			said[e.Test] = append(said[e.Test], e.Output)
			if m := countedLine.FindStringSubmatch(e.Output); m != nil {
				top := topOf(e.Test)
				counted[top] = append(counted[top], m[1])
			}
		}
	}
	found := map[string]*outcome{}
	for name, how := range ended {
		top := topOf(name)
		if top == storiesTest {
			continue // the test of all stories, and of those in a shape
		}
		if found[top] == nil {
			slices.Sort(counted[top])
			found[top] = &outcome{Counted: counted[top]}
		}
		switch {
		case how == "fail":
			found[top].Failed = append(found[top].Failed, name)
		case parents[name]:
		case how == "pass":
			found[top].Passed++
		case how == "skip":
			found[top].Skipped++
		}
	}
	for _, o := range found {
		slices.Sort(o.Failed)
	}
	return found, lines.Err()
}

// topOf returns the function of a test, or the story without its shape.
func topOf(name string) string {
	steps := strings.Split(name, "/")
	if steps[0] != storiesTest {
		return steps[0]
	}
	if len(steps) < 3 {
		return storiesTest
	}
	return storiesTest + "/" + steps[2]
}

// runs returns the commands that run tests: one for each package, and one for stories.
func runs(tests []aTest) map[string][]aTest {
	grouped := map[string][]aTest{}
	for _, t := range tests {
		key := t.folder
		if t.story() != "" {
			key += " stories"
		}
		if !slices.Contains(grouped[key], t) {
			grouped[key] = append(grouped[key], t)
		}
	}
	return grouped
}

// command returns the folder and the arguments of go that run tests of a package.
func command(root string, tests []aTest) (folder string, args []string) {
	var names []string
	for _, t := range tests {
		names = append(names, strings.TrimPrefix(t.name, storiesTest+"/"))
	}
	pattern := "^(" + strings.Join(names, "|") + ")$"
	if len(names) == 1 {
		pattern = "^" + names[0] + "$"
	}
	if tests[0].story() != "" {
		pattern = "^" + storiesTest + "$/./" + pattern
	}
	// A package can be in a module of its own.
	module := tests[0].folder
	for module != "." {
		if _, err := os.Stat(filepath.Join(root, module, "go.mod")); err == nil {
			break
		}
		module = filepath.Dir(module)
	}
	inside, err := filepath.Rel(module, tests[0].folder)
	if err != nil {
		panic(err) // both are below the root
	}
	if inside != "." {
		inside = "./" + filepath.ToSlash(inside)
	}
	return module, []string{"test", "-count=1", "-timeout", "60m", "-run", pattern, inside}
}

// runTests runs tests without a network, and returns their outcomes. If folder is not empty, the results of a commit are kept in it and used
// again.
func runTests(ctx context.Context, root, kept, commit string, tests []aTest) (map[aTest]*outcome, error) {
	found := map[aTest]*outcome{}
	grouped := runs(tests)
	for i, key := range slices.Sorted(maps.Keys(grouped)) {
		group := grouped[key]
		folder, args := command(root, group)
		fmt.Fprintf(os.Stderr, "%d of %d: go %s\n", i+1, len(grouped), strings.Join(args, " "))
		by, err := resultsOf(ctx, filepath.Join(root, folder), args, kept, commit+" "+key)
		if err != nil {
			return nil, err
		}
		for _, t := range group {
			if by[t.name] == nil {
				by[t.name] = &outcome{Failed: []string{t.name + " did not run"}}
			}
			found[t] = by[t.name]
		}
	}
	return found, nil
}

func resultsOf(ctx context.Context, folder string, args []string, kept, name string) (map[string]*outcome, error) {
	file := filepath.Join(kept, strings.NewReplacer("/", "-", " ", "-").Replace(name)+".json")
	asked := strings.Join(args, " ")
	var stored struct {
		Asked    string
		Outcomes map[string]*outcome
	}
	if text, err := os.ReadFile(file); kept != "" && err == nil && json.Unmarshal(text, &stored) == nil && stored.Asked == asked {
		return stored.Outcomes, nil
	}
	c := exec.CommandContext(ctx, "go", slices.Insert(slices.Clone(args), 1, "-json")...)
	c.Dir = folder
	// In CI no test is skipped because of a missing program.
	c.Env = append(os.Environ(), "CI=true", "GOPROXY=off")
	c.Stderr = os.Stderr
	output, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	by, err := outcomes(output, os.Stderr)
	ended := c.Wait()
	if err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	if ended != nil && !slices.ContainsFunc(slices.Collect(maps.Values(by)), func(o *outcome) bool { return len(o.Failed) > 0 }) {
		return nil, fmt.Errorf("go %s in %s: %w", asked, folder, ended)
	}
	if ended == nil && kept != "" {
		stored.Asked, stored.Outcomes = asked, by
		text, err := json.Marshal(stored)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.MkdirAll(kept, 0o750), os.WriteFile(file, text, 0o600)); err != nil {
			return nil, err
		}
	}
	return by, nil
}

// findBroken returns the claims that do not hold, because a test failed, was skipped as a whole, or did not run.
func findBroken(root string, claims []claim, found map[aTest]*outcome) []string {
	var findings []string
	for _, c := range claims {
		tests, err := testsOf(root, c)
		if err != nil {
			findings = append(findings, err.Error())
		}
		for _, t := range tests {
			switch o := found[t]; {
			case o == nil:
				findings = append(findings, fmt.Sprintf("%s: %v did not run", c.ID, t))
			case len(o.Failed) > 0:
				findings = append(findings, fmt.Sprintf("%s: %v failed: %s", c.ID, t, strings.Join(o.Failed, ", ")))
			case o.Passed == 0:
				findings = append(findings, fmt.Sprintf("%s: nothing of %v passed, and %d were skipped", c.ID, t, o.Skipped))
			}
		}
	}
	return findings
}

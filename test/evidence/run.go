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
	actions, counts, parents, outputs := map[string]string{}, map[string][]string{}, map[string]bool{}, map[string][]string{}
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
			actions[e.Test] = e.Action
			if e.Action == "fail" {
				fmt.Fprint(reasons, strings.Join(outputs[e.Test], ""))
			}
			delete(outputs, e.Test)
		case e.Action == "run":
			actions[e.Test] = "fail" // unless it ends
			if at := strings.LastIndex(e.Test, "/"); at > 0 {
				parents[e.Test[:at]] = true
			}
		case e.Action == "output":
			outputs[e.Test] = append(outputs[e.Test], e.Output)
			if m := countedLine.FindStringSubmatch(e.Output); m != nil {
				top := topOf(e.Test)
				counts[top] = append(counts[top], m[1])
			}
		}
	}
	results := map[string]*outcome{}
	for name, how := range actions {
		top := topOf(name)
		if top == storiesTest {
			continue // the test of all stories, and of those in a shape
		}
		if results[top] == nil {
			slices.Sort(counts[top])
			results[top] = &outcome{Counted: counts[top]}
		}
		switch {
		case how == "fail":
			results[top].Failed = append(results[top].Failed, name)
		case parents[name]:
		case how == "pass":
			results[top].Passed++
		case how == "skip":
			results[top].Skipped++
		}
	}
	for _, o := range results {
		slices.Sort(o.Failed)
	}
	return results, lines.Err()
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
func runTests(ctx context.Context, root, resultFolder, commit string, tests []aTest) (map[aTest]*outcome, error) {
	results := map[aTest]*outcome{}
	grouped := runs(tests)
	for i, key := range slices.Sorted(maps.Keys(grouped)) {
		group := grouped[key]
		folder, args := command(root, group)
		fmt.Fprintf(os.Stderr, "%d of %d: go %s\n", i+1, len(grouped), strings.Join(args, " "))
		by, err := resultsOf(ctx, filepath.Join(root, folder), args, resultFolder, commit+" "+key)
		if err != nil {
			return nil, err
		}
		for _, t := range group {
			if by[t.name] == nil {
				by[t.name] = &outcome{Failed: []string{t.name + " did not run"}}
			}
			results[t] = by[t.name]
		}
	}
	return results, nil
}

func resultsOf(ctx context.Context, folder string, args []string, resultFolder, name string) (map[string]*outcome, error) {
	file := filepath.Join(resultFolder, strings.NewReplacer("/", "-", " ", "-").Replace(name)+".json")
	arguments := strings.Join(args, " ")
	var stored struct {
		Asked    string
		Outcomes map[string]*outcome
	}
	if text, err := os.ReadFile(file); resultFolder != "" && err == nil && json.Unmarshal(text, &stored) == nil && stored.Asked == arguments {
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
	exitError := c.Wait()
	if err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	if exitError != nil && !slices.ContainsFunc(slices.Collect(maps.Values(by)), func(o *outcome) bool { return len(o.Failed) > 0 }) {
		return nil, fmt.Errorf("go %s in %s: %w", arguments, folder, exitError)
	}
	if exitError == nil && resultFolder != "" {
		stored.Asked, stored.Outcomes = arguments, by
		text, err := json.Marshal(stored)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.MkdirAll(resultFolder, 0o750), os.WriteFile(file, text, 0o600)); err != nil {
			return nil, err
		}
	}
	return by, nil
}

// findBroken returns the claims that do not hold, because a test failed, was skipped as a whole, or did not run.
func findBroken(root string, claims []claim, results map[aTest]*outcome) []string {
	var findings []string
	for _, c := range claims {
		tests, err := testsOf(root, c)
		if err != nil {
			findings = append(findings, err.Error())
		}
		for _, t := range tests {
			switch o := results[t]; {
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

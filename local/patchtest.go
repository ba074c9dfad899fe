package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
	"management.platform.sh/shared/syncpatch/worker"
)

type patchTestCommand struct {
	Files  []string   `arg:"" name:"file" help:"Test files in YAML or JSON; docs/patches.md shows one."`
	Output string     `short:"o" enum:"diff,yaml,json" default:"diff" help:"diff, or yaml or json (${default})."`
	Color  string     `enum:"auto,always,never" default:"auto" help:"auto, always or never (${default}: on a terminal, unless NO_COLOR is set)."`
	Limits patchFlags `embed:""`
}

// testFile is a file of tests.
type testFile struct {
	// Configuration is the file with the virtual cluster configuration that the tests are about, beside this one. Empty:
	// each test has its own patches.
	Configuration string `json:"configuration,omitempty"`
	// Tenant is that of all tests that name none.
	Tenant model.SyncPatchTenant `json:"tenant,omitzero"`
	Tests  []testCase            `json:"tests"`
}

// testCase is one test. Exactly one of Expect and Error is given.
type testCase struct {
	Name string `json:"name"`
	// Spec is what to evaluate. Its object may be the name of a file.
	Spec model.SyncPatchEvaluationSpec `json:"spec"`
	// Expect is the object after all patches, or the name of a file that has it.
	Expect *model.JSON `json:"expect,omitempty"`
	// Error is a part of the error's message.
	Error string `json:"error,omitempty"`
}

// testResult is how a test went.
type testResult struct {
	File   string `json:"file"`
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	// Reason is why it did not.
	Reason string `json:"reason,omitempty"`
	// Want and Got are the objects, where they differ.
	Want *model.JSON `json:"want,omitempty"`
	Got  *model.JSON `json:"got,omitempty"`
}

// Run runs every test.
func (c *patchTestCommand) Run(ctx context.Context) error { return c.run(ctx, standard(c.Color)) }

func (c *patchTestCommand) run(ctx context.Context, t *terminal) error {
	if err := c.Limits.check(); err != nil {
		return badInput("%v", err)
	}
	pool := worker.New(evaluation.Settings(c.Limits.settings()))
	defer pool.Close()
	var results []testResult
	failed := 0
	for _, name := range c.Files {
		tests, err := readTests(t, name)
		if err != nil {
			return err
		}
		for i := range tests {
			one, err := tests[i].run(ctx, pool)
			if err != nil {
				return err
			}
			if !one.Passed {
				failed++
			}
			results = append(results, one)
			if c.Output == "diff" {
				t.tell(&tests[i], &one)
			}
		}
	}
	if c.Output == "diff" {
		_, _ = fmt.Fprintf(t.out, "%d passed, %d failed\n", len(results)-failed, failed)
	} else {
		text, err := encodeAll(c.Output, []any{map[string]any{"passed": len(results) - failed, "failed": failed, "tests": results}})
		if err != nil {
			return err
		}
		if _, err := t.out.Write(text); err != nil {
			return err
		}
	}
	if failed > 0 {
		return ended(exitFailed)
	}
	return nil
}

// test is a case that is ready to run.
type test struct {
	testCase
	offline
}

// readTests reads a file of tests and what it refers to. What is wrong with the patches is part of the tests: an error
// may be what one expects.
func readTests(t *terminal, name string) ([]test, error) {
	documents, err := readDocuments(t, name)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, badInput("%s: it has %d documents; one is expected", name, len(documents))
	}
	var file testFile
	if err := documents[0].decode(&file); err != nil {
		return nil, err
	}
	var sent struct {
		Tests []json.RawMessage `json:"tests"`
	}
	if err := json.Unmarshal(documents[0].json, &sent); err != nil {
		return nil, err
	}
	if len(file.Tests) == 0 {
		return nil, badInput("%s: it has no tests", name)
	}
	beside := func(other string) string { return filepath.Join(filepath.Dir(name), other) }
	var configuration *configurationFile
	if file.Configuration != "" {
		if configuration, err = readConfigurationFile(t, beside(file.Configuration)); err != nil {
			return nil, err
		}
		t.report(configuration.findings)
		if configuration.configuration == nil || hasErrors(configuration.findings) {
			return nil, ended(exitBadInput)
		}
	}
	var tests []test
	for i, one := range file.Tests {
		source := *documents[0]
		source.prefix = fmt.Sprintf("tests[%d].", i)
		fail := func(format string, args ...any) error {
			return badInput("%s: tests[%d] %q: %s", name, i, one.Name, fmt.Sprintf(format, args...))
		}
		if (one.Expect == nil) == (one.Error == "") {
			return nil, fail("exactly one of expect and error is expected")
		}
		for _, value := range []**model.JSON{&one.Spec.Object, &one.Expect} {
			var other string
			if *value == nil || json.Unmarshal((*value).Raw, &other) != nil {
				continue
			}
			documents, err := readDocuments(t, beside(other))
			if err != nil {
				return nil, err
			}
			if len(documents) != 1 {
				return nil, fail("%s has %d documents; one is expected", other, len(documents))
			}
			*value = &model.JSON{Raw: documents[0].json}
		}
		made := test{testCase: one, offline: offline{source: &source, absent: syncpatch.AbsentPaths(sent.Tests[i])}}
		spec := &one.Spec
		if spec.Context.Tenant.Name == "" && spec.Context.Tenant.Namespace == "" && spec.Context.Tenant.Config == nil {
			spec.Context.Tenant = file.Tenant
		}
		if configuration != nil && len(spec.Patches) == 0 && spec.Configuration == nil {
			made.configuration = configuration
			spec.Configuration = &model.JSON{Raw: configuration.json}
			if spec.Context.Tenant.Config == nil {
				spec.Context.Tenant.Config = spec.Configuration
			}
			if spec.Resource == "" && spec.Object != nil {
				object := &document{name: name, json: spec.Object.Raw}
				object.recognize()
				if spec.Resource, err = configuration.resource("", object.kind); err != nil {
					return nil, err
				}
			}
		}
		made.evaluation.Spec = *spec
		tests = append(tests, made)
	}
	return tests, nil
}

// run evaluates, and compares with what is expected.
func (c *test) run(ctx context.Context, pool *worker.Pool) (testResult, error) {
	result := testResult{File: c.source.name, Name: c.Name}
	ok, err := c.evaluate(ctx, pool.Evaluate)
	if err != nil {
		return result, err
	}
	status := &c.evaluation.Status
	switch {
	case !ok && c.Error != "":
		for _, f := range c.findings {
			result.Passed = result.Passed || !f.Warning && strings.Contains(f.Field+": "+f.Message, c.Error)
		}
		if !result.Passed {
			result.Reason = "the patches are refused for other reasons"
		}
	case !ok:
		result.Reason = "the patches are refused"
	case c.Error != "" && status.Error == nil:
		result.Reason = fmt.Sprintf("no error, and one with %q was expected", c.Error)
	case c.Error != "":
		if result.Passed = strings.Contains(status.Error.Message, c.Error); !result.Passed {
			result.Reason = fmt.Sprintf("another error, and one with %q was expected", c.Error)
		}
	case status.Error != nil:
		result.Reason = "an error that was not expected"
	default:
		if result.Passed, err = equal(c.Expect, status.Object); err != nil {
			return result, badInput("%s: %q: expect: %v", c.source.name, c.Name, err)
		}
		if !result.Passed {
			result.Reason, result.Want, result.Got = "the object is not the expected one", c.Expect, status.Object
		}
	}
	for _, check := range status.Checks {
		if !check.Passed && result.Passed {
			result.Passed, result.Reason = false, "check "+check.Type+" failed: "+check.Reason
		}
	}
	return result, nil
}

// equal tells whether two texts are the same value.
func equal(a, b *model.JSON) (bool, error) {
	var left, right any
	if err := utiljson.Unmarshal(a.Raw, &left); err != nil {
		return false, err
	}
	err := utiljson.Unmarshal(b.Raw, &right)
	return reflect.DeepEqual(left, right), err
}

// tell shows how a test went.
func (t *terminal) tell(c *test, result *testResult) {
	if result.Passed {
		_, _ = fmt.Fprintf(t.out, "%s  %s\n", t.paint(green, "ok"), result.Name)
		return
	}
	_, _ = fmt.Fprintf(t.out, "%s  %s: %s\n", t.paint(red, "FAIL"), result.Name, result.Reason)
	t.report(c.findings)
	if result.Want != nil {
		t.diff(result.Name+" (want)", result.Want, result.Name+" (got)", result.Got)
	}
}

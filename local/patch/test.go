package patch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"management.platform.sh/local/flags"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/worker"
)

// Test is the command patch test: it runs files of test cases. Source: ADR-0013.
type Test struct {
	Files  []string       `arg:"" name:"file" help:"Test files in YAML or JSON, as docs/patches.md describes them."`
	Naming string         `enum:"neutral,vcluster" default:"neutral" help:"How names and labels are translated in tests whose spec has no naming: neutral, or vcluster (as the open syncer of vcluster does) (${default})."`
	Output string         `short:"o" enum:"diff,yaml,json" default:"diff" help:"Output format: diff, yaml or json (${default})."`
	Color  string         `enum:"auto,always,never" default:"auto" help:"Color the output: auto, always or never. auto colors on a terminal unless NO_COLOR is set (${default})."`
	Limits flags.Settings `embed:""`
}

// testFile is a file of tests.
type testFile struct {
	// Configuration is the path of the virtual cluster configuration under test, relative to the test file. Empty: each test
	// has its own patches.
	Configuration string `json:"configuration,omitempty"`
	// Tenant is the tenant of all tests that do not set one.
	Tenant model.SyncPatchTenant `json:"tenant,omitzero"`
	Tests  []testCase            `json:"tests"`
}

// testCase is one test. Exactly one of Expect and Error is given.
type testCase struct {
	Name string `json:"name"`
	// Spec is the evaluation. Its object may be the name of a file.
	Spec model.SyncPatchEvaluationSpec `json:"spec"`
	// Expect is the expected object after all patches, or the name of a file with it.
	Expect *model.JSON `json:"expect,omitempty"`
	// Error is a part of the expected error message.
	Error string `json:"error,omitempty"`
}

// testResult is the result of a test.
type testResult struct {
	File   string `json:"file"`
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	// Reason is why the test failed.
	Reason string `json:"reason,omitempty"`
	// Want and Got are the expected and the actual object, if they differ.
	Want *model.JSON `json:"want,omitempty"`
	Got  *model.JSON `json:"got,omitempty"`
	// Findings are errors in the patches, or the error of a patch that failed.
	Findings []finding `json:"findings,omitempty"`
	// Differences are the findings of a check that failed.
	Differences []model.SyncPatchDifference `json:"differences,omitempty"`
}

func (c *Test) Run(ctx context.Context) error {
	endAtSignals()
	return c.run(ctx, standardTerminal(c.Color))
}

func (c *Test) run(ctx context.Context, t *terminal) error {
	if err := t.open(&c.Limits); err != nil {
		return err
	}
	defer t.close()
	var tests []test
	var findings []finding
	for _, name := range c.Files {
		more, wrong, err := readTests(ctx, t, name, c.Naming)
		if err != nil {
			return err
		}
		tests, findings = append(tests, more...), append(findings, wrong...)
	}
	t.report(findings)
	if hasErrors(findings) {
		return exitWith(ExitBadInput)
	}
	results := []testResult{}
	failed := 0
	for i := range tests {
		result, err := tests[i].run(ctx, t.workers)
		if err != nil {
			return err
		}
		if !result.Passed {
			failed++
		}
		results = append(results, result)
		if c.Output == "diff" {
			t.printResult(&result)
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
		return exitWith(ExitFailed)
	}
	return nil
}

// test is a case that is ready to run.
type test struct {
	testCase
	offline
}

// readTests reads a test file and the files that it names, and finds all errors in their form. Errors in the patches of
// a test belong to its result: the test may expect them.
func readTests(ctx context.Context, t *terminal, name, naming string) ([]test, []finding, error) {
	documents, findings := readDocuments(t, name)
	d, findings := onlyDocument(name, documents, findings)
	if d == nil {
		return nil, findings, nil
	}
	var file testFile
	if wrong := d.decode(&file); wrong != nil {
		return nil, wrong, nil
	}
	var sent struct {
		Tests []json.RawMessage `json:"tests"`
	}
	if err := json.Unmarshal(d.json, &sent); err != nil {
		return nil, []finding{d.finding("tests", err.Error())}, nil
	}
	if len(file.Tests) == 0 {
		return nil, []finding{d.finding("tests", "the file has no tests")}, nil
	}
	relative := func(other string) string {
		if filepath.IsAbs(other) {
			return other
		}
		return filepath.Join(filepath.Dir(name), other)
	}
	var configuration *configurationFile
	if file.Configuration != "" {
		var err error
		if configuration, findings, err = readConfigurationFile(ctx, t, relative(file.Configuration)); err != nil {
			return nil, nil, err
		}
		if configuration == nil {
			return nil, append(findings, d.finding("configuration", fmt.Sprintf("cannot use %q", file.Configuration))), nil
		}
	}
	var tests []test
	for i, one := range file.Tests {
		one.Spec.Naming = cmp.Or(one.Spec.Naming, naming)
		made, wrong := readTest(t, d, i, one, sent.Tests[i], &file, configuration, relative)
		tests, findings = append(tests, made), append(findings, wrong...)
	}
	return tests, findings, nil
}

// readTest makes one test ready to run.
func readTest(
	t *terminal, d *document, i int, from testCase, sent []byte, file *testFile, configuration *configurationFile, beside func(string) string,
) (test, []finding) {
	source := *d
	source.prefix = fmt.Sprintf("tests[%d].", i)
	from.Name = cmp.Or(from.Name, fmt.Sprintf("tests[%d]", i))
	var findings []finding
	if (from.Expect == nil) == (from.Error == "") {
		findings = append(findings, source.finding("", "exactly one of expect and error is required"))
	}
	for _, value := range []struct {
		field string
		of    **model.JSON
	}{{"spec.object", &from.Spec.Object}, {"expect", &from.Expect}} {
		var other string
		if *value.of == nil || json.Unmarshal((*value.of).Raw, &other) != nil {
			continue
		}
		documents, wrong := readDocuments(t, beside(other))
		read, wrong := onlyDocument(beside(other), documents, wrong)
		if read == nil {
			findings = append(append(findings, wrong...), source.finding(value.field, fmt.Sprintf("cannot use %q", other)))
			continue
		}
		*value.of = &model.JSON{Raw: read.json}
	}
	prepared := test{testCase: from, offline: offline{source: &source, absent: syncpatch.AbsentPaths(from.Spec.Patches, sent)}}
	spec := &prepared.Spec
	if spec.Context.Tenant.Name == "" && spec.Context.Tenant.Namespace == "" && spec.Context.Tenant.Config == nil {
		spec.Context.Tenant = file.Tenant
	}
	if configuration != nil && len(spec.Patches) == 0 && spec.Configuration == nil {
		prepared.configuration = configuration
		spec.Configuration = &model.JSON{Raw: configuration.json}
		if spec.Resource == "" && spec.Object != nil && len(findings) == 0 {
			object := &document{json: spec.Object.Raw}
			object.recognize()
			var err error
			if spec.Resource, err = configuration.resource("", object.kind); err != nil {
				findings = append(findings, source.finding("spec.object", err.Error()))
			}
		}
	}
	prepared.evaluation.Spec = *spec
	return prepared, findings
}

// run evaluates the patches and compares the result with the expected one.
func (c *test) run(ctx context.Context, workers *worker.Pool) (testResult, error) {
	result := testResult{File: c.source.name, Name: c.Name}
	ok, err := c.evaluate(ctx, workers)
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
			result.Reason = fmt.Sprintf("the patches are refused, but not with %q", c.Error)
		}
	case !ok:
		result.Reason = "the patches are refused"
	case c.Error != "" && status.Error == nil:
		result.Reason = fmt.Sprintf("no error; expected an error with %q", c.Error)
	case c.Error != "":
		if result.Passed = strings.Contains(status.Error.Message, c.Error); !result.Passed {
			result.Reason = fmt.Sprintf("wrong error; expected an error with %q", c.Error)
		}
	case status.Error != nil:
		result.Reason = "unexpected error"
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
			result.Passed, result.Reason, result.Differences = false, "check "+check.Type+" failed: "+check.Reason, check.Differences
		}
	}
	if !result.Passed {
		result.Findings = c.findings
	}
	return result, nil
}

// equal reports whether two JSON texts have the same value.
func equal(a, b *model.JSON) (bool, error) {
	var left, right any
	if err := utiljson.Unmarshal(a.Raw, &left); err != nil {
		return false, err
	}
	err := utiljson.Unmarshal(b.Raw, &right)
	return reflect.DeepEqual(left, right), err
}

func (t *terminal) printResult(result *testResult) {
	if result.Passed {
		_, _ = fmt.Fprintf(t.out, "%s  %s\n", t.paint(green, "ok"), result.Name)
		return
	}
	_, _ = fmt.Fprintf(t.out, "%s  %s: %s\n", t.paint(red, "FAIL"), result.Name, result.Reason)
	t.report(result.Findings)
	t.differences(result.Differences)
	if result.Want != nil {
		t.diff(result.Name+" (want)", result.Want, result.Name+" (got)", result.Got)
	}
}

package syncpatch_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/expression"
)

// patches reads a list of patches.
func patches(t testing.TB, text string) []model.SyncPatch {
	t.Helper()
	var list []model.SyncPatch
	decode(t, text, &list)
	return list
}

// tenant is the context of tests that do not depend on it.
func tenant() syncpatch.Context {
	return syncpatch.Context{Tenant: syncpatch.Tenant{Name: "my-vcluster", Namespace: "my-vcluster-ns"}}
}

// lines prints a trace: outcome, path and reason of each patch, and of its matches below.
func lines(traces []model.SyncPatchTrace) []string {
	var lines []string
	for _, p := range traces {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s", p.Index, p.Outcome, p.Reason)))
		if m := p.Matches; len(m) == 1 && m[0].Path == p.Path && m[0].Reason == p.Reason && m[0].Before == nil && m[0].After == nil {
			continue
		}
		for _, m := range p.Matches {
			line := fmt.Sprintf("  %s %s", m.Path, m.Outcome)
			if m.Before != nil {
				line += " " + string(m.Before.Raw)
			}
			if m.After != nil {
				line += " -> " + string(m.After.Raw)
			}
			if m.Reason != "" {
				line += " (" + m.Reason + ")"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func expectLines(t testing.TB, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, "\n"); text != strings.TrimSpace(want) {
		t.Errorf("the trace is\n%s\nwant\n%s", text, strings.TrimSpace(want))
	}
}

// Each patch sees the result of the earlier ones, and the trace says in one line why a patch did nothing.
// Spec 2.8 rule 1; ADR-0013.
func TestTrace(t *testing.T) {
	t.Parallel()
	result := evaluate(t, syncpatch.Request{
		Context: tenant(),
		Object:  object(t, `{spec: {containers: [{image: a, env: [x, z]}, {name: b}], replicas: 2, none: null}}`),
		Patches: patches(t, `
- {path: 'spec.containers[*].image', expression: '"registry/" + value'}
- {path: 'spec.containers[0].image', expression: 'value + ":1"'}
- {path: 'spec.containers[*].env[*]', expression: 'value === "x" ? null : value'}
- {path: spec.Replicas, expression: '3'}
- {path: spec.replicas, reverseExpression: '3'}
- {path: spec.none, reference: {apiVersion: v1, kind: Secret}}
- {path: spec.containers.1.name, expression: null, labels: null, reference: {apiVersion: v1, kind: Secret}}
- {path: 'spec.containers[1]', expression: '({...value})'}
`),
	})
	expectLines(t, lines(result.Patches), `
0 Applied
  spec.containers.0.image Applied "a" -> "registry/a"
1 Applied
  spec.containers.0.image Applied "registry/a" -> "registry/a:1"
2 Deleted
  spec.containers.0.env.0 Deleted "x"
  spec.containers.0.env.1 Unchanged "z" -> "z" (the expression returned the value unchanged)
3 Skipped nothing matches: spec has no field "Replicas"; did you mean "replicas"?
4 Skipped the patch has no expression, so it does nothing from tenant to host
5 Skipped null refers to nothing
  spec.none Skipped null -> null (null refers to nothing)
6 Applied
  spec.containers.1.name Applied "b" -> "`+names(t, "b")+`"
7 Unchanged the expression returned the value unchanged
  spec.containers.1 Unchanged {"name":"`+names(t, "b")+`"} -> {"name":"`+names(t, "b")+`"} (the expression returned the value unchanged)
`)
	want := object(t, `{spec: {containers: [{image: "registry/a:1", env: [z]}, {name: `+names(t, "b")+`}], replicas: 2, none: null}}`)
	if !reflect.DeepEqual(result.Object, want) {
		t.Errorf("the object is %s", encode(t, result.Object))
	}
}

// names returns the generated name of an object in the namespace default of my-vcluster, from an evaluation of
// its own.
func names(t testing.TB, name string) string {
	t.Helper()
	result := evaluate(t, syncpatch.Request{
		Context: tenant(), Object: map[string]any{"name": name}, Patches: patches(t, `[{path: name, reference: {apiVersion: v1, kind: Secret}}]`),
	})
	generated, _ := result.Object["name"].(string)
	return generated
}

// An error ends the evaluation of the object, names the patch, the concrete path and the position, and the
// object is as it was. ADR-0013.
func TestFailure(t *testing.T) {
	t.Parallel()
	result := evaluate(t, syncpatch.Request{
		Context: tenant(),
		Object:  object(t, `{spec: {a: x, list: [ok, 1, ok], ref: s}}`),
		Patches: patches(t, `
- {path: spec.a, expression: '"y"'}
- {path: spec.ref, reference: {apiVersion: v1, kind: Secret}}
- {path: 'spec.list[*]', expression: "1 +\n  value.toUpperCase()"}
- {path: spec.b, expression: '"y"'}
`),
	})
	if want := object(t, `{spec: {a: x, list: [ok, 1, ok], ref: s}}`); !reflect.DeepEqual(result.Object, want) {
		t.Errorf("the object is %s", encode(t, result.Object))
	}
	e := result.Error
	if e == nil || e.Index != 2 || e.Path != "spec.list.1" || e.Line != 2 || e.Column == 0 || e.Message == "" {
		t.Errorf("the error is %+v", e)
	}
	if len(result.References) != 0 {
		t.Errorf("an object that is not synced needs %v", result.References)
	}
	var outcomes []string
	for _, p := range result.Patches {
		outcomes = append(outcomes, p.Outcome)
	}
	if want := []string{"Applied", "Applied", "Failed", "Skipped"}; !reflect.DeepEqual(outcomes, want) {
		t.Errorf("the outcomes are %v, want %v", outcomes, want)
	}
	if matches := result.Patches[2].Matches; len(matches) != 2 || matches[0].Outcome != model.PatchApplied || matches[1].Outcome != model.PatchFailed || matches[1].Reason == "" {
		t.Errorf("the failed patch has the matches %+v", matches)
	}
	if reason := result.Patches[3].Reason; reason != "patch 2 failed" {
		t.Errorf("the last patch is skipped since %q", reason)
	}
}

func TestWholeObject(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{"null", "undefined", "[]", `"x"`, "1"} {
		result := evaluate(t, syncpatch.Request{
			Object: object(t, `{a: 1}`), Patches: []model.SyncPatch{{Path: "", Expression: expression}},
		})
		if result.Error == nil || !reflect.DeepEqual(result.Object, object(t, `{a: 1}`)) || result.Patches[0].Outcome != model.PatchFailed {
			t.Errorf("%s in place of the object: %+v, %s", expression, result.Error, encode(t, result.Object))
		}
	}
}

// A wildcard below metadata patches everything but the name and the namespace.
func TestNameOfTheObjectStays(t *testing.T) {
	t.Parallel()
	result := evaluate(t, syncpatch.Request{
		Object: object(t, `{metadata: {name: a, namespace: b, uid: c}}`), Patches: patches(t, `[{path: 'metadata[*]', expression: value + "x"}]`),
	})
	if want := object(t, `{metadata: {name: a, namespace: b, uid: cx}}`); !reflect.DeepEqual(result.Object, want) {
		t.Errorf("the object is %s", encode(t, result.Object))
	}
	expectLines(t, lines(result.Patches), `
0 Applied
  metadata.name Skipped (the name and the namespace of the object cannot be patched)
  metadata.namespace Skipped (the name and the namespace of the object cannot be patched)
  metadata.uid Applied "c" -> "cx"
`)
}

func TestDisabled(t *testing.T) {
	t.Parallel()
	result := evaluate(t, syncpatch.Request{Object: object(t, `{a: 1}`), Patches: patches(t, `[{path: a, expression: '2'}]`), Disabled: "not synced"})
	expectLines(t, lines(result.Patches), `0 Skipped not synced`)
}

// Going beyond a limit of the engine is an error that names the limit. ADR-0013.
func TestLimitsOfTheEngine(t *testing.T) {
	t.Parallel()
	many := make([]any, 1000)
	for i := range many {
		many[i] = int64(i)
	}
	list := map[string]any{"list": many}
	t.Run("growth", func(t *testing.T) {
		t.Parallel()
		limits := generous()
		limits.Result = 10_000
		result, err := syncpatch.Evaluate(context.Background(), mustCheck(t, syncpatch.Request{Object: list, Patches: patches(t, `[{path: 'list[*]', expression: '"0123456789".repeat(10)'}]`)}), limits)
		if err != nil || result.Error == nil || result.Error.Message != limits.Exceeded(expression.LimitResult).Message {
			t.Fatalf("%+v, %v", result, err)
		}
		if !reflect.DeepEqual(result.Object, list) {
			t.Error("the object was changed")
		}
	})
	t.Run("what was deleted makes room", func(t *testing.T) {
		t.Parallel()
		limits := generous()
		limits.Result = 10_000
		result, err := syncpatch.Evaluate(context.Background(), mustCheck(t, syncpatch.Request{
			Object:  map[string]any{"gone": strings.Repeat("x", 9_000), "list": many[:100]},
			Patches: patches(t, `[{path: gone, expression: 'null'}, {path: 'list[*]', expression: '"0123456789".repeat(15)'}]`),
		}), limits)
		if err != nil || result.Error != nil {
			t.Fatalf("%+v, %v", result, err)
		}
	})
	t.Run("trace", func(t *testing.T) {
		t.Parallel()
		limits := generous()
		limits.Trace = 2000
		result, err := syncpatch.Evaluate(context.Background(), mustCheck(t, syncpatch.Request{Object: list, Patches: patches(t, `[{path: 'list[*]', expression: 'value + 1'}]`)}), limits)
		if err != nil || result.Error != nil {
			t.Fatalf("%+v, %v", result, err)
		}
		trace := result.Patches[0]
		if trace.Outcome != model.PatchApplied || trace.OmittedMatches == 0 || len(trace.Matches)+int(trace.OmittedMatches) != len(many) {
			t.Errorf("%d matches are listed and %d are not", len(trace.Matches), trace.OmittedMatches)
		}
		if got := result.Object["list"].([]any)[999]; got != int64(1000) {
			t.Errorf("the last element is %v", got)
		}
	})
	t.Run("object", func(t *testing.T) {
		t.Parallel()
		limits := generous()
		limits.Object = 1
		result, err := syncpatch.Evaluate(context.Background(), mustCheck(t, syncpatch.Request{Object: list, Patches: patches(t, `[{path: 'list[*]', expression: 'value + 1'}]`), Checks: []string{model.CheckRoundTrip}}), limits)
		if err != nil || result.Error == nil || result.Error.Message != limits.Exceeded(expression.LimitTotal).Message {
			t.Fatalf("%+v, %v", result, err)
		}
	})
	t.Run("caller", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if result, err := syncpatch.Evaluate(ctx, mustCheck(t, syncpatch.Request{Object: list, Patches: patches(t, `[{path: 'list[*]', expression: 'value + 1'}]`)}), generous()); !errors.Is(err, context.Canceled) {
			t.Fatalf("%+v, %v", result, err)
		}
	})
}

// All problems are reported at once, each at its field. ADR-0013.
func TestInvalidRequest(t *testing.T) {
	t.Parallel()
	request := syncpatch.Request{
		Direction: "Sideways", NamespaceMode: "None", Naming: "None", ClusterDomain: "not a domain", Checks: []string{"RoundTrip", "Roundtrip", "RoundTrip"},
		Context: syncpatch.Context{References: []model.SyncPatchObjectReference{{}}},
		Patches: patches(t, `
- {path: 'a[', expression: 'value +'}
- {path: a}
- {path: '.a', expression: value, reference: {apiVersion: a/b/c, kindPath: 'k[*]', namePath: '.', namespacePath: 'n['}}
- {path: 'metadata["name"]', labels: {}}
- {path: b, expression: 'import("x")', reverseExpression: 'return 1'}
`),
	}
	want := []string{
		"spec.direction", "spec.namespaceMode", "spec.naming", "spec.checks[1]", "spec.checks[2]", "spec.clusterDomain", "spec.object", "spec.context.references[0].name",
		"spec.patches[0].path", "spec.patches[0].expression", "spec.patches[1]",
		"spec.patches[2].path", "spec.patches[2]", "spec.patches[2].reference.apiVersion", "spec.patches[2].reference.kind",
		"spec.patches[2].reference.kindPath", "spec.patches[2].reference.namePath", "spec.patches[2].reference.namespacePath",
		"spec.patches[3].path", "spec.patches[4].expression", "spec.patches[4].reverseExpression",
		"spec.context.tenant.name", "spec.context.tenant.namespace",
	}
	var got []string
	checked, problems := request.Check()
	for _, e := range syncpatch.Errors(problems) {
		got = append(got, e.Field)
	}
	if checked != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the problems are at\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	long := strings.Repeat("x", 1<<20)
	for _, e := range syncpatch.Errors(syncpatch.Check(nil, []model.SyncPatch{{Path: "a[" + long, Expression: long, ReverseExpression: long}})) {
		if text := e.Error(); len(text) > 1000 {
			t.Errorf("the problem at %s has %d bytes", e.Field, len(text))
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	request := syncpatch.Request{Object: object(t, `{}`), Patches: patches(t, `
- {path: a, expression: 'null'}
- {path: 'b[*]', expression: '"x"', reverseExpression: value}
- {path: c, expression: '"x"'}
- {path: 'd[*]', expression: 'context.path'}
`)}
	var got []string
	_, problems := request.Check()
	for _, p := range problems {
		if p.Warning {
			got = append(got, p.Field)
		}
	}
	if want := []string{"spec.patches[0].expression", "spec.patches[1].expression", "spec.patches[3].expression"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the warnings are at %v, want %v", got, want)
	}
	if texts := syncpatch.Warnings(problems); len(texts) != 3 || !strings.HasPrefix(texts[0], "spec.patches[0].expression: ") {
		t.Errorf("the warnings are %q", texts)
	}
}

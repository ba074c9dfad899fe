package syncpatch_test

import (
	"reflect"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// Spec 2.8 rule 2; ADR-0013.
func TestChecks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, direction, patches, object string
		roundTrip, fixpoint              []string
	}{
		{
			name:    "undone",
			patches: `[{path: 'spec.ports[*].name', expression: '"tenant-" + value', reverseExpression: 'value.replace(/^tenant-/, "")'}]`,
			object:  `{spec: {ports: [{name: http}, {port: 80}]}}`,
		},
		{
			name:    "the other direction first",
			patches: `[{path: a, expression: 'value * 2', reverseExpression: 'value / 2'}]`, direction: model.HostToTenant,
			object: `{a: 3}`,
		},
		{
			name:    "a prefix that grows with each round",
			patches: `[{path: 'spec.hosts[*]', expression: '"x" + value'}, {path: spec.a, expression: value}]`, object: `{spec: {hosts: [a, b], a: c}}`,
			roundTrip: []string{`spec.hosts.0 "a" "xa"`, `spec.hosts.1 "b" "xb"`},
			fixpoint:  []string{`spec.hosts.0 "xa" "xxa"`, `spec.hosts.1 "xb" "xxb"`},
		},
		{
			name:    "what is lost is lost once",
			patches: `[{path: 'a["x.y"]', expression: 'value.toLowerCase()'}, {path: b, expression: 'null'}, {path: 'c[*]', expression: 'value > 1 ? null : value'}]`,
			object:  `{a: {x.y: A}, b: {deep: 1}, c: [1, 2, 3]}`,
			roundTrip: []string{
				`a."x.y" "A" "a"`, `b {"deep":1} -`, `c.1 2 -`, `c.2 3 -`,
			},
		},
		{
			name:      "a field that only one direction adds",
			patches:   `[{path: '', expression: '({...value, added: {n: (value.added?.n ?? 0) + 1}})'}]`,
			object:    `{a: 1}`,
			roundTrip: []string{`added - {"n":1}`},
			fixpoint:  []string{`added.n 1 2`},
		},
		{
			name: "references and labels",
			patches: `[{path: ref, reference: {apiVersion: v1, kind: Secret, namePath: name, namespacePath: namespace}},
				{path: metadata.labels, labels: {}}, {path: selector, labels: {}}]`,
			object: `{metadata: {namespace: default, labels: {release: a, app: b}}, ref: {name: my-secret, namespace: apps}, selector: {matchLabels: {release: a}}}`,
		},
		{
			name: "another kind of value", patches: `[{path: a, expression: '[value]'}, {path: b, expression: 'value[0]'}]`, object: `{a: 1, b: [{c: 1}]}`,
			roundTrip: []string{`a 1 [1]`, `b [{"c":1}] {"c":1}`},
			fixpoint:  []string{`a.0 1 [1]`, `b {"c":1} -`},
		},
		{name: "a whole number is the same however it is written", patches: `[{path: a, expression: value}]`, object: `{a: 2.0, b: 1.5}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			result := evaluate(t, syncpatch.Request{
				Direction: test.direction, Context: tenant(), Object: object(t, test.object), Patches: patches(t, test.patches),
				Checks: []string{model.CheckFixpoint, model.CheckRoundTrip},
			})
			if result.Error != nil || len(result.Checks) != 2 {
				t.Fatalf("%+v", result)
			}
			for i, want := range [][]string{test.fixpoint, test.roundTrip} {
				check := result.Checks[i]
				var got []string
				for _, d := range check.Differences {
					side := func(j *model.JSON) string {
						if j == nil {
							return "-"
						}
						return string(j.Raw)
					}
					got = append(got, d.Path+" "+side(d.Want)+" "+side(d.Got))
				}
				if !reflect.DeepEqual(got, want) || check.Passed != (len(want) == 0) || check.Passed != (check.Reason == "") {
					t.Errorf("%s: %v %q\n%s\nwant\n%s", check.Type, check.Passed, check.Reason, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// The way back uses all references of the request, not only the references that were found on the way there.
func TestChecksKnowReferences(t *testing.T) {
	t.Parallel()
	of := tenant()
	of.References = []model.SyncPatchObjectReference{{Name: "key", Namespace: "apps", HostName: "shared-key"}}
	result := evaluate(t, syncpatch.Request{
		Context: of, Object: object(t, `{a: [], b: other}`), Checks: []string{model.CheckRoundTrip},
		Patches: patches(t, `[{path: '[*][*]', reference: {apiVersion: v1, kind: Secret}}, {path: a, expression: '["shared-key"]'}, {path: b, reference: {apiVersion: v1, kind: Secret}}]`),
	})
	if len(result.Checks) != 1 || len(result.Checks[0].Differences) != 1 || result.Checks[0].Differences[0].Path != "a.0" || string(result.Checks[0].Differences[0].Got.Raw) != `"key"` {
		t.Errorf("%+v", result.Checks)
	}
}

// A check that cannot be completed says why.
func TestUnfinishedChecks(t *testing.T) {
	t.Parallel()
	both := []string{model.CheckRoundTrip, model.CheckFixpoint}
	for name, patch := range map[string]string{
		"forward": `[{path: a, expression: value.b.c}]`,
		"back":    `[{path: a, expression: value, reverseExpression: value.b.c}]`,
		"again":   `[{path: a, expression: 'value === 1 ? 2 : value.b.c'}]`,
	} {
		result := evaluate(t, syncpatch.Request{Object: object(t, `{a: 1}`), Patches: patches(t, patch), Checks: both})
		if len(result.Checks) != 2 || result.Checks[1].Passed || result.Checks[1].Reason == "" || result.Checks[1].Differences != nil {
			t.Errorf("%s: %+v", name, result.Checks)
		}
	}
}

// The list of differences is bounded.
func TestManyDifferences(t *testing.T) {
	t.Parallel()
	list := make([]any, 20_000)
	for i := range list {
		list[i] = strings.Repeat("x", 50)
	}
	result := evaluate(t, syncpatch.Request{
		Object: map[string]any{"list": list}, Patches: patches(t, `[{path: list, expression: '[]'}]`), Checks: []string{model.CheckRoundTrip},
	})
	check := result.Checks[0]
	if check.Passed || len(check.Differences) == 0 || len(check.Differences) >= len(list) || !strings.Contains(check.Reason, "not listed") {
		t.Errorf("%d differences are listed, because %s", len(check.Differences), check.Reason)
	}
}

package syncpatch_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// Every sentence of Spec 2.8 that an evaluation can show.
func TestSpecification(t *testing.T) {
	t.Parallel()
	const (
		expression = "2.8 expression: the variable value holds the current value; the expression returns the new value"
		absent     = "2.8 path: if the path is absent from the object the patch is not applied"
		wildcard   = "2.8 path: * applies the patch individually to every matching array or object element"
		key        = `2.8 path: a map key can be written metadata.annotations["<key>"]`
		reverse    = "2.8 reverseExpression: same for host-to-tenant sync"
		rule1      = "2.8 rule 1: without expression, no patch is applied tenant-to-host, and the other way round"
		rule3      = "2.8 rule 3: atob, btoa and virtualToHostDNS"
		rule3Guard = "2.8 rule 3: a value must exist before these are applied"
		rule4      = "2.8 rule 4: ternary and optional chaining; a constant is a quoted string expression"
		rule5      = "2.8 rule 5: context"
		rule6      = "2.8 rule 6: reference"
		fallback   = "2.8 reference: apiVersionPath and kindPath fall back to apiVersion and kind"
		ownSpace   = "2.8 reference: namespacePath defaults to the object's own namespace"
	)
	back, multi := model.HostToTenant, model.MultiNamespace
	for _, test := range []struct {
		sentence, direction, mode, patch, object, want string
	}{
		{expression, "", "", `{path: spec.a, expression: value + 1}`, `{spec: {a: 1}}`, `{spec: {a: 2}}`},
		{absent, "", "", `{path: spec.b, expression: '"new"'}`, `{spec: {a: 1}}`, `{spec: {a: 1}}`},
		{
			wildcard, "", "", `{path: 'spec.containers[*].name', expression: '"my-" + value'}`,
			`{spec: {containers: [{name: a}, {name: b}]}}`, `{spec: {containers: [{name: my-a}, {name: my-b}]}}`,
		},
		{wildcard, "", "", `{path: 'data[*]', expression: btoa(value)}`, `{data: {a: x, b.c: z}}`, `{data: {a: eA==, b.c: eg==}}`},
		{
			key, "", "", `{path: 'metadata.annotations["example.com/key"]', expression: value.toUpperCase()}`,
			`{metadata: {annotations: {example.com/key: a, other: b}}}`, `{metadata: {annotations: {example.com/key: A, other: b}}}`,
		},
		{reverse, back, "", `{path: a, expression: '"tenant"', reverseExpression: '"host"'}`, `{a: b}`, `{a: host}`},
		{rule1, back, "", `{path: a, expression: '"tenant"'}`, `{a: b}`, `{a: b}`},
		{rule1, "", "", `{path: a, reverseExpression: '"host"'}`, `{a: b}`, `{a: b}`},
		{rule3, "", "", `{path: a, expression: atob(value)}`, `{a: bXktdmFsdWU=}`, `{a: my-value}`},
		{rule3, "", "", `{path: a, expression: btoa(value)}`, `{a: my-value}`, `{a: bXktdmFsdWU=}`},
		{
			rule3, "", "", `{path: a, expression: virtualToHostDNS(value)}`, `{a: nginx.default.svc.cluster.local}`,
			`{a: nginx-x-default-x-my-vcluster.my-vcluster-ns.svc.cluster.local}`,
		},
		{rule3Guard, "", "", `{path: '[*]', expression: 'value === null ? value : btoa(value)'}`, `{b: x}`, `{b: eA==}`},
		{rule4, "", "", `{path: a, expression: 'value === "x" ? "y" : "z"'}`, `{a: x}`, `{a: "y"}`},
		{rule4, "", "", `{path: a, expression: 'value.b?.c?.d ?? "none"'}`, `{a: {b: {}}}`, `{a: none}`},
		{rule4, "", "", `{path: a, expression: '"constant"'}`, `{a: x}`, `{a: constant}`},
		{rule5, "", "", `{path: a, expression: '[context.tenant.name, context.tenant.namespace, context.path]'}`, `{a: x}`, `{a: [my-vcluster, my-vcluster-ns, a]}`},
		{rule5, "", "", `{path: a, expression: '[context.hostObject === null, context.virtualObject === null, Object.keys(context.tenant.config)]'}`, `{a: x}`, `{a: [true, true, [sync]]}`},
		{rule5, "", "", `{path: 'a[*].b[*]', expression: context.path}`, `{a: [{b: {c: x}}]}`, `{a: [{b: {c: a.0.b.c}}]}`},
		{rule6, "", "", `{path: a, reference: {apiVersion: v1, kind: Secret}}`, `{metadata: {namespace: default}, a: my-secret}`, `{metadata: {namespace: default}, a: v5ri45ovgqam9c}`},
		{rule6, "", multi, `{path: a, reference: {apiVersion: v1, kind: Secret}}`, `{metadata: {namespace: default}, a: my-secret}`, `{metadata: {namespace: default}, a: my-secret}`},
		{
			fallback, "", "", `{path: a, reference: {apiVersion: v1, kind: Secret, apiVersionPath: api, kindPath: kind, namePath: name}}`,
			`{a: {name: my-secret}}`, `{a: {name: v5ri45ovgqam9c}}`,
		},
		{
			ownSpace, "", "", `{path: a, reference: {apiVersion: v1, kind: Secret, namePath: name, namespacePath: space}}`,
			`{metadata: {namespace: default}, a: {name: my-secret}}`, `{metadata: {namespace: default}, a: {name: v5ri45ovgqam9c}}`,
		},
	} {
		result := evaluate(t, syncpatch.Request{
			Direction: test.direction, NamespaceMode: test.mode, Context: tenant(), Object: object(t, test.object), Patches: patches(t, "["+test.patch+"]"),
		})
		if want := object(t, test.want); result.Error != nil || !reflect.DeepEqual(result.Object, want) {
			t.Errorf("%s\n%s makes %s (%+v), want %s", test.sentence, test.patch, encode(t, result.Object), result.Error, test.want)
		}
	}
}

// Statements, imports and the functions of a host are not supported. Spec 2.8 (expression).
func TestExpressionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		"return value", "if (value) { 1 }", "let a = 1", "value; value", "import x from 'y'", "import('x')", "require('fs')", "console.log(value)",
		"fetch('http://example.com')", "process.exit()", "setTimeout(() => 1)", "eval('1')", "Function('return 1')()", "globalThis", "value +",
	} {
		problems := syncpatch.Errors(syncpatch.Check(field.NewPath("patches"), []model.SyncPatch{{Path: "a", Expression: expression}}))
		if len(problems) != 1 || problems[0].Field != "patches[0].expression" {
			t.Errorf("%q has the problems %v", expression, problems)
		}
	}
}

package syncpatch_test

import (
	"reflect"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// A ruleCase is one reference or labels patch.
type ruleCase struct {
	name          string
	direction     string
	mode          string
	patch         string
	object        string
	virtualObject string
	known         string
	want          string
	references    string
	fails         bool
	outcome       string
}

func (c ruleCase) run(t *testing.T) {
	t.Parallel()
	request := syncpatch.Request{
		Direction: c.direction, NamespaceMode: c.mode, Context: tenant(), Object: object(t, c.object), Patches: patches(t, "["+c.patch+"]"),
	}
	if c.virtualObject != "" {
		request.Context.VirtualObject = object(t, c.virtualObject)
	}
	if c.known != "" {
		decode(t, c.known, &request.Context.References)
	}
	result := evaluate(t, request)
	if c.fails {
		if result.Error == nil || result.Error.Message == "" || !reflect.DeepEqual(result.Object, request.Object) {
			t.Errorf("there is no error, and the object is %s", encode(t, result.Object))
		}
		return
	}
	if result.Error != nil {
		t.Fatalf("%+v", result.Error)
	}
	if want := object(t, c.want); !reflect.DeepEqual(result.Object, want) {
		t.Errorf("the object is %s, want %s", encode(t, result.Object), c.want)
	}
	if c.references != "" {
		var want []model.SyncPatchObjectReference
		decode(t, c.references, &want)
		if len(want)+len(result.References) > 0 && !reflect.DeepEqual(result.References, want) {
			t.Errorf("the references are %+v, want %+v", result.References, want)
		}
	}
	if got := result.Patches[0]; c.outcome != "" && (got.Outcome != c.outcome || got.Outcome != model.PatchApplied && got.Reason == "") {
		t.Errorf("the outcome is %s because %q, want %s", got.Outcome, got.Reason, c.outcome)
	}
}

const (
	secretAt = `{path: ref, reference: {apiVersion: v1, kind: Secret, namePath: name, namespacePath: namespace}}`
	secret   = `{path: ref, reference: {apiVersion: v1, kind: Secret}}`
	anyKind  = `{path: 'refs[*]', reference: {apiVersion: v1, kind: Secret, apiVersionPath: api, kindPath: kind, namePath: 'to["the.name"]'}}`
)

// Spec 2.8 (reference), rule 6; ADR-0013.
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []ruleCase{
		{
			name: "name and namespace", patch: secretAt,
			object:     `{metadata: {namespace: other}, ref: {name: my-secret, namespace: default, key: k}}`,
			want:       `{metadata: {namespace: other}, ref: {name: v5ri45ovgqam9c, namespace: my-vcluster-ns, key: k}}`,
			references: `[{apiVersion: v1, kind: Secret, name: my-secret, namespace: default, hostName: v5ri45ovgqam9c, hostNamespace: my-vcluster-ns}]`,
			outcome:    model.PatchApplied,
		},
		{
			name: "the object has no namespace", patch: secret, object: `{ref: my-secret}`, want: `{ref: v5ri45ovgqam9c}`,
			references: `[{apiVersion: v1, kind: Secret, name: my-secret, namespace: default, hostName: v5ri45ovgqam9c, hostNamespace: my-vcluster-ns}]`,
		},
		{
			name: "the namespace is empty", patch: secretAt,
			object: `{metadata: {namespace: default}, ref: {name: my-secret, namespace: ""}}`,
			want:   `{metadata: {namespace: default}, ref: {name: v5ri45ovgqam9c, namespace: ""}}`,
		},
		{
			name: "kind and apiVersion of the value, each referent once", patch: anyKind,
			object: `{refs: [{kind: Gateway, api: gateway.networking.k8s.io/v1, to: {the.name: nginx}}, {to: {the.name: nginx}}, {to: {the.name: nginx}}, {to: {}}, {}]}`,
			want: `{refs: [{kind: Gateway, api: gateway.networking.k8s.io/v1, to: {the.name: ` + nginx + `}}, {to: {the.name: ` + nginx +
				`}}, {to: {the.name: ` + nginx + `}}, {to: {}}, {}]}`,
			references: `[{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: nginx, namespace: default, hostName: ` + nginx + `, hostNamespace: my-vcluster-ns},
				{apiVersion: v1, kind: Secret, name: nginx, namespace: default, hostName: ` + nginx + `, hostNamespace: my-vcluster-ns}]`,
		},
		{name: "an empty name", patch: secret, object: `{ref: ""}`, want: `{ref: ""}`, references: `[]`, outcome: model.PatchSkipped},
		{name: "null", patch: secretAt, object: `{ref: null}`, want: `{ref: null}`, references: `[]`, outcome: model.PatchSkipped},
		{name: "no name", patch: secretAt, object: `{ref: {key: k}}`, want: `{ref: {key: k}}`, references: `[]`, outcome: model.PatchSkipped},
		{name: "a number as name", patch: secret, object: `{ref: 1}`, fails: true},
		{name: "an object without namePath", patch: secret, object: `{ref: {name: a}}`, fails: true},
		{name: "a string with namePath", patch: secretAt, object: `{ref: a}`, fails: true},
		{name: "a list at namePath", patch: secretAt, object: `{ref: {name: [a]}}`, fails: true},
		{
			name: "namespaces of their own", mode: model.MultiNamespace, patch: secretAt,
			object:     `{ref: {name: my-secret, namespace: default}}`,
			want:       `{ref: {name: my-secret, namespace: default}}`,
			references: `[{apiVersion: v1, kind: Secret, name: my-secret, namespace: default, hostName: my-secret, hostNamespace: default}]`,
			outcome:    model.PatchUnchanged,
		},
		{
			name: "back", direction: model.HostToTenant, patch: secretAt,
			known:      `[{kind: Secret, name: other}, {kind: Secret, name: my-secret, namespace: default}]`,
			object:     `{ref: {name: v5ri45ovgqam9c, namespace: my-vcluster-ns}}`,
			want:       `{ref: {name: my-secret, namespace: default}}`,
			references: `[{apiVersion: v1, kind: Secret, name: my-secret, namespace: default, hostName: v5ri45ovgqam9c, hostNamespace: my-vcluster-ns}]`,
		},
		{
			name: "back from the long form, in the namespace of the tenant's object", direction: model.HostToTenant, patch: secret,
			known: `[{name: my-secret}]`, virtualObject: `{metadata: {namespace: apps}}`,
			object: `{metadata: {namespace: my-vcluster-ns}, ref: my-secret-x-apps-x-my-vcluster}`,
			want:   `{metadata: {namespace: my-vcluster-ns}, ref: my-secret}`,
		},
		{
			name: "back by the name on the host", direction: model.HostToTenant, patch: secret,
			known:  `[{apiVersion: apps/v1, name: wrong-group, hostName: shared}, {kind: ConfigMap, name: wrong-kind, hostName: shared}, {apiVersion: v1, kind: Secret, name: mine, hostName: shared}]`,
			object: `{ref: shared}`, want: `{ref: mine}`,
		},
		{
			name: "back, in another namespace of the host", direction: model.HostToTenant, patch: secretAt,
			known:  `[{name: a, hostName: shared, hostNamespace: one}, {name: b, hostName: shared, hostNamespace: two}]`,
			object: `{ref: {name: shared, namespace: two}}`, want: `{ref: {name: b, namespace: default}}`,
		},
		{name: "back, not known", direction: model.HostToTenant, patch: secret, known: `[{name: other}]`, object: `{ref: v5ri45ovgqam9c}`, fails: true},
		{
			name: "back, namespaces of their own", direction: model.HostToTenant, mode: model.MultiNamespace, patch: secret,
			object: `{ref: a}`, want: `{ref: a}`, outcome: model.PatchUnchanged,
		},
	} {
		t.Run(c.name, c.run)
	}
}

// nginx is the generated name of nginx, default, my-vcluster; computed without this code.
const nginx = "v5524qrl7ii9qr"

// The digests of the reserved keys, computed without this code: release, namespace, managed-by and
// controlled-by, each of the whole key.
const (
	release      = "platform.sh/label-my-vcluster-x-a4d451ec23"
	namespace    = "platform.sh/label-my-vcluster-x-5566203e75"
	managedBy    = "platform.sh/label-my-vcluster-x-3ef43adcbc"
	controlledBy = "platform.sh/label-my-vcluster-x-8e39da7eb2"
)

// Spec 2.8 (labels); ADR-0013.
func TestLabels(t *testing.T) {
	t.Parallel()
	const labels = `{path: at, labels: {}}`
	const markers = `platform.sh/managed-by: my-vcluster, platform.sh/namespace: default`
	const in = `metadata: {namespace: default}`
	for _, c := range []ruleCase{
		{
			name: "every reserved key", patch: labels, outcome: model.PatchApplied,
			object: `{` + in + `, at: {release: a, platform.sh/namespace: b, platform.sh/managed-by: c, platform.sh/controlled-by: d, app: e}}`,
			want:   `{` + in + `, at: {` + release + `: a, ` + namespace + `: b, ` + managedBy + `: c, ` + controlledBy + `: d, app: e, ` + markers + `}}`,
		},
		{
			name: "every reserved key, back", direction: model.HostToTenant, patch: labels,
			object: `{at: {` + release + `: a, ` + namespace + `: b, ` + managedBy + `: c, ` + controlledBy + `: d, app: e, ` + markers + `}}`,
			want:   `{at: {release: a, platform.sh/namespace: b, platform.sh/managed-by: c, platform.sh/controlled-by: d, app: e}}`,
		},
		{name: "no labels", patch: labels, object: `{` + in + `, at: {}}`, want: `{` + in + `, at: {` + markers + `}}`},
		{
			name: "an object of the cluster", patch: labels,
			object: `{metadata: {name: a}, at: {app: b}}`, want: `{metadata: {name: a}, at: {app: b, platform.sh/managed-by: my-vcluster-ns-x-my-vcluster}}`,
		},
		{
			name: "a label that another tenant translated", patch: labels,
			object: `{` + in + `, at: {platform.sh/label-other-x-a4d451ec23: a}}`,
			want:   `{` + in + `, at: {platform.sh/label-other-x-a4d451ec23: a, ` + markers + `}}`,
		},
		{
			name: "a selector", patch: labels,
			object: `{` + in + `, at: {matchLabels: {release: a, app: b}, matchExpressions: [{key: platform.sh/managed-by, operator: In, values: [release]}]}}`,
			want:   `{` + in + `, at: {matchLabels: {` + release + `: a, app: b}, matchExpressions: [{key: ` + managedBy + `, operator: In, values: [release]}]}}`,
		},
		{
			name: "a selector, back", direction: model.HostToTenant, patch: labels,
			object: `{at: {matchLabels: {` + release + `: a, platform.sh/managed-by: b}, matchExpressions: [{key: ` + managedBy + `, operator: Exists}]}}`,
			want:   `{at: {matchLabels: {release: a, platform.sh/managed-by: b}, matchExpressions: [{key: platform.sh/managed-by, operator: Exists}]}}`,
		},
		{name: "a selector of nothing", patch: labels, object: `{at: {matchLabels: null, matchExpressions: []}}`, want: `{at: {matchLabels: null, matchExpressions: []}}`, outcome: model.PatchUnchanged},
		{name: "null", patch: labels, object: `{at: null}`, want: `{at: null}`, outcome: model.PatchSkipped},
		{name: "a string", patch: labels, object: `{at: release}`, fails: true},
		{name: "a list", patch: labels, object: `{at: [release]}`, fails: true},
		{name: "an object as label", patch: labels, object: `{at: {app: {}}}`, fails: true},
		{name: "matchLabels of another kind", patch: labels, object: `{at: {matchLabels: []}}`, fails: true},
		{name: "matchExpressions of another kind", patch: labels, object: `{at: {matchExpressions: {}}}`, fails: true},
		{name: "a requirement without key", patch: labels, object: `{at: {matchExpressions: [{operator: In}]}}`, fails: true},
		{name: "a requirement of another kind", patch: labels, object: `{at: {matchExpressions: [release]}}`, fails: true},
		{
			name: "namespaces of their own", mode: model.MultiNamespace, patch: labels, object: `{at: {release: a}}`, want: `{at: {release: a}}`, outcome: model.PatchSkipped,
		},
	} {
		t.Run(c.name, c.run)
	}
}

package syncpatch_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// A ruleCase is one reference or labels patch.
type ruleCase struct {
	name          string
	direction     string
	mode          string
	naming        string
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
		Direction: c.direction, NamespaceMode: c.mode, Naming: c.naming, Context: tenant(), Object: object(t, c.object), Patches: patches(t, "["+c.patch+"]"),
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

// The names and labels of the naming vcluster, where it is not the vectors that show them. ADR-0048.
func TestVCluster(t *testing.T) {
	t.Parallel()
	const (
		class    = `{path: ref, reference: {apiVersion: storage.k8s.io/v1, kind: StorageClass, namePath: name, namespacePath: namespace}}`
		node     = `{path: ref, reference: {apiVersion: v1, kind: Node}}`
		nodes    = `{path: ref, reference: {apiVersion: v1, kind: Node, namePath: name, namespacePath: namespace}}`
		claim    = `{path: ref, reference: {apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim}}`
		space    = `{path: ref, reference: {apiVersion: v1, kind: Namespace}}`
		service  = `{path: ref, reference: {apiVersion: v1, kind: Service}}`
		selector = `{path: at, labels: {}}`
		onHost   = `my-secret-x-default-x-my-vcluster`
	)
	for _, c := range []ruleCase{
		{
			name: "name and namespace", patch: secretAt, outcome: model.PatchApplied,
			object:     `{metadata: {namespace: other}, ref: {name: my-secret, namespace: default, key: k}}`,
			want:       `{metadata: {namespace: other}, ref: {name: ` + onHost + `, namespace: my-vcluster-ns, key: k}}`,
			references: `[{apiVersion: v1, kind: Secret, name: my-secret, namespace: default, hostName: ` + onHost + `, hostNamespace: my-vcluster-ns}]`,
		},
		{
			name: "a cluster-scoped kind has no namespace", patch: class, outcome: model.PatchApplied,
			object: `{ref: {name: fast, namespace: any}}`, want: `{ref: {name: vcluster-fast-x-my-vcluster-ns-x-my-vcluster, namespace: any}}`,
			references: `[{apiVersion: storage.k8s.io/v1, kind: StorageClass, name: fast, hostName: vcluster-fast-x-my-vcluster-ns-x-my-vcluster}]`,
		},
		{
			name: "a cluster-scoped kind, back", direction: model.HostToTenant, patch: class, known: `[{kind: StorageClass, name: fast}]`,
			object: `{ref: {name: vcluster-fast-x-my-vcluster-ns-x-my-vcluster, namespace: any}}`, want: `{ref: {name: fast, namespace: any}}`,
			references: `[{apiVersion: storage.k8s.io/v1, kind: StorageClass, name: fast, hostName: vcluster-fast-x-my-vcluster-ns-x-my-vcluster}]`,
		},
		{
			name: "a kind of another group", patch: `{path: ref, reference: {apiVersion: example.com/v1, kind: StorageClass}}`,
			object: `{ref: fast}`, want: `{ref: fast-x-default-x-my-vcluster}`,
		},
		{
			name: "a kind that comes from the host", patch: nodes, outcome: model.PatchUnchanged,
			object: `{ref: {name: worker, namespace: any}}`, want: `{ref: {name: worker, namespace: any}}`,
			references: `[{apiVersion: v1, kind: Node, name: worker, hostName: worker}]`,
		},
		{name: "a kind that comes from the host, back", direction: model.HostToTenant, patch: node, object: `{ref: worker}`, want: `{ref: worker}`, outcome: model.PatchUnchanged},
		{name: "the short form", patch: claim, object: `{ref: my-secret}`, want: `{ref: v5ri45ovgqam9c}`},
		{name: "the short form, back", direction: model.HostToTenant, patch: claim, known: `[{name: my-secret}]`, object: `{ref: v5ri45ovgqam9c}`, want: `{ref: my-secret}`},
		{name: "a form that the kind does not have, back", direction: model.HostToTenant, patch: secret, known: `[{name: my-secret}]`, object: `{ref: v5ri45ovgqam9c}`, fails: true},
		{name: "a name on the host that is given, back", direction: model.HostToTenant, patch: secret, known: `[{name: my-secret, hostName: v5ri45ovgqam9c}]`, object: `{ref: v5ri45ovgqam9c}`, want: `{ref: my-secret}`},
		{
			name: "all namespaces are one", patch: space, object: `{ref: shop}`, want: `{ref: my-vcluster-ns}`,
			references: `[{apiVersion: v1, kind: Namespace, name: shop, hostName: my-vcluster-ns}]`,
		},
		{name: "which namespace, back", direction: model.HostToTenant, patch: space, known: `[{name: shop}]`, object: `{ref: my-vcluster-ns}`, fails: true},
		{name: "the service of the API server", patch: service, object: `{ref: kubernetes}`, want: `{ref: my-vcluster}`},
		{name: "the service of the API server, back", direction: model.HostToTenant, patch: service, known: `[{name: kubernetes}]`, object: `{ref: my-vcluster}`, want: `{ref: kubernetes}`},
		{name: "another kind of its name", patch: secret, object: `{ref: kubernetes}`, want: `{ref: kubernetes-x-default-x-my-vcluster}`},
		{
			name: "names of services", patch: `{path: 'at[*]', expression: virtualToHostDNS(value)}`, object: `{at: [kubernetes.default.svc, kubernetes.shop.svc]}`,
			want: `{at: [my-vcluster.my-vcluster-ns.svc.cluster.local, kubernetes-x-shop-x-my-vcluster.my-vcluster-ns.svc.cluster.local]}`,
		},
		{name: "context.vcluster is context.tenant", patch: `{path: at, expression: '[context.vcluster.name, context.vcluster.namespace, context.tenant.name]'}`, object: `{at: 1}`, want: `{at: [my-vcluster, my-vcluster-ns, my-vcluster]}`},
		{name: "namespaces of their own", mode: model.MultiNamespace, patch: secret, object: `{ref: a}`, want: `{ref: a}`, outcome: model.PatchUnchanged},
		{name: "labels in namespaces of their own", mode: model.MultiNamespace, patch: selector, object: `{at: {release: a}}`, want: `{at: {release: a}}`, outcome: model.PatchSkipped},
		{
			name: "a selector", patch: selector,
			object: `{at: {matchLabels: {release: a}, matchExpressions: [{key: vcluster.loft.sh/namespace, operator: Exists}]}}`,
			want:   `{at: {matchLabels: {vcluster.loft.sh/label-my-vcluster-x-a4d451ec23: a}, matchExpressions: [{key: vcluster.loft.sh/label-my-vcluster-x-101dcd4e86, operator: Exists}]}}`,
		},
		{
			name: "labels that belong to the host", direction: model.HostToTenant, patch: selector,
			object: `{at: {app: a, vcluster.loft.sh/ns-label-x: b, vcluster.loft.sh/managed-by: c, platform.sh/managed-by: d}}`, want: `{at: {app: a, platform.sh/managed-by: d}}`,
		},
	} {
		c.naming = model.NamingVCluster
		t.Run(c.name, c.run)
	}
}

// A vcluster patch needs the inputs of its names, and a naming is one of two. ADR-0048.
func TestNamingIsChecked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ naming, mode, patch, want string }{
		{"VCluster", "", `{path: a, expression: value}`, "spec.naming"},
		{model.NamingVCluster, "", `{path: a, expression: value}`, ""},
		{model.NamingVCluster, "", secret, "spec.context.tenant.name spec.context.tenant.namespace"},
		{model.NamingVCluster, "", `{path: a, labels: {}}`, "spec.context.tenant.name spec.context.tenant.namespace"},
		{model.NamingVCluster, "", secretAt, "spec.context.tenant.name spec.context.tenant.namespace"},
		{model.NamingVCluster, model.MultiNamespace, secret, ""},
		{model.NamingNeutral, "", secret, "spec.context.tenant.name"},
	} {
		_, problems := syncpatch.Request{Naming: test.naming, NamespaceMode: test.mode, Object: object(t, "{}"), Patches: patches(t, "["+test.patch+"]")}.Check()
		var fields []string
		for _, e := range syncpatch.Errors(problems) {
			fields = append(fields, e.Field)
		}
		if got := strings.Join(fields, " "); got != test.want {
			t.Errorf("%s with the naming %s has errors at %q, want %q", test.patch, test.naming, got, test.want)
		}
	}
}

// An expression of the naming vcluster says what is missing with the other naming. ADR-0048.
func TestVClusterIsUndefined(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{"context.vcluster.name": true, "value.a.b": false, "context.vcluster?.name ?? value.a.b": true} {
		result := evaluate(t, syncpatch.Request{Context: tenant(), Object: object(t, "{at: {}}"), Patches: []model.SyncPatch{{Path: "at", Expression: expression}}})
		if result.Error == nil || strings.Contains(result.Error.Message, "context.tenant") != want || result.Error.Line != 1 {
			t.Errorf("%s: %+v", expression, result.Error)
		}
	}
}

// vector is a line of testdata/vcluster.jsonl. The module test/vcluster makes the file with the translator of vcluster.
type vector struct {
	Form, VirtualCluster, HostNamespace string
	APIVersion, Kind, Name, Namespace   string
	Want                                string
	Labels, WantLabels                  map[string]any
}

// Names and labels equal the results of the real translator. Source: ADR-0048.
func TestVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/vcluster.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range bytes.Lines(text) {
		v := vector{Labels: map[string]any{}, WantLabels: map[string]any{}}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		seen[v.Form]++
		if v.Form == "name" {
			v.checkName(t)
		} else {
			v.checkLabels(t)
		}
	}
	if want := map[string]int{"name": 1000, "labels": 100, "labels-back": 100, "selector": 100}; !maps.Equal(seen, want) {
		t.Errorf("there are %v, want %v", seen, want)
	}
}

func (v *vector) request() syncpatch.Request {
	object := map[string]any{"metadata": map[string]any{"namespace": v.Namespace}}
	return syncpatch.Request{
		Naming: model.NamingVCluster, Object: object,
		Context: syncpatch.Context{Tenant: syncpatch.Tenant{Name: v.VirtualCluster, Namespace: v.HostNamespace}, VirtualObject: object},
	}
}

func (v *vector) checkName(t *testing.T) {
	t.Helper()
	request := v.request()
	request.Patches = []model.SyncPatch{{Path: "ref", Reference: &model.SyncPatchReference{APIVersion: v.APIVersion, Kind: v.Kind}}}
	request.Object["ref"] = v.Name
	if got := evaluate(t, request).Object["ref"]; got != v.Want {
		t.Errorf("%s %s/%s of %s in %s is %v on the host, want %s", v.Kind, v.Namespace, v.Name, v.VirtualCluster, v.HostNamespace, got, v.Want)
	}
	if v.Kind == "Namespace" {
		return // A namespace of the host stands for many.
	}
	request.Direction = model.HostToTenant
	request.Object["ref"] = v.Want
	request.Context.References = []model.SyncPatchObjectReference{{Name: v.Name, Namespace: v.Namespace}}
	if result := evaluate(t, request); result.Error != nil || result.Object["ref"] != v.Name {
		t.Errorf("%s on the host is %s in the tenant cluster (%+v), want %s", v.Want, result.Object["ref"], result.Error, v.Name)
	}
}

func (v *vector) checkLabels(t *testing.T) {
	t.Helper()
	request := v.request()
	request.Patches = []model.SyncPatch{{Path: "at", Labels: &model.SyncPatchLabels{}}}
	labels, want := any(v.Labels), any(v.WantLabels)
	switch v.Form {
	case "labels-back":
		request.Direction = model.HostToTenant
	case "selector":
		labels, want = map[string]any{"matchLabels": v.Labels}, map[string]any{"matchLabels": v.WantLabels}
	}
	request.Object["at"] = labels
	if got := evaluate(t, request).Object["at"]; !reflect.DeepEqual(got, want) {
		t.Errorf("%s %s of %s in %s are %s on the other side, want %s", v.Form, encode(t, labels), v.VirtualCluster, v.HostNamespace, encode(t, got), encode(t, want))
	}
}

package syncpatch_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/syncpatch"
)

// formatProblems shows each problem in a line: position, field, and whether it is a warning.
func formatProblems(problems []syncpatch.Problem) string {
	var lines []string
	for _, p := range problems {
		line := fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Field)
		if p.Warning {
			line += " (warning)"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// All problems are found at once, each with its position. Spec 2.8; ADR-0013.
func TestConfigurationProblems(t *testing.T) {
	t.Parallel()
	_, problems := syncpatch.ReadConfiguration(t.Context(), nil, []byte(`controlPlane: {patches: 1}
sync:
  toHost:
    endpoints:
      enabled: maybe
      patches:
        - path: subsets[
          expression: value +
        - path: subsets[*].addresses[*].ip
          expression: null
        - path: metadata.labels
          labels:
        - path: .metadata["labels"]
          labels: {on: true}
        - expression: value
          extra: 1
          path: spec.a
          path: spec.b
        - reference: {apiVersion: 1, kind: Secret, nameKey: x}
        - text
    pod:
      enabled: true
    secrets:
      patches: {}
    ingresses:
      patches:
        - path: spec.rules[*].host
          expression: '"all.example.com"'
    gatewayApi:
      enabled: true
      httpRoutes:
        enabled: false
        patches:
          - path: spec.a
            expression: "null"
    customResources:
      plain: {}
      certificates.cert-manager.io/v1:
        scope: Namespaced
        patches: [{path: spec.secretName}]
  fromHost:
    nodes:
      enabled: true
      patches:
        - path: status.capacity.cpu
          expression: '"0"'
          reverseExpression: value
    secrets:
      enabled: true
      patches: [{path: data.a, expression: value}]
  tohost:
    pods: {}
`))
	const want = `
5:16 sync.toHost.endpoints.enabled
7:17 sync.toHost.endpoints.patches[0].path
8:23 sync.toHost.endpoints.patches[0].expression
10:23 sync.toHost.endpoints.patches[1].expression
12:18 sync.toHost.endpoints.patches[2].labels
13:17 sync.toHost.endpoints.patches[3].path
14:24 sync.toHost.endpoints.patches[3].labels.on
16:18 sync.toHost.endpoints.patches[4].extra
18:17 sync.toHost.endpoints.patches[4].path
19:11 sync.toHost.endpoints.patches[5].path
19:35 sync.toHost.endpoints.patches[5].reference.apiVersion
19:61 sync.toHost.endpoints.patches[5].reference.nameKey
20:11 sync.toHost.endpoints.patches[6]
21:5 sync.toHost.pod
24:16 sync.toHost.secrets.patches
26:7 sync.toHost.ingresses.patches (warning)
28:23 sync.toHost.ingresses.patches[0].expression (warning)
33:9 sync.toHost.gatewayApi.httpRoutes.patches (warning)
35:25 sync.toHost.gatewayApi.httpRoutes.patches[0].expression (warning)
37:14 sync.toHost.customResources[plain]
40:19 sync.toHost.customResources[certificates.cert-manager.io/v1].patches[0]
47:30 sync.fromHost.nodes.patches[0].reverseExpression (warning)
50:44 sync.fromHost.secrets.patches[0].expression (warning)
51:3 sync.tohost (warning)`
	if got := formatProblems(problems); got != strings.TrimSpace(want) {
		t.Errorf("the problems are\n%s\nwant%s", got, want)
	}
}

// Patches of a resource that is not synced are a warning. An explicit false skips the patches. Spec 2.8 (enabled); ADR-0013.
func TestConfigurationEnabled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		resource, enabled string
		skipped, warned   bool
	}{
		{"endpoints", "", false, false},
		{"endpoints", "enabled: null,", false, false},
		{"endpoints", "enabled: true,", false, false},
		{"endpoints", "enabled: false,", true, true},
		{"endpoints", "enabled: no,", true, true},
		{"endpoints", "enabled: Off,", true, true},
		{"configMaps", "", false, false},
		{"ingresses", "", false, true},
		{"ingresses", "enabled: yes,", false, false},
		{"ingresses", "enabled: ON,", false, false},
		{"ingresses", "enabled: auto,", false, false},
		{"ingresses", "enabled: true,", false, false},
		{"ingresses", "enabled: false,", true, true},
		{"customResources.a.example.com", "", false, false},
		{"customResources.a.example.com", "enabled: true,", false, false},
		{"customResources.a.example.com", "enabled: false,", true, true},
	} {
		entry := test.resource + ": {" + test.enabled + " patches: [{path: spec.a, expression: value}]}"
		if definition, isCustom := strings.CutPrefix(entry, "customResources."); isCustom {
			entry = "customResources: {" + definition + "}"
		}
		configuration, problems := syncpatch.ReadConfiguration(t.Context(), nil, []byte("sync: {toHost: {"+entry+"}}"))
		_, disabled, _ := configuration.Patches(nil, test.resource)
		if len(syncpatch.Errors(problems)) > 0 || (len(problems) > 0) != test.warned || (disabled != "") != test.skipped {
			t.Errorf("%s: skipped because %q, problems %v", entry, disabled, problems)
		}
	}
}

// Spec 2.8 (enabled, patches); ADR-0013.
func TestConfigurationPatches(t *testing.T) {
	t.Parallel()
	configuration, problems := syncpatch.ReadConfiguration(t.Context(), nil, []byte(`
patch: &patch {path: spec.a, expression: value}
sync:
  toHost:
    endpoints: {patches: [*patch]}
    services: {enabled: false, patches: [{<<: *patch, path: spec.b}]}
    secrets: {patches: [{path: data.to, expression: value}]}
    gatewayApi:
      enabled: true
      patches: [{path: spec.own, expression: value}]
      httpRoutes: {enabled: true, patches: [{path: spec.route, expression: value}]}
    customResources:
      issuers.cert-manager.io: {enabled: true, patches: [{path: spec.ca, expression: value}]}
  fromHost:
    secrets: {enabled: true, patches: [{path: data.from, reverseExpression: value}]}
    ingressClasses: {enabled: true, patches: [{path: spec.class, reverseExpression: value}]}
    priorityClasses: {enabled: true, patches: [{path: value, reverseExpression: value}]}
    customResources:
      backups.example.com/v1: {patches: [{path: spec.backup, reverseExpression: value}]}
    nodes: {enabled: auto, patches: [{path: status.node, reverseExpression: value}]}
    events:
`))
	if len(syncpatch.Errors(problems)) > 0 || len(problems) != 1 {
		t.Errorf("the problems are\n%s", formatProblems(problems))
	}
	for _, test := range []struct {
		resource, path string
		disabled       bool
	}{
		{"endpoints", "spec.a", false},
		{"toHost.endpoints", "spec.a", false},
		{"services", "spec.b", true},
		{"secrets", "data.to", false},
		{"fromHost.secrets", "data.from", false},
		{"nodes", "status.node", false},
		{"priorityClasses", "value", false},
		{"toHost.priorityClasses", "", false},
		{"customResources.backups.example.com/v1", "spec.backup", false},
		{"gatewayApi", "spec.own", false},
		{"gatewayApi.httpRoutes", "spec.route", false},
		{"customResources.issuers.cert-manager.io", "spec.ca", false},
		{"pods", "", false},
		{"events", "", false},
		{"customResources.other.example.com/v1", "", false},
	} {
		patches, disabled, unknown := configuration.Patches(field.NewPath("spec", "resource"), test.resource)
		var path string
		if len(patches) > 0 {
			path = patches[0].Path
		}
		if unknown != nil || path != test.path || (disabled != "") != test.disabled {
			t.Errorf("%s has %v, disabled because %q (%v)", test.resource, patches, disabled, unknown)
		}
	}
	for _, name := range []string{"", "pod", "toHost.nodes", "fromHost", "customResources", "customResources.plain", "gatewayApi.routes"} {
		if patches, _, unknown := configuration.Patches(field.NewPath("spec", "resource"), name); unknown == nil || unknown.Field != "spec.resource" {
			t.Errorf("%q has %v (%v)", name, patches, unknown)
		}
	}
	want := []string{
		"fromHost.customResources.backups.example.com/v1", "fromHost.events", "fromHost.ingressClasses", "fromHost.nodes",
		"fromHost.priorityClasses", "fromHost.secrets", "toHost.customResources.issuers.cert-manager.io", "toHost.endpoints",
		"toHost.gatewayApi", "toHost.gatewayApi.httpRoutes", "toHost.secrets", "toHost.services",
	}
	if got := configuration.Resources(); !reflect.DeepEqual(got, want) {
		t.Errorf("the resources are %v", got)
	}
}

func TestConfigurationForms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "null", "{}", "sync:", "sync: {toHost: null}", "# nothing", `{"sync":{"toHost":{"endpoints":{}}}}`} {
		if configuration, problems := syncpatch.ReadConfiguration(t.Context(), nil, []byte(text)); configuration == nil || len(problems) > 0 {
			t.Errorf("%q has the problems %v", text, problems)
		}
	}
	for _, text := range []string{
		"[", "sync: [a]", "text", "sync: {toHost: {endpoints: []}}", "a: &a {b: *a}\nsync: {toHost: *c}", "sync: {toHost: {endpoints: {patches: [{path: a, expression: value, path: b}]}}}",
		`sync: {toHost: {endpoints: {enabled: "yes"}}}`, `{"sync": {"toHost": {"endpoints": {"enabled": "off"}}}}`, "sync: {toHost: {endpoints: {patches: [{path: on, expression: value}]}}}",
	} {
		if _, problems := syncpatch.ReadConfiguration(t.Context(), field.NewPath("spec", "configuration"), []byte(text)); len(problems) == 0 || !strings.HasPrefix(problems[0].Field, "spec.configuration") {
			t.Errorf("%q has the problems %v", text, problems)
		}
	}
	many := `sync: {toHost: {endpoints: {patches: [` + strings.Repeat(`{"path": "a", "expression": "value"},`, 1001) + `]}}}`
	if _, problems := syncpatch.ReadConfiguration(t.Context(), nil, []byte(many)); len(problems) != 1 {
		t.Errorf("%d problems of too many patches", len(problems))
	}
}

// No configuration crashes the reader, and patches that are read without a problem pass Check.
func FuzzConfiguration(f *testing.F) {
	f.Add("sync: {toHost: {endpoints: {patches: [{path: 'a[*]', expression: value}]}}}")
	f.Add("a: &a [*a]\nsync: {toHost: {<<: {pods: {}}, customResources: {a.b/v1: }}}")
	f.Add("a: &a {<<: *a, sync: *a}\n")
	f.Add(`{"sync":{"fromHost":{"nodes":{"enabled":"auto","patches":[{"path":"","labels":{}},{"path":"b","reference":{"apiVersion":"v1","kind":"Node"}}]}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		configuration, problems := syncpatch.ReadConfiguration(t.Context(), nil, []byte(text))
		if configuration == nil || len(syncpatch.Errors(problems)) > 0 {
			return
		}
		for _, name := range configuration.Resources() {
			patches, _, unknown := configuration.Patches(nil, name)
			if unknown != nil || len(syncpatch.Errors(syncpatch.Check(nil, patches))) > 0 {
				t.Fatalf("%s has %v (%v)", name, patches, unknown)
			}
		}
	})
}

package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/model"
)

// patchFiles are files that the tests of patch commands read.
var patchFiles = map[string]string{
	"vcluster.yaml": `sync:
  toHost:
    pods:
      patches:
      - path: spec.image
        expression: '"registry/" + value'
        reverseExpression: value.slice("registry/".length)
    customResources:
      backups.example.com/v1:
        enabled: true
        patches:
        - path: spec.secret
          reference: {apiVersion: v1, kind: Secret}
  fromHost:
    nodes:
      enabled: true
      patches:
      - {path: spec.a, reverseExpression: value + 1}
`,
	"edges.yaml": `sync:
  toHost:
    ingresses: {enabled: yes, patches: [{path: spec.class, expression: value}]}
    gatewayApi:
      enabled: on
      gateways:
        enabled: Yes
        patches:
        - {path: spec.class, expression: value + "-host"}
    customResources:
      gateways.mesh.example.com:
        patches:
        - {path: spec.class, expression: value + "-mesh"}
      apikeys.example.com:
        patches:
        - {path: spec.class, expression: value + "-key"}
  fromHost:
    gatewayClasses: {enabled: no}
    gateways: {enabled: true, patches: [{path: spec.class, reverseExpression: value}]}
    nodes:
      enabled: true
      patches:
      - path: status.cpu
        expression: '"0"'
      - path: status.zone
        expression: context.tenant.config.sync.toHost.pods.enabled
`,
	"mute.yaml":      "sync: {fromHost: {secrets: {enabled: true, patches: [{path: data.a, expression: value}]}}}\n",
	"unlucky.yaml":   "sync:\n  fromHost:\n    nodes:\n      enabled: true\n      patches:\n      - path: status.cpu\n        expression: value.a.b\n",
	"gateway.yaml":   "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nspec: {class: a}\n",
	"mesh.yaml":      "apiVersion: mesh.example.com/v1\nkind: Gateway\nspec: {class: a}\n",
	"apikey.yaml":    "apiVersion: example.com/v1\nkind: APIKey\nspec: {class: a}\n",
	"host-node.yaml": "apiVersion: v1\nkind: Node\nstatus: {cpu: \"8\", zone: a}\n",
	"secret.yaml":    "apiVersion: v1\nkind: Secret\ndata: {a: b}\n",
	"edges_test.yaml": "configuration: edges.yaml\ntests:\n- name: gateway\n  spec: {object: gateway.yaml}\n  expect: {apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, spec: {class: a-host}}\n" +
		"- name: node\n  spec: {object: host-node.yaml, checks: [RoundTrip, Fixpoint]}\n  expect: {apiVersion: v1, kind: Node, status: {cpu: \"0\", zone: true}}\n",
	"lossy.yaml":   "sync: {toHost: {pods: {patches: [{path: spec.image, expression: '\"x\"', reverseExpression: '\"y\"'}]}}}\n",
	"failing.yaml": "sync:\n  toHost:\n    pods:\n      patches:\n      - path: spec.image\n        expression: >-\n          value\n          .a.b\n",
	"warning.yaml": "sync:\n  toHost:\n    pods:\n      patches:\n      - path: spec.image\n        expression: 'null'\n",
	"bad.yaml":     "# a comment\nsync:\n  toHost:\n    pods:\n      patches:\n      - path: a[\n        expression: \"value +\"\n      - path: b\n        expression: |\n          value.map(x =>\n            new Date())\n      - path: 'c'\n        expression: 3\n    pots: {}\n",
	"broken.yaml":  "sync:\n  - a\n b: c\n",
	"pod.yaml":     "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {image: nginx}\n",
	"host.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {image: registry/nginx}\n",
	"two.yaml":     "# first\napiVersion: v1\nkind: Pod\nspec: {image: a}\n---\n---\napiVersion: v1\nkind: Pod\nspec: {image: b}\n",
	"backup.yaml":  "apiVersion: example.com/v1\nkind: Backup\nspec: {secret: my-secret}\n",
	"node.yaml":    "apiVersion: v1\nkind: Node\nspec: {a: 1}\n",
	"service.yaml": "apiVersion: v1\nkind: Service\n",
	"evaluation.yaml": "apiVersion: management.platform.sh/v1\nkind: SyncPatchEvaluation\nspec:\n  patches: [{path: spec.a, expression: value.b.c}]\n" +
		"  object: {spec: {a: {}}}\n",
	"nested.yaml": "apiVersion: management.platform.sh/v1\nkind: SyncPatchEvaluation\nspec:\n  resource: pods\n  configuration:\n    sync:\n      toHost:\n        pods:\n" +
		"          patches:\n          - {path: spec.a, expression: value.b.c}\n  object: {spec: {a: {}}}\n",
	"unknown.yaml": "apiVersion: management.platform.sh/v1\nkind: SyncPatchEvaluation\nspec: {patch: []}\n",
	"empty.yaml":   "# nothing\n---\n",
	"good_test.yaml": "configuration: vcluster.yaml\ntests:\n- name: in\n  spec: {object: pod.yaml}\n  expect: host.yaml\n" +
		"- name: out\n  spec: {object: host.yaml, direction: HostToTenant}\n  expect: pod.yaml\n" +
		"- name: refused\n  spec: {patches: [{path: 'a[', expression: value}], object: {}}\n  error: spec.patches[0].path\n" +
		"- name: failed\n  spec: {patches: [{path: a, expression: value.b.c}], object: {a: {}}}\n  error: TypeError\n",
	"wrong_test.yaml": "tests:\n- name: result\n  spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}\n  expect: {a: 2}\n" +
		"- name: no error\n  spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}\n  error: x\n" +
		"- name: another error\n  spec: {patches: [{path: a, expression: value.b.c}], object: {a: 0}}\n  error: SyntaxError\n" +
		"- name: an error\n  spec:\n    object: {a: 0}\n    patches:\n    - path: a\n      expression: value.b.c\n  expect: {a: 0}\n" +
		"- name: refused\n  spec:\n    object: {a: 0}\n    patches:\n    - path: 'a['\n      expression: value\n  expect: {a: 0}\n" +
		"- name: refused otherwise\n  spec: {patches: [{path: 'a[', expression: value}], object: {}}\n  error: direction\n" +
		"- name: lost\n  spec: {patches: [{path: a, expression: '1', reverseExpression: '2'}], object: {a: 0}, checks: [RoundTrip]}\n  expect: {a: 1}\n" +
		"- name: good\n  spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}\n  expect: {a: 1}\n",
	"naming_test.yaml": "tenant: {name: t, namespace: ns}\ntests:\n- name: that of the flag\n  spec: {patches: [{path: a, expression: context.vcluster.name}], object: {a: 0}}\n  expect: {a: t}\n" +
		"- name: its own\n  spec: {naming: neutral, patches: [{path: a, expression: context.vcluster === undefined}], object: {a: 0}}\n  expect: {a: true}\n",
	"list.yaml":       "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  spec: {image: a}\n- apiVersion: v1\n  kind: Pod\n  spec: {image: b}\n",
	"later.yaml":      "apiVersion: management.platform.sh/v2\nkind: SyncPatchEvaluation\nspec: {}\n",
	"twice.yaml":      "sync: {}\nsync: {}\n" + strings.Repeat("a: 1\n", 30),
	"types_test.yaml": "configuration: 1\ntenant: {name: true}\ntests:\n- name: x\n  spek: {}\n",
	"files_test.yaml": "configuration: vcluster.yaml\ntests:\n- name: x\n  spec: {object: nowhere.yaml}\n  expect: nothing.yaml\n- name: z\n  spec: {object: service.yaml}\n  expect: {}\n",
	"both_test.yaml":  "tests:\n- name: x\n  spec: {}\n  expect: {}\n  error: x\n",
	"none_test.yaml":  "tests: []\n",
	"endless.yaml":    "sync:\n  toHost:\n    pods:\n      patches:\n      - path: a\n        expression: " + doubling(60) + "\n",
}

// doubling is an expression that takes the parser twice as long with each level.
func doubling(levels int) string {
	return strings.Repeat("(a=", levels) + "1" + strings.Repeat(")=>1", levels)
}

// patch runs a patch command in a folder with the files above, and returns its exit code and its output.
func patch(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range patchFiles {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, arg := range args {
		if patchFiles[arg] != "" {
			args[i] = filepath.Join(folder, arg)
		}
	}
	all := New()
	parser, err := kong.New(&all)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine is slow. The flags of a row come last and win.
	slow := []string{"--patch-expression-time=25s", "--patch-object-time=25s"}
	parsed, err := parser.Parse(append([]string{args[0]}, append(slow, args[1:]...)...))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	terminal := &terminal{in: strings.NewReader(in), out: &stdout, errors: &stderr}
	switch parsed.Command() {
	case "eval <file>":
		terminal.colour = all.Eval.Color == "always"
		err = all.Eval.run(context.Background(), terminal)
	case "check <file>":
		err = all.Check.run(context.Background(), terminal)
	case "test <file>":
		err = all.Test.run(context.Background(), terminal)
	}
	if exit := (*ExitError)(nil); errors.As(err, &exit) {
		code = exit.Code
		stderr.WriteString(exit.text)
	} else if err != nil {
		t.Fatal(err)
	}
	clean := func(b *bytes.Buffer) string {
		return strings.ReplaceAll(b.String(), folder+string(filepath.Separator), "")
	}
	return code, clean(&stdout), clean(&stderr)
}

// Each command has the exit code that its page says, and names the place of each error. Source: docs/patches.md.
func TestPatchCommands(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about, in string
		args      []string
		code      int
		out, errs string
	}{
		{"an object", "", []string{"eval", "-c", "vcluster.yaml", "pod.yaml"}, 0, "-  image: nginx\n+  image: registry/nginx\npatch 0: spec.image: Applied (1 of 1)\n", ""},
		{"from standard input", patchFiles["pod.yaml"], []string{"eval", "-c", "vcluster.yaml", "-o", "object", "-"}, 0, "image: registry/nginx", ""},
		{"the way back", "", []string{"eval", "-c", "vcluster.yaml", "--reverse", "-o", "object", "host.yaml"}, 0, "image: nginx", ""},
		{"two objects", "", []string{"eval", "-c", "vcluster.yaml", "-o", "object", "two.yaml"}, 0, "image: registry/a\n---\n", ""},
		{"two evaluations", "", []string{"eval", "-c", "vcluster.yaml", "-o", "yaml", "two.yaml"}, 0, "kind: List\n", ""},
		{"a custom resource", "", []string{"eval", "-c", "vcluster.yaml", "--tenant=my-vcluster", "--tenant-namespace=ns", "backup.yaml"}, 0, "reference: v1 Secret default/my-secret is ns/v", ""},
		{"a custom resource on a host of vcluster", "", []string{"eval", "-c", "vcluster.yaml", "--naming=vcluster", "--tenant=my-vcluster", "--tenant-namespace=ns", "backup.yaml"}, 0, "reference: v1 Secret default/my-secret is ns/my-secret-x-default-x-my-vcluster on the host", ""},
		{"without a tenant", "", []string{"eval", "-c", "vcluster.yaml", "backup.yaml"}, 2, "", "backup.yaml: error: --tenant: "},
		{"what comes from the host", "", []string{"eval", "-c", "vcluster.yaml", "--reverse", "node.yaml"}, 0, "+  a: 2\n", ""},
		{"a kind that ends in a vowel and y", "", []string{"eval", "-c", "edges.yaml", "-o", "object", "gateway.yaml"}, 0, "class: a-host\n", ""},
		{"a definition with the name of a resource", "", []string{"eval", "-c", "edges.yaml", "-o", "object", "mesh.yaml"}, 0, "class: a-mesh\n", ""},
		{"a definition that ends in a vowel and y", "", []string{"eval", "-c", "edges.yaml", "-o", "object", "apikey.yaml"}, 0, "class: a-key\n", ""},
		{"what comes from the host without --reverse", "", []string{"eval", "-c", "edges.yaml", "host-node.yaml"}, 0, "host-node.yaml (tenant)\n@@ -1,5 +1,5 @@\n apiVersion: v1\n kind: Node\n status:\n-  cpu: \"8\"\n-  zone: a\n+  cpu: \"0\"\n+  zone: true\n", ""},
		{"its direction", "", []string{"eval", "-c", "edges.yaml", "-o", "json", "host-node.yaml"}, 0, `"direction": "HostToTenant"`, ""},
		{"a patch that is never evaluated", "", []string{"eval", "-c", "mute.yaml", "secret.yaml"}, 0, "patch 0: data.a: Skipped: the patch has no reverseExpression", "mute.yaml:1:81: warning: sync.fromHost.secrets.patches[0].expression: "},
		{"what comes from the host and fails", "", []string{"eval", "-c", "unlucky.yaml", "host-node.yaml"}, 1, "patch 0: status.cpu: Failed: TypeError", "unlucky.yaml:7:29: error: sync.fromHost.nodes.patches[0].expression: at status.cpu: TypeError"},
		{"another resource", "", []string{"eval", "-c", "vcluster.yaml", "--resource=pods", "service.yaml"}, 0, "patch 0: spec.image: Skipped: nothing matches: ", ""},
		{"a resource without patches", "", []string{"eval", "-c", "vcluster.yaml", "service.yaml"}, 2, "", `vcluster.yaml has no patches for kind "Service"; choose one of its resources with --resource: fromHost.nodes, toHost.customResources.backups.example.com/v1, toHost.pods`},
		{"an unknown resource", "", []string{"eval", "-c", "vcluster.yaml", "--resource=pots", "pod.yaml"}, 2, "", "pod.yaml: error: --resource: "},
		{"checks that pass", "", []string{"eval", "-c", "vcluster.yaml", "--check=RoundTrip", "--check=Fixpoint", "pod.yaml"}, 0, "check RoundTrip: passed\ncheck Fixpoint: passed\n", ""},
		{"a check that does not", "", []string{"eval", "-c", "lossy.yaml", "--check=RoundTrip", "pod.yaml"}, 1, "    spec.image: want \"nginx\", got \"y\"\n", ""},
		{"an expression that fails", "", []string{"eval", "-c", "failing.yaml", "pod.yaml"}, 1, "patch 0: spec.image: Failed: TypeError", "failing.yaml:6:21: error: sync.toHost.pods.patches[0].expression: at spec.image: TypeError"},
		{"in an evaluation", "", []string{"eval", "evaluation.yaml"}, 1, "Failed", "evaluation.yaml:4:48: error: spec.patches[0].expression: at spec.a: TypeError"},
		{"in the configuration of one", "", []string{"eval", "nested.yaml"}, 1, "Failed", "nested.yaml:10:48: error: spec.configuration.sync.toHost.pods.patches[0].expression: at spec.a: TypeError"},
		{"a patch without a path", `{apiVersion: management.platform.sh/v1, kind: SyncPatchEvaluation, spec: {patches: [{expression: value}], object: {a: 1}}}`, []string{"eval", "-"}, 2, "", `spec.patches[0].path: `},
		{"a patch without a path, checked", `{apiVersion: management.platform.sh/v1, kind: SyncPatchEvaluation, spec: {patches: [{expression: value}], object: {a: 1}}}`, []string{"check", "-"}, 2, "spec.patches[0].path: ", ""},
		{"a test without a path", `{tests: [{name: a, spec: {patches: [{expression: value}], object: {a: 1}}, expect: {a: 1}}]}`, []string{"test", "-"}, 1, "0 passed, 1 failed", `spec.patches[0].path: `},
		{"colours", "", []string{"eval", "--color=always", "-c", "vcluster.yaml", "pod.yaml"}, 0, "\x1b[31m-  image: nginx\x1b[0m\n\x1b[32m+  image: registry/nginx\x1b[0m\n", ""},
		{"a configuration with mistakes", "", []string{"eval", "-c", "bad.yaml", "pod.yaml"}, 2, "", "bad.yaml:6:16: error"},
		{"no configuration", "", []string{"eval", "pod.yaml"}, 2, "", "pod.yaml:1:1: error: --config is missing: Pod has no patches of its own"},
		{"no file", "", []string{"eval", "-c", "vcluster.yaml", "nowhere.yaml"}, 2, "", "nowhere.yaml"},
		{"invalid YAML", "", []string{"eval", "-c", "vcluster.yaml", "broken.yaml"}, 2, "", "broken.yaml:2: "},
		{"no object", "", []string{"eval", "-c", "vcluster.yaml", "empty.yaml"}, 2, "", "the file has no object"},
		{"an unknown field", "", []string{"eval", "unknown.yaml"}, 2, "", `unknown.yaml:3:15: error: spec.patch: `},
		{"too much", strings.Repeat("#", maxFile+1), []string{"eval", "-c", "vcluster.yaml", "-"}, 2, "", "<stdin>: error: the file is larger than"},

		{"a list", "", []string{"eval", "-c", "vcluster.yaml", "-o", "object", "list.yaml"}, 0, "image: registry/a\n---\n", ""},
		{"a folder", "", []string{"eval", "-c", "vcluster.yaml", "."}, 2, "", ".: error: this is a folder; name files, such as *.yaml"},
		{"every file that cannot be read", "", []string{"eval", "-c", "vcluster.yaml", "nowhere.yaml", "broken.yaml"}, 2, "", "nowhere.yaml: error: no such file or directory\nbroken.yaml:2: error: "},
		{"the object of patches that fail", "", []string{"eval", "-c", "failing.yaml", "-o", "object", "pod.yaml"}, 1, "", "TypeError"},
		{"flags that an evaluation does not read", "", []string{"eval", "-c", "vcluster.yaml", "--resource=pods", "--reverse", "--namespace-mode=Multi", "--naming=vcluster", "--cluster-domain=d", "--tenant=t", "--tenant-namespace=n", "--host-object=pod.yaml", "--virtual-object=pod.yaml", "--check=Fixpoint", "evaluation.yaml"}, 2, "",
			"evaluation.yaml:1:1: error: --config, --resource, --reverse, --namespace-mode, --naming, --cluster-domain, --tenant, --tenant-namespace, --host-object, --virtual-object, --check: a SyncPatchEvaluation has these settings in its spec; omit the flags"},
		{"another version", "", []string{"eval", "later.yaml"}, 2, "", `later.yaml:1:13: error: apiVersion: unsupported apiVersion "management.platform.sh/v2"; use "management.platform.sh/v1"`},
		{"an object as configuration", "", []string{"eval", "-c", "pod.yaml", "pod.yaml"}, 2, "", `pod.yaml:1:1: error: this is an object of kind "Pod"; expected a virtual cluster configuration`},
		{"evaluations in a list", `{kind: List, items: [{apiVersion: management.platform.sh/v1, kind: SyncPatchEvaluation, spec: {patches: [{path: 'a[', expression: value}], object: {}}}]}`,
			[]string{"eval", "-"}, 2, "", "<stdin>:1:115: error: items[0].spec.patches[0].path: "},
		{"invalid YAML after a separator", "a: 1\n---\nb: [\n", []string{"eval", "-c", "vcluster.yaml", "-"}, 2, "", "<stdin>:3: error: did not"},
		{"an empty list", "{kind: List, items: []}", []string{"eval", "-c", "vcluster.yaml", "-"}, 2, "", "-: error: the file has no object"},
		{"an expression that takes too long to parse", "", []string{"check", "--patch-expression-time=50ms", "endless.yaml"}, 2,
			"endless.yaml:6:21: error: sync.toHost.pods.patches[0].expression: Invalid value: the limit of time per expression, 50ms, is exceeded", ""},
		{"a negative number of workers", "", []string{"eval", "--patch-workers=-1", "-c", "vcluster.yaml", "pod.yaml"}, 2, "", "--patch-workers: must be a number from 1 to 64"},
		{"limits out of bounds", "", []string{"eval", "--patch-memory=1Ki", "--patch-result=1Gi", "--patch-depth=9", "--patch-workers=65", "--patch-expression-time=0s", "--patch-object-time=26s", "-c", "vcluster.yaml", "pod.yaml"}, 2, "",
			"--patch-expression-time: must be a duration from 1ms to 25s\n--patch-object-time: must be a duration from 1ms to 25s\n--patch-memory: must be a quantity from 16Mi to 1Gi\n--patch-result: must be a quantity from 1Ki to 16Mi\n--patch-depth: must be a number from 10 to 1000\n--patch-workers: must be a number from 1 to 64"},
		{"an object that is checked", "", []string{"check", "pod.yaml"}, 2, `pod.yaml:1:1: error: this is an object of kind "Pod"`, ""},
		{"tests that are checked", "", []string{"check", "good_test.yaml"}, 2, "good_test.yaml:1:1: error: this is a test file for `patch test`", ""},
		{"files behind one that cannot be read", "", []string{"check", "nowhere.yaml", "bad.yaml"}, 2, "bad.yaml:6:16: error: ", ""},
		{"what cannot be read, as JSON", "", []string{"check", "-o", "json", "broken.yaml"}, 2, `"line": 2,`, ""},
		{"a key that is there twice", "", []string{"check", "twice.yaml"}, 2, "twice.yaml:2: error: key \"sync\" already set in map\n", ""},
		{"many keys", "", []string{"check", "twice.yaml"}, 2, "twice.yaml: error: further errors are omitted\n", ""},
		{"tests without limits", "", []string{"test", "--patch-depth=1001", "good_test.yaml"}, 2, "", "--patch-depth: must be a number from 10 to 1000"},

		{"good patches", "", []string{"check", "vcluster.yaml", "nested.yaml"}, 0, "", ""},
		{"booleans as YAML 1.1 writes them, and patches from the host", "", []string{"check", "--strict", "edges.yaml"}, 0, "", ""},
		{"a path", "", []string{"check", "bad.yaml"}, 2, "bad.yaml:6:16: error: sync.toHost.pods.patches[0].path: column 2: [ without ]\n          - path: a[\n                   ^\n", ""},
		{"an expression in quotes", "", []string{"check", "bad.yaml"}, 2, "bad.yaml:7:29: error: sync.toHost.pods.patches[0].expression: line 1, column 8: ", ""},
		{"an expression of lines", "", []string{"check", "bad.yaml"}, 2, "bad.yaml:11:13: error: sync.toHost.pods.patches[1].expression: line 2, column 3: ", ""},
		{"no text", "", []string{"check", "bad.yaml"}, 2, "bad.yaml:13:21: error: sync.toHost.pods.patches[2].expression: ", ""},
		{"an unknown key", "", []string{"check", "bad.yaml"}, 2, "bad.yaml:14:11: error: sync.toHost.pots: ", ""},
		{"as JSON", "", []string{"check", "-o", "json", "bad.yaml"}, 2, `"line": 11,`, ""},
		{"a warning", "", []string{"check", "warning.yaml"}, 0, "warning.yaml:6:21: warning: ", ""},
		{"a warning that counts", "", []string{"check", "--strict", "warning.yaml"}, 1, "warning", ""},
		{"an evaluation", strings.Replace(patchFiles["evaluation.yaml"], "value.b.c", "value +", 1), []string{"check", "-"}, 2, "<stdin>:4:47: error: spec.patches[0].expression: ", ""},
		{"an empty file", "", []string{"check", "empty.yaml"}, 2, "empty.yaml: error: the file is empty", ""},

		{"tests", "", []string{"test", "good_test.yaml"}, 0, "ok  in\nok  out\nok  refused\nok  failed\n4 passed, 0 failed\n", ""},
		{"tests of kinds and directions", "", []string{"test", "edges_test.yaml"}, 0, "ok  gateway\nok  node\n2 passed, 0 failed\n", ""},
		{"tests that fail", "", []string{"test", "wrong_test.yaml"}, 1, "1 passed, 7 failed\n", ""},
		{"another result", "", []string{"test", "wrong_test.yaml"}, 1, "FAIL  result: the object is not the expected one\n--- result (want)\n+++ result (got)\n@@ -1,1 +1,1 @@\n-a: 2\n+a: 1\n", ""},
		{"no error", "", []string{"test", "wrong_test.yaml"}, 1, "FAIL  no error: ", ""},
		{"another error", "", []string{"test", "wrong_test.yaml"}, 1, "FAIL  another error: ", ""},
		{"an error", "", []string{"test", "wrong_test.yaml"}, 1, "FAIL  an error: ", "wrong_test.yaml:16:27: error: tests[3].spec.patches[0].expression: at a: "},
		{"refused", "", []string{"test", "wrong_test.yaml"}, 1, "FAIL  refused: ", "wrong_test.yaml:22:15: error: tests[4].spec.patches[0].path: "},
		{"refused otherwise", "", []string{"test", "wrong_test.yaml"}, 1, "FAIL  refused otherwise: ", ""},
		{"a check", "", []string{"test", "wrong_test.yaml"}, 1, "FAIL  lost: check RoundTrip failed", ""},
		{"as YAML", "", []string{"test", "-o", "yaml", "wrong_test.yaml"}, 1, "failed: 7\npassed: 1\n", ""},
		{"two expectations", "", []string{"test", "both_test.yaml"}, 2, "", "exactly one of expect and error"},
		{"tests of wrong types", "", []string{"test", "types_test.yaml"}, 2, "", "types_test.yaml:1:16: error: configuration: must be a string, is a number\n    configuration: 1\n                   ^\ntypes_test.yaml:2:16: error: tenant.name: must be a string, is true or false\n"},
		{"an unknown field of a test", "", []string{"test", "types_test.yaml"}, 2, "", "types_test.yaml:5:9: error: tests[0].spek: "},
		{"files of tests that are not there", "", []string{"test", "files_test.yaml"}, 2, "", "files_test.yaml:5:11: error: tests[0].expect: cannot use \"nothing.yaml\"\n"},
		{"a test of an object without patches", "", []string{"test", "files_test.yaml"}, 2, "", "files_test.yaml:7:18: error: tests[1].spec.object: "},
		{"nothing is run where one file is bad", "", []string{"test", "good_test.yaml", "none_test.yaml"}, 2, "", "none_test.yaml:1:8: error: tests: the file has no tests"},
		{"what a check has found", "", []string{"test", "wrong_test.yaml"}, 1, "does not restore the object\n    a: want 0, got 2\n", ""},
		{"why a test failed, as JSON", "", []string{"test", "-o", "json", "wrong_test.yaml"}, 1, `"message": "at a: TypeError`, ""},
		{"a test without a name", "{tests: [{spec: {patches: [{path: a, expression: '1'}], object: {a: 0}}, expect: {a: 1}}]}", []string{"test", "-"}, 0, "ok  tests[0]\n", ""},
		{"tests with a naming", "", []string{"test", "--naming=vcluster", "naming_test.yaml"}, 0, "ok  that of the flag\nok  its own\n2 passed, 0 failed\n", ""},
		{"tests with the naming of the default", "", []string{"test", "naming_test.yaml"}, 1, "FAIL  that of the flag: unexpected error\nok  its own\n", "use context.tenant, or the naming vcluster"},
		{"no tests", "", []string{"test", "none_test.yaml"}, 2, "", "the file has no tests"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			code, out, errs := patch(t, row.in, row.args...)
			if code != row.code || !strings.Contains(out, row.out) || !strings.Contains(errs, row.errs) || row.errs == "" && row.code == 0 && errs != "" {
				t.Errorf("ended with %d, said\n%s\nand\n%s", code, out, errs)
			}
			if row.args[0] == "check" && row.code == 0 && row.out == "" && out != "" {
				t.Errorf("found %s", out)
			}
		})
	}
}

// Test files can name other files by absolute paths.
func TestPatchTestsOfOtherFolders(t *testing.T) {
	t.Parallel()
	folder := localtest.Folder(t, map[string]string{"vcluster.yaml": patchFiles["vcluster.yaml"], "pod.yaml": patchFiles["pod.yaml"], "host.yaml": patchFiles["host.yaml"]})
	file := func(name string) string { return filepath.Join(folder, name) }
	tests := localtest.Folder(t, map[string]string{"all_test.yaml": "configuration: " + file("vcluster.yaml") + "\ntests:\n- spec: {object: " + file("pod.yaml") + "}\n  expect: " + file("host.yaml") + "\n"})
	if code, out, errs := patch(t, "", "test", filepath.Join(tests, "all_test.yaml")); code != 0 {
		t.Errorf("ended with %d, said\n%s\nand\n%s", code, out, errs)
	}
}

// JSON output is the answer of the API.
func TestPatchJSON(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"json", "yaml"} {
		_, out, _ := patch(t, "", "eval", "-c", "vcluster.yaml", "-o", form, "pod.yaml")
		var got model.SyncPatchEvaluation
		if form == "json" && !json.Valid([]byte(out)) {
			t.Errorf("this is no JSON: %s", out)
		}
		if err := yaml.UnmarshalStrict([]byte(out), &got); err != nil || got.Kind != "SyncPatchEvaluation" || len(got.Status.Patches) != 1 ||
			got.Status.Patches[0].Outcome != model.PatchApplied || got.Spec.Resource != "toHost.pods" {
			t.Errorf("%s: %+v, %v", form, got, err)
		}
	}
}

// Source: https://no-color.org.
func TestWantsColour(t *testing.T) {
	t.Parallel()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	none := func(string) string { return "" }
	if !wantsColour("always", file, func(string) string { return "1" }) || wantsColour("never", file, none) || wantsColour("auto", file, none) {
		t.Error("always, never, and auto where there is no terminal")
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	defer terminal.Close()
	for _, row := range []struct {
		name, value string
		want        bool
	}{{"", "", true}, {"NO_COLOR", "1", false}, {"NO_COLOR", "", true}, {"TERM", "dumb", false}, {"TERM", "xterm", true}} {
		lookup := func(name string) string {
			if name == row.name {
				return row.value
			}
			return ""
		}
		if got := wantsColour("auto", terminal, lookup); got != row.want {
			t.Errorf("%s=%s: %v", row.name, row.value, got)
		}
	}
}

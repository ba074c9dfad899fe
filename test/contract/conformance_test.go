package contract

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance.md anew")

const document = "../../docs/conformance.md"

// TestDocument compares docs/conformance.md with the tables that the other tests run. With -update it writes the document.
func TestDocument(t *testing.T) {
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/apiserver").Output()
	if err != nil {
		t.Fatalf("asking for the version of k8s.io/apiserver: %v", err)
	}
	want := conformance(strings.TrimSpace(string(version)))
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: run make contract ARGS=-update", document)
	}
}

func conformance(version string) string {
	var b strings.Builder
	passed, others := 0, map[string][]string{}
	for _, test := range contractTests {
		if test.run != nil {
			passed++
		} else {
			others[test.notApplicable] = append(others[test.notApplicable], "`"+test.name+"`")
		}
	}
	fmt.Fprintf(&b, `# Conformance with Kubernetes

The tests in [test/contract](../test/contract) write this page: %[2]s writes it again, and every run
of %[1]s compares it with the tests. They compare the platform with k8s.io/apiserver %[3]s.

## Storage

%[1]s runs the public contract tests of k8s.io/apiserver/pkg/storage/testing, which etcd and the watch cache pass in
Kubernetes, against the Redis store: on the embedded server and on a real redis-server. %[4]d of %[5]d apply, and pass.
If the package adds a test, the run fails until the test is listed.

The store provides revisions, optimistic writes, snapshots of the present and events. An adapter adds

- encoding, keys as paths, the retry loop of updates, and selection after reading;
- lists of the past: the present without the later events, as far back as the event log reaches;
- bookmarks, from the revision of the last event;
- the revision up to which the log is trimmed, found by asking for events;
- nothing for objects with a time to live, which the schedule removes.

The tests that do not apply:

`, "`make contract`", "`make contract ARGS=-update`", version, passed, len(contractTests))
	for _, reason := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(&b, "- %s: %s.\n", strings.Join(others[reason], ", "), reason)
	}
	requests := 0
	for _, sc := range append(randomScenarios(), scenarios...) {
		requests += len(sc.steps) + len(sc.singleSteps)
	}
	fmt.Fprintf(&b, `
## Handlers

%d requests go to our handlers and to those of k8s.io/apiserver, which serve the same type as a custom resource with our rules
in it. The tests compare status, reason, the fields and reasons of
details.causes, headers and bodies. They do not compare uids, times, generated names, managedFields, the bearer token and the
prose of messages. Every difference is in this list, and each entry of the list occurs.

| difference | why it stays |
|---|---|
`, requests)
	for _, known := range knownDifferences {
		fmt.Fprintf(&b, "| %s | %s |\n", known.about, known.reason)
	}
	b.WriteString(`
## Clients

Tests use a runner with the clients of other languages, unchanged: kubernetes 22.6 for Python, with its typed classes and with its
dynamic client, @kubernetes/client-node 1.4.0 for JavaScript, and kubeclient 4.9 for Ruby ([test/clients](../test/clients)). Each of
them discovers the API, uses each verb, and has the reason of each refusal. kubeclient watches at the deprecated path /watch/ alone. The client of Java is not tested.
`)
	return b.String()
}

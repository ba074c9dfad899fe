// Package clients_test uses a runner with the Kubernetes clients of Python, JavaScript and Ruby, unchanged: each program of this folder does the
// same with the library of its language, and prints what it saw. Source: Spec 4; ADR-0006.
package clients_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/shared/model"
	"management.platform.sh/test/launch"
)

// program uses one library in one way.
type program struct {
	// command is the interpreter with its arguments. The kubeconfig and the name of a project follow.
	command []string
	// needs are files that belong to the library.
	needs []string
}

// python is Debian's interpreter. Only this interpreter finds Debian's packages.
const python = "/usr/bin/python3"

var programs = map[string]program{
	"python-typed":   {command: []string{python, "session.py", "typed"}, needs: []string{"/usr/lib/python3/dist-packages/kubernetes"}},
	"python-dynamic": {command: []string{python, "session.py", "dynamic"}, needs: []string{"/usr/lib/python3/dist-packages/kubernetes"}},
	"javascript":     {command: []string{"node", "session.mjs"}, needs: []string{"node_modules/@kubernetes/client-node"}},
	"ruby":           {command: []string{"ruby", "session.rb"}, needs: []string{"/usr/share/rubygems-integration/all/specifications/kubeclient-4.9.3.gemspec"}},
}

// session is the output of a program: objects and refusals in the form of its library.
type session struct {
	Version string
	// Groups are the groups of the API, and Resources the resources of the platform's group.
	Groups, Resources []string
	// Definitions is the number of custom resource definitions. Allowed is true if the caller may create projects.
	Definitions int
	Allowed     bool
	// Project is the project of the virtual clusters. The other fields are one virtual cluster after each step: create, read, patch, apply and
	// replace.
	Project, Created, Read, Patched, Applied, Replaced map[string]any
	// Listed are the names of all virtual clusters, and of the virtual clusters with a label. Pages are the names on two pages.
	Listed, Pages [][]string
	// Refused are the answers to requests that fail.
	Refused map[string]*metav1.Status
	// Events are the types, names and display names of a watch that begins before the first virtual cluster.
	Events [][]string
}

// skipMissing skips the test. In CI it fails.
func skipMissing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed, and in CI no test may be skipped: run make check-deep PARTS=clients", what)
	}
	t.Skipf("%s is not installed: run make check-deep PARTS=clients as root on Debian", what)
}

// run runs a program to its end.
func (p program) run(t *testing.T, kubeconfig, project string) session {
	t.Helper()
	if _, err := exec.LookPath(p.command[0]); err != nil {
		skipMissing(t, p.command[0])
	}
	for _, file := range p.needs {
		if _, err := os.Stat(file); err != nil {
			skipMissing(t, file)
		}
	}
	command := exec.CommandContext(t.Context(), p.command[0], append(slices.Clone(p.command[1:]), kubeconfig, project)...)
	// The dynamic client of Python keeps what it discovers in a file.
	command.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var wrong strings.Builder
	command.Stderr = &wrong
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("the program fails: %v\n%s", err, wrong.String())
	}
	var found session
	if err := json.Unmarshal(printed, &found); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	return found
}

// Each library discovers the API; creates, reads, lists in pages, watches, patches, applies, replaces and deletes objects; and reports the
// reason of each refusal.
func TestClients(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	runner, err := launch.Start(t.Context(), folder, filepath.Join(t.TempDir(), "log"), "PLATFORM_REDIS_TIMEOUT=20s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Stop)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	want := discover(t, kubeconfig)
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := program.run(t, kubeconfig, name)
			got.wantDiscovery(t, want)
			got.wantObjects(t, name)
			got.wantRefusals(t)
			got.wantEvents(t)
		})
	}
}

// discover returns the version, the groups and the resources that the API names. What client-go reads from them is tested in test/contract:
// its package discovery contains all types of Kubernetes.
func discover(t *testing.T, kubeconfig string) session {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var server version.Info
	var groups metav1.APIGroupList
	var resources metav1.APIResourceList
	for path, document := range map[string]any{"/version": &server, "/apis": &groups, "/apis/" + model.SchemeGroupVersion.String(): &resources} {
		answer, err := client.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(answer.Body).Decode(document)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", path, answer.StatusCode, err)
		}
	}
	output := session{Version: server.GitVersion}
	for _, group := range groups.Groups {
		output.Groups = append(output.Groups, group.Name)
	}
	for _, resource := range resources.APIResources {
		output.Resources = append(output.Resources, resource.Name)
	}
	if len(output.Groups) < 3 || len(output.Resources) < 10 {
		t.Fatalf("these cannot be all: %q, %q", output.Groups, output.Resources)
	}
	return output
}

func (s session) wantDiscovery(t *testing.T, want session) {
	t.Helper()
	for _, list := range [][]string{s.Groups, s.Resources, want.Groups, want.Resources} {
		slices.Sort(list)
	}
	if s.Version != want.Version || !slices.Equal(s.Groups, want.Groups) || !slices.Equal(s.Resources, want.Resources) || s.Definitions != 0 || !s.Allowed {
		t.Errorf("discovered %q, %q, %q, %d definitions, allowed %v;\nthe API names %q, %q, %q",
			s.Version, s.Groups, s.Resources, s.Definitions, s.Allowed, want.Version, want.Groups, want.Resources)
	}
}

func (s session) wantObjects(t *testing.T, project string) {
	t.Helper()
	if name := (&unstructured.Unstructured{Object: s.Project}).GetName(); name != project {
		t.Errorf("the project is %v", s.Project)
	}
	first := unstructured.Unstructured{Object: s.Created}
	versions := map[string]bool{}
	for _, row := range []struct {
		about, text string
		object      map[string]any
	}{
		{"created", "first", s.Created}, {"read", "first", s.Read}, {"patched", "second", s.Patched}, {"applied", "third", s.Applied},
		{"replaced", "fourth", s.Replaced},
	} {
		object := unstructured.Unstructured{Object: row.object}
		text, _, err := unstructured.NestedString(row.object, "spec", "displayName")
		if err != nil || text != row.text || object.GetKind() != "VirtualClusterInstance" || object.GetAPIVersion() != model.SchemeGroupVersion.String() ||
			object.GetName() != "dev" || object.GetNamespace() != "p-"+project || object.GetUID() == "" || object.GetUID() != first.GetUID() {
			t.Errorf("%s: %v", row.about, row.object)
		}
		versions[object.GetResourceVersion()] = true
	}
	if len(versions) != 4 || versions[""] {
		t.Errorf("four versions of the object have %v", versions)
	}
	applied := unstructured.Unstructured{Object: s.Applied}
	if !slices.ContainsFunc(applied.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "clients" && entry.Operation == metav1.ManagedFieldsOperationApply
	}) {
		t.Errorf("nobody has applied fields: %v", applied.GetManagedFields())
	}
	if want := [][]string{{"dev", "test"}, {"dev"}}; !slices.EqualFunc(s.Listed, want, slices.Equal) {
		t.Errorf("listed %q", s.Listed)
	}
	if want := [][]string{{"dev"}, {"test"}}; !slices.EqualFunc(s.Pages, want, slices.Equal) {
		t.Errorf("the pages are %q", s.Pages)
	}
}

func (s session) wantEvents(t *testing.T) {
	t.Helper()
	want := [][]string{
		{"ADDED", "dev", "first"}, {"ADDED", "test", "first"}, {"MODIFIED", "dev", "second"}, {"MODIFIED", "dev", "third"},
		{"MODIFIED", "dev", "fourth"}, {"DELETED", "dev", "fourth"}, {"DELETED", "test", "first"},
	}
	if !slices.EqualFunc(s.Events, want, slices.Equal) {
		t.Errorf("the watch has %q", s.Events)
	}
}

func (s session) wantRefusals(t *testing.T) {
	t.Helper()
	rows := map[string]struct {
		code   int32
		reason metav1.StatusReason
		name   string
	}{
		"absent":    {http.StatusNotFound, metav1.StatusReasonNotFound, "nope"},
		"gone":      {http.StatusNotFound, metav1.StatusReasonNotFound, "dev"},
		"taken":     {http.StatusConflict, metav1.StatusReasonAlreadyExists, "dev"},
		"stale":     {http.StatusConflict, metav1.StatusReasonConflict, "dev"},
		"invalid":   {http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "long"},
		"strategic": {http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, ""},
		// The library of JavaScript reports only the status code.
		"stranger": {code: http.StatusUnauthorized},
	}
	for about, row := range rows {
		got := s.Refused[about]
		if got == nil || got.Code != row.code {
			t.Errorf("%s: %+v", about, got)
			continue
		}
		if row.reason != "" && (got.Kind != "Status" || got.Status != metav1.StatusFailure || got.Reason != row.reason || got.Message == "") {
			t.Errorf("%s: %+v", about, got)
			continue
		}
		if row.name != "" && (got.Details == nil || got.Details.Name != row.name) {
			t.Errorf("%s: the details are %+v", about, got.Details)
		}
		if about == "invalid" && (len(got.Details.Causes) != 1 || got.Details.Causes[0].Field != "spec.displayName") {
			t.Errorf("%s: the causes are %+v", about, got.Details.Causes)
		}
	}
	if len(s.Refused) != len(rows) {
		t.Errorf("there are %d refusals", len(s.Refused))
	}
}

package terraform

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// server is a runner without a Redis of its own, and its first admin key.
type server struct {
	address, key string
	client       *http.Client
}

func serve(t *testing.T) server {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "platform")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./local")
	build.Dir = "../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the runner: %v\n%s", err, output)
	}
	data := filepath.Join(folder, "data")
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--listen", "127.0.0.1:0", "--data", data)
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	result := server{}
	for lines := bufio.NewScanner(output); result.address == "" && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "API" {
			result.address = words[1]
		}
	}
	if result.address == "" {
		t.Fatalf("the runner did not start:\n%s", failure.String())
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	key, err := os.ReadFile(filepath.Join(data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(data, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	result.key = strings.TrimSpace(string(key))
	result.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	return result
}

// ask sends a request and returns the answer, which must have the status.
func (s server) ask(t *testing.T, method, path, body string, status int) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		t.Fatalf("%s %s: %s, want %d (%v)\n%s", method, path, response.Status, status, err, content)
	}
	return content
}

// manifests are the objects of the example, as JSON by the name of their resource.
func manifests(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile("../../docs/examples/terraform/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	example := module{"main.tf": string(content)}
	blocks, findings := example.blocks()
	for _, finding := range append(append(findings, findUnformatted(example)...), findUndeclared(blocks)...) {
		t.Error(finding)
	}
	values := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{
		"ci_key": cty.StringVal(rand.Text() + rand.Text()),
	})}}
	manifests := map[string]string{}
	for _, block := range blocks {
		if block.Type != "resource" {
			continue
		}
		value, problems := block.Body.Attributes["manifest"].Expr.Value(values)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		text, err := ctyjson.Marshal(value, value.Type())
		if err != nil {
			t.Fatal(err)
		}
		manifests[block.Labels[1]] = string(text)
	}
	return manifests
}

// The server answers the requests that the Terraform provider sends for docs/examples/terraform: the custom resource definitions, the schema of
// each kind, a plan, an apply, an apply without a change, and a deletion. The provider itself is not run.
func TestExample(t *testing.T) {
	t.Parallel()
	objects := manifests(t)
	if len(objects) != 2 {
		t.Fatalf("the example has %d manifests", len(objects))
	}
	s := serve(t)
	// The provider looks for a kind among the custom resource definitions first, and fails if it finds no resource of this name.
	type resource struct{ Name string }
	var extensions struct{ Resources []resource }
	if err := json.Unmarshal(s.ask(t, http.MethodGet, "/apis/apiextensions.k8s.io/v1", "", http.StatusOK), &extensions); err != nil || !slices.Contains(extensions.Resources, resource{"customresourcedefinitions"}) {
		t.Errorf("discovery has %v (%v), not the custom resource definitions", extensions, err)
	}
	var definitions struct{ Items []any }
	if err := json.Unmarshal(s.ask(t, http.MethodGet, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", http.StatusOK), &definitions); err != nil || definitions.Items == nil || len(definitions.Items) > 0 {
		t.Errorf("the custom resource definitions are %v (%v), want an empty list", definitions, err)
	}
	schema := s.ask(t, http.MethodGet, "/openapi/v2", "", http.StatusOK)
	paths := map[string]string{"OwnedAccessKey": "/ownedaccesskeys/", "VirtualClusterInstance": "/virtualclusterinstances/"}
	for name, manifest := range objects {
		type object struct {
			Kind     string
			Metadata struct{ Name, Namespace, ResourceVersion string }
		}
		decode := func(text []byte) object {
			var one object
			if err := json.Unmarshal(text, &one); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return one
		}
		desired := decode([]byte(manifest))
		if !strings.Contains(string(schema), `"kind":"`+desired.Kind+`"`) {
			t.Errorf("%s: the schema has no kind %s", name, desired.Kind)
		}
		path := "/apis/management.platform.sh/v1"
		if desired.Metadata.Namespace != "" {
			path += "/namespaces/" + desired.Metadata.Namespace
		}
		path += paths[desired.Kind] + desired.Metadata.Name
		const apply = "?fieldManager=Terraform&force=false"
		s.ask(t, http.MethodGet, path, "", http.StatusNotFound)
		s.ask(t, http.MethodPatch, path+apply+"&dryRun=All", manifest, http.StatusCreated)
		s.ask(t, http.MethodGet, path, "", http.StatusNotFound)
		first := decode(s.ask(t, http.MethodPatch, path+apply, manifest, http.StatusCreated))
		again := decode(s.ask(t, http.MethodPatch, path+apply, manifest, http.StatusOK))
		if first.Metadata.ResourceVersion == "" || again.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
			t.Errorf("%s: applying it again changes version %q to %q", name, first.Metadata.ResourceVersion, again.Metadata.ResourceVersion)
		}
		s.ask(t, http.MethodDelete, path, "", http.StatusOK)
		s.ask(t, http.MethodGet, path, "", http.StatusNotFound)
	}
}

package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/shared/model"
	"management.platform.sh/test/launch"
)

const (
	root    = "../.."
	example = root + "/docs/examples/typed"
	// clientModule is the module of the types.
	clientModule = "management.platform.sh/infra/client/go"
)

// A program in a module outside of the repository, which requires the module of the types alone, uses a runner. It contains no package of the
// server. docs/go.md shows it.
func TestGo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	types, err := filepath.Abs(filepath.Join(root, "infra", "client", "go"))
	if err != nil {
		t.Fatal(err)
	}
	inFolder := func(program string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir, command.Env = folder, append(os.Environ(), "GOWORK=off", "KUBECONFIG="+filepath.Join(folder, "data", "kubeconfig"))
		var wrong strings.Builder
		command.Stderr = &wrong
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", program, args, err, wrong.String())
		}
		return string(output)
	}
	inFolder("go", "mod", "edit", "-replace="+clientModule+"="+types)
	inFolder("go", "build", "-o", "typed", ".")
	dependencies := strings.Fields(inFolder("go", "list", "-deps", "."))
	ours := slices.DeleteFunc(slices.Clone(dependencies), func(path string) bool { return !strings.HasPrefix(path, "management.platform.sh") })
	if len(dependencies) < 100 || !slices.Equal(ours, []string{clientModule + "/v1"}) {
		t.Errorf("of %d packages, these are of this project: %q", len(dependencies), ours)
	}
	for _, server := range []string{"redis", "goja", "aws-lambda-go"} {
		if modules := inFolder("go", "list", "-m", "all"); strings.Contains(modules, server) {
			t.Errorf("the module of %s is among the requirements:\n%s", server, modules)
		}
	}

	data := filepath.Join(folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	runner, err := launch.Start(t.Context(), data, filepath.Join(t.TempDir(), "log"), "PLATFORM_REDIS_TIMEOUT=20s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Stop)
	register(t, filepath.Join(data, "kubeconfig"))
	want := regexp.MustCompile(`^created a key that ends at \d{4}-.* UTC\nthe virtual cluster is at https://dev\.shop\.example\.com\nseen: ADDED\n(seen: MODIFIED\n)*seen: DELETED\n$`)
	if printed := inFolder(filepath.Join(folder, "typed")); !want.MatchString(printed) {
		t.Errorf("the program prints:\n%s", printed)
	}
}

// register creates the virtual cluster dev.
func register(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(model.SchemeGroupVersion.WithResource("virtualclusterinstances")).Namespace("p-shop").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": model.SchemeGroupVersion.String(), "kind": "VirtualClusterInstance", "metadata": map[string]any{"name": "dev"},
		"spec": map[string]any{"owner": map[string]any{"user": "admin"}, "accessPoint": map[string]any{"ingress": map[string]any{"enabled": true, "host": "dev.shop.example.com"}}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The page has parts of the program as they stand in its file.
func TestGoPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(example + "/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## With client-go\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```go\n")[1:]
	for _, block := range blocks {
		if lines, _, _ := strings.Cut(block, "\n```\n"); !strings.Contains(string(program), "\n\t"+strings.ReplaceAll(lines, "\n", "\n\t")+"\n") {
			t.Errorf("docs/examples/typed/main.go does not have these lines of docs/go.md:\n%s", lines)
		}
	}
	if len(blocks) != 2 {
		t.Errorf("docs/go.md has %d blocks of the program", len(blocks))
	}
}

package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/lambda/bootstrap"
	"management.platform.sh/shared/api/frame"
)

const root = "../.."

// The files in the repository equal the files that the catalog generates: every function, and nothing else.
func TestGenerated(t *testing.T) {
	t.Parallel()
	wanted, err := files(catalog.Functions)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range wanted {
		if kept, err := os.ReadFile(filepath.Join(root, path)); err != nil || !bytes.Equal(kept, text) {
			t.Errorf("%s is not what would be generated: run make gen (%v)", path, err)
		}
	}
	for _, folder := range []string{lambdaFolder, knativeFolder} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				if name, _ := filepath.Rel(root, path); wanted[filepath.ToSlash(name)] == nil {
					t.Errorf("%s would not be generated: run make gen", name)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := generate(folder, catalog.Functions); err != nil {
		t.Fatal(err)
	}
	if err := generate(folder, catalog.Functions[:1]); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(folder, lambdaFolder, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := generate(folder, []*frame.Function{{Name: "neither"}}); err == nil {
		t.Error("a function without a route and a schedule is accepted")
	}
}

// Each function is a service that scales to zero, runs as an unprivileged user and reads its secret from a file; each
// schedule has a PingSource.
func TestKnative(t *testing.T) {
	t.Parallel()
	all, err := files(catalog.Functions)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string][]unstructured.Unstructured{}
	for text := range strings.SplitSeq(string(all[knativeFolder+"/functions.yaml"]), "\n---\n") {
		object := unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects[object.GetName()] = append(objects[object.GetName()], object)
	}
	if len(objects) != len(catalog.Functions) {
		t.Errorf("there are %d names, want %d", len(objects), len(catalog.Functions))
	}
	for _, f := range catalog.Functions {
		var kinds []string
		for _, object := range objects[f.Name] {
			kinds = append(kinds, object.GetKind())
			switch object.GetKind() {
			case "Service":
				scale, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/min-scale")
				containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
				most, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/max-scale")
				atOnce, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec", "containerConcurrency")
				if bounded := fmt.Sprint(atOnce); most != "100" || bounded != "80" && bounded != "1" {
					t.Errorf("%s may have %q instances with %v requests each", f.Name, most, atOnce)
				}
				if scale != "0" || len(containers) != 1 {
					t.Fatalf("%s: %v", f.Name, object.Object)
				}
				container := containers[0].(map[string]any)
				if said := fmt.Sprint(container["env"]); !strings.Contains(said, "name:FUNCTION_TARGET value:"+f.Name+"]") || strings.Contains(said, "redis://") ||
					!strings.Contains(said, "key:release name:platform optional:true") ||
					!strings.Contains(said, "name:PLATFORM_SECRET_AUDIT_STORE valueFrom:map[secretKeyRef:map[key:url name:platform-audit optional:true]") {
					t.Errorf("%s: %s", f.Name, said)
				}
				if nobody, _, _ := unstructured.NestedBool(container, "securityContext", "runAsNonRoot"); !nobody {
					t.Errorf("%s may run as root", f.Name)
				}
				if local := object.GetLabels()["networking.knative.dev/visibility"]; (local == "cluster-local") != (f.Schedule != nil) {
					t.Errorf("%s is %q", f.Name, local)
				}
			case "PingSource":
				sink, _, _ := unstructured.NestedString(object.Object, "spec", "sink", "ref", "name")
				if sink != f.Name {
					t.Errorf("%s calls %s", f.Name, sink)
				}
			}
		}
		want := []string{"Service"}
		if f.Schedule != nil {
			want = append(want, "PingSource")
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s: there are %v", f.Name, kinds)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	if all, err := choose(nil); err != nil || len(all) != len(catalog.Functions) {
		t.Errorf("%d, %v", len(all), err)
	}
	if one, err := choose([]string{"whoami"}); err != nil || len(one) != 1 || one[0].Name != "whoami" {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := choose([]string{"whoareyou"}); err == nil {
		t.Error("an unknown function is accepted")
	}
	for _, args := range [][]string{nil, {"dance"}, {"build", "whoareyou"}, {"build", "--architecture=mips"}} {
		if run(args) == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

func TestChooseArchitectures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ args, architectures, names []string }{
		{nil, []string{"arm64"}, nil},
		{[]string{"whoami"}, []string{"arm64"}, []string{"whoami"}},
		{[]string{"--architecture=amd64", "whoami"}, []string{"amd64"}, []string{"whoami"}},
		{[]string{"--architecture=arm64", "--architecture=amd64"}, []string{"arm64", "amd64"}, nil},
	} {
		chosen, names, err := chooseArchitectures(row.args)
		if err != nil || !slices.Equal(chosen, row.architectures) || !slices.Equal(names, row.names) {
			t.Errorf("%q: %q, %q, %v", row.args, chosen, names, err)
		}
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	first, err := pack([]byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := pack([]byte("program")); err != nil || !bytes.Equal(first, again) {
		t.Errorf("it is another file: %v", err)
	}
	archive, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil || len(archive.File) != 1 {
		t.Fatal(err)
	}
	one := archive.File[0]
	r, err := one.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "program" || one.Name != "bootstrap" || one.Mode() != 0o755 ||
		!one.Modified.Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%s %v %v %q %v", one.Name, one.Mode(), one.Modified, text, err)
	}
}

// build builds a function for Lambda in a folder, and returns its hash.
func build(t *testing.T, folder, name string) [sha256.Size]byte {
	t.Helper()
	output := filepath.Join(t.TempDir(), "bootstrap")
	command := bootstrap.Command(output, "./"+lambdaFolder+"/"+name)
	command.Dir = folder
	command.Env = append(command.Env, "GOOS=linux", "GOARCH=amd64")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(text)
}

// sources copies the source of the programs.
func sources(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(folder, name), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, top := range []string{"functions", "infra", "shared"} {
		if err := os.CopyFS(filepath.Join(folder, top), os.DirFS(filepath.Join(root, top))); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// The same source makes the same file in every folder, and a change of one operation does not touch another.
func TestReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("it links five programs")
	}
	t.Parallel()
	get, who := build(t, root, "getaccesskey"), build(t, root, "whoami")
	folder := sources(t)
	if build(t, folder, "getaccesskey") != get {
		t.Error("another folder makes another file")
	}
	changed := filepath.Join(folder, "functions", "getaccesskey", "getaccesskey.go")
	text, err := os.ReadFile(changed)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), `crud.Get("getaccesskey",`, `crud.Get("getanotherkey",`, 1)
	if other == string(text) {
		t.Fatal("there was nothing to change")
	}
	if err := os.WriteFile(changed, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if build(t, folder, "getaccesskey") == get {
		t.Error("a change makes the same file")
	}
	if build(t, folder, "whoami") != who {
		t.Error("the change of one operation makes another file of another")
	}
}

// A staged module is one in which the framework finds the function.
func TestStage(t *testing.T) {
	t.Parallel()
	staged := filepath.Join(t.TempDir(), "expirekeys")
	chosen, err := choose([]string{"expirekeys"})
	if err != nil {
		t.Fatal(err)
	}
	if err := stageOne(root, staged, chosen[0]); err != nil {
		t.Fatal(err)
	}
	const program = `package main

import (
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	_ "management.platform.sh"
)

func main() {
	if err := funcframework.StartHostPort("nowhere.invalid", os.Getenv("PORT")); err != nil {
		println(err.Error())
	}
}
`
	if err := writeFile(filepath.Join(staged, "cmd", "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "build", "-o", "server", "./cmd")
	command.Dir = staged
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for target, want := range map[string]string{"expirekeys": "nowhere.invalid", "whoami": "no matching function"} {
		command := exec.Command(filepath.Join(staged, "server"))
		command.Env = []string{"FUNCTION_TARGET=" + target, "PORT=1", "PLATFORM_REDIS_URL=redis://127.0.0.1:1"}
		said, err := command.CombinedOutput()
		if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) || !strings.Contains(string(said), want) {
			t.Errorf("%s: %v: %s", target, err, said)
		}
	}
	if _, err := os.Stat(filepath.Join(staged, "functions", "whoami")); err == nil {
		t.Error("other functions are staged as well")
	}
}

package helm

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

const minimal = "testdata/values/minimal.yaml"

// valueFiles returns the files of values that the chart takes.
func valueFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// Helm's linter has nothing to say but that there is no icon, and platform manifests prints what Helm renders.
func TestRendering(t *testing.T) {
	for _, file := range valueFiles(t) {
		if output := must(t, "", nil, "helm", "lint", "--strict", chart, "-f", file); strings.Count(output, "[") != 1 || !strings.Contains(output, "[INFO] Chart.yaml: icon is recommended") {
			t.Errorf("%s: %s", file, output)
		}
		rendered := must(t, "", nil, "helm", "template", "platform", chart, "-n", "here", "-f", file)
		if slices.Contains(golden, nameOf(file)) {
			compareGolden(t, filepath.Join("testdata", "golden", nameOf(file)+".yaml"), rendered)
		}
		printed := must(t, "", nil, "platform", "manifests", "-n", "here", "-f", file)
		want, got := canonical(t, rendered), canonical(t, printed)
		if len(want) < 4 {
			t.Errorf("%s: Helm renders %d objects", file, len(want))
		}
		for _, each := range want {
			if !slices.Contains(got, each) {
				t.Errorf("%s: platform manifests does not print\n%s", file, each)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: platform manifests prints %d objects, Helm %d", file, len(got), len(want))
		}
	}
}

// golden are the files of values whose whole rendering is kept, for readers of a change.
var golden = []string{"minimal", "monitoring"}

func compareGolden(t *testing.T, file, rendered string) {
	t.Helper()
	if *update {
		write(t, file, rendered)
	} else if read(t, file) != rendered {
		t.Errorf("%s is not what Helm renders; -update writes it", file)
	}
}

// canonical returns each object as YAML, without what names the tool and the version of the program.
func canonical(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	for _, each := range objects(t, text) {
		if labels, ok := each.value("metadata", "labels").(map[string]any); ok {
			removeVersions(labels)
		}
		if labels, ok := each.value("spec", "template", "metadata", "labels").(map[string]any); ok {
			removeVersions(labels)
		}
		spec, _ := each.value("spec", "template", "spec").(map[string]any)
		containers, _ := spec["containers"].([]any)
		for _, container := range containers {
			image, _ := container.(map[string]any)["image"].(string)
			if repository, isTag := cutTag(image); isTag {
				container.(map[string]any)["image"] = repository
			}
		}
		if metadata := each.value("metadata").(map[string]any); each["kind"] == "Job" {
			// The name has a digest of the pod, and with it of the version.
			name := each.text("metadata", "name")
			metadata["name"] = name[:strings.LastIndex(name, "-")]
		}
		out, err := yaml.Marshal(each)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(out))
	}
	return all
}

func removeVersions(labels map[string]any) {
	for _, name := range []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"} {
		delete(labels, name)
	}
}

// cutTag returns an image without its tag.
func cutTag(image string) (string, bool) {
	at := strings.LastIndex(image, ":")
	if at < strings.LastIndex(image, "/") || strings.Contains(image, "@") {
		return image, false
	}
	return image[:at], true
}

// Wrong values are refused by Helm and by platform manifests. The error names the value, and quotes no password.
func TestWrongValues(t *testing.T) {
	var rows []struct {
		Values map[string]any
		Names  string
	}
	if err := yaml.Unmarshal([]byte(read(t, "testdata/wrong.yaml")), &rows); err != nil || len(rows) < 40 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		text, err := yaml.Marshal(row.Values)
		if err != nil {
			t.Fatal(err)
		}
		file := write(t, filepath.Join(t.TempDir(), "wrong.yaml"), string(text))
		for name, arguments := range map[string][]string{
			"helm": {"template", "platform", chart}, "platform": {"manifests"},
		} {
			output, err := run(t, "", nil, name, append(arguments, "-f", minimal, "-f", file)...)
			if err == nil || !strings.Contains(err.Error(), row.Names) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "nil pointer") {
				t.Errorf("%s takes %s, or does not name %s: %v\n%s", name, text, row.Names, err, last(output, 500))
			}
		}
	}
}

// A cluster takes every object, and admits every pod where the standard "restricted" is enforced.
func TestClusterTakesEveryObject(t *testing.T) {
	cluster := startCluster(t)
	for _, file := range valueFiles(t) {
		namespace := nameOf(file)
		cluster.kubectl(t, "", "create", "namespace", namespace)
		cluster.kubectl(t, "", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
		rendered := must(t, "", nil, "helm", "template", "platform", chart, "-n", namespace, "-f", file)
		dry := cluster.kubectl(t, rendered, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		for _, each := range objects(t, rendered) {
			if !strings.Contains(dry, "/"+each.text("metadata", "name")+" serverside-applied (server dry run)") {
				t.Errorf("%s: %s %s was not applied:\n%s", file, each["kind"], each.text("metadata", "name"), dry)
			}
			template, isPod := each.value("spec", "template").(map[string]any)
			if !isPod {
				continue
			}
			pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "pod", "labels": template["metadata"].(map[string]any)["labels"]}, "spec": template["spec"]}
			account := pod.text("spec", "serviceAccountName")
			if _, err := run(t, "", cluster.environment, "kubectl", "-n", namespace, "get", "serviceaccount", account); err != nil {
				cluster.kubectl(t, "", "-n", namespace, "create", "serviceaccount", account)
			}
			text, err := yaml.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			admitted := cluster.kubectl(t, string(text), "-n", namespace, "create", "--dry-run=server", "--validate=strict", "-o", "yaml", "-f", "-")
			if strings.Contains(admitted, "serviceAccountToken") != (each["kind"] == "Job") {
				t.Errorf("%s: only the pod of the Job has a token of the cluster:\n%s", file, admitted)
			}
		}
	}
	t.Run("restricted is enforced", func(t *testing.T) {
		rendered := must(t, "", nil, "helm", "template", "platform", chart, "-f", minimal, "--set=securityContext.allowPrivilegeEscalation=true")
		for _, each := range objects(t, rendered) {
			if each["kind"] == "Deployment" {
				text, err := yaml.Marshal(object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "pod"}, "spec": each.value("spec", "template", "spec")})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := run(t, string(text), cluster.environment, "kubectl", "-n", "minimal", "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
					t.Errorf("a pod that may escalate: %v", err)
				}
			}
		}
	})
}

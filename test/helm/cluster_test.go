package helm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	root  = "../.."
	chart = root + "/infra/helm/platform"
	// startWithin bounds how long a program may take until it answers.
	startWithin = 2 * time.Minute
)

// programs are the programs that the tests start, by their names.
var programs = sync.OnceValues(func() (map[string]string, error) {
	folder, err := filepath.Abs(root + "/build/test/helm")
	if err != nil {
		return nil, err
	}
	built := map[string]string{}
	for _, each := range []struct{ name, module, pkg string }{
		{"platform", root, "./local"},
		{"kubectl", root + "/test/kubectl", "."},
		{"etcd", ".", "go.etcd.io/etcd/server/v3"},
		{"helm", ".", "helm.sh/helm/v4/cmd/helm"},
		{"kube-apiserver", ".", "k8s.io/kubernetes/cmd/kube-apiserver"},
	} {
		built[each.name] = filepath.Join(folder, each.name)
		build := exec.Command("go", "build", "-ldflags", kubernetesVersion, "-o", built[each.name], each.pkg)
		build.Dir = each.module
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s: %w\n%s", each.name, err, output)
		}
	}
	return built, nil
})

// kubernetesVersion is the version of the programs of Kubernetes, which a build from modules does not know.
const kubernetesVersion = "-X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

func program(t *testing.T, name string) string {
	t.Helper()
	built, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return built[name]
}

// run runs a program, and returns its output. Input is its standard input.
func run(t *testing.T, input string, environment []string, name string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t, name), arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdin = strings.NewReader(input)
	var output, failure bytes.Buffer
	command.Stdout, command.Stderr = &output, &failure
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(arguments, " "), err, output.String(), failure.String())
	}
	return output.String() + failure.String(), err
}

// must is run for what cannot fail.
func must(t *testing.T, input string, environment []string, name string, arguments ...string) string {
	t.Helper()
	output, err := run(t, input, environment, name, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// process is a program that runs until its end is asked for.
type process struct {
	command *exec.Cmd
	log     *bytes.Buffer
	ended   chan struct{}
}

// start starts a program that the end of the test ends.
func start(t *testing.T, environment []string, path string, arguments ...string) *process {
	t.Helper()
	started := &process{command: exec.Command(path, arguments...), log: &bytes.Buffer{}, ended: make(chan struct{})}
	started.command.Env = environment
	started.command.Stdout, started.command.Stderr = started.log, started.log
	if err := started.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = started.command.Wait()
		close(started.ended)
	}()
	t.Cleanup(func() {
		started.stop()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(path), last(started.log.String(), 4000))
		}
	})
	return started
}

// stop asks the process to end, and waits for it.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

func last(text string, most int) string { return text[max(0, len(text)-most):] }

// waitUntil calls ready until it succeeds.
func waitUntil(t *testing.T, p *process, about string, ready func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("%s: the process ended:\n%s", about, last(p.log.String(), 4000))
		case <-ctx.Done():
			t.Fatalf("%s: %v", about, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// freeAddress returns a loopback address on which nothing listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cluster is an API server of Kubernetes without nodes and controllers.
type cluster struct {
	address, folder string
	// environment has the kubeconfig of an admin, and an empty home for Helm.
	environment []string
}

// kubeconfig writes a kubeconfig for a token.
func (c *cluster) kubeconfig(t *testing.T, name, namespace, token string) string {
	t.Helper()
	return write(t, filepath.Join(c.folder, name), fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"clusters": [{"name": "c", "cluster": {"server": "https://%s", "certificate-authority": %q}}],
"users": [{"name": "u", "user": {"token": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": %q}}]}`,
		c.address, filepath.Join(c.folder, "certificates", "apiserver.crt"), token, namespace))
}

// kubectl runs kubectl as an admin.
func (c *cluster) kubectl(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	return must(t, input, c.environment, "kubectl", arguments...)
}

// startCluster starts etcd and kube-apiserver, with the definitions of the other kinds that the chart makes.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	folder := t.TempDir()
	etcdClients, etcdPeers := "http://"+freeAddress(t), "http://"+freeAddress(t)
	etcd := start(t, nil, program(t, "etcd"), "--name=test", "--data-dir="+filepath.Join(folder, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcdClients, "--advertise-client-urls="+etcdClients,
		"--listen-peer-urls="+etcdPeers, "--initial-advertise-peer-urls="+etcdPeers, "--initial-cluster=test="+etcdPeers, "--log-level=error")
	waitUntil(t, etcd, "etcd", func() error {
		answer, err := http.Get(etcdClients + "/health")
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	})
	token := rand.Text()
	write(t, filepath.Join(folder, "tokens.csv"), token+",admin,admin,system:masters\n")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	signing := write(t, filepath.Join(folder, "signing.key"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
	made := &cluster{address: freeAddress(t), folder: folder}
	host, port, err := net.SplitHostPort(made.address)
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, nil, program(t, "kube-apiserver"), "--etcd-servers="+etcdClients, "--bind-address="+host, "--secure-port="+port,
		"--cert-dir="+filepath.Join(folder, "certificates"), "--token-auth-file="+filepath.Join(folder, "tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://cluster.example.com", "--service-account-key-file="+signing, "--service-account-signing-key-file="+signing,
		"--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none", "--advertise-address=192.0.2.1")
	kubeconfig := made.kubeconfig(t, "admin", "default", token)
	home := filepath.Join(folder, "home")
	made.environment = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	waitUntil(t, server, "kube-apiserver", func() error {
		_, err := run(t, "", made.environment, "kubectl", "get", "--raw=/readyz")
		return err
	})
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	made.kubectl(t, "", "apply", "--server-side", "-f", "testdata/definitions.yaml", "-f", filepath.Join(strings.TrimSpace(string(module)), "config/crd/standard"))
	made.kubectl(t, "", "wait", "--for=condition=Established", "--timeout=2m", "customresourcedefinitions", "--all")
	return made
}

// object is an object of Kubernetes.
type object map[string]any

// value returns the value of the field at a path; nil if there is none.
func (o object) value(path ...string) any {
	var found any = map[string]any(o)
	for _, name := range path {
		inner, _ := found.(map[string]any)
		found = inner[name]
	}
	return found
}

func (o object) text(path ...string) string {
	text, _ := o.value(path...).(string)
	return text
}

// objects reads YAML documents.
func objects(t *testing.T, text string) []object {
	t.Helper()
	var found []object
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var each object
		if err := yaml.Unmarshal([]byte(document+"\n"), &each); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if len(each) > 0 {
			found = append(found, each)
		}
	}
	return found
}

// get reads an object of the cluster.
func (c *cluster) get(t *testing.T, arguments ...string) object {
	t.Helper()
	var found object
	if err := json.Unmarshal([]byte(c.kubectl(t, "", append([]string{"get", "-o", "json"}, arguments...)...)), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

package helm

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// installation is a release in a namespace of a cluster, whose pods the tests start.
type installation struct {
	*cluster
	namespace string
	// redis is the URL of its state.
	redis string
}

// install starts a Redis, makes the Secrets that the chart needs, and installs the chart.
func install(t *testing.T, in *cluster, namespace string, arguments ...string) *installation {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := start(t, nil, "/usr/bin/env", "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	waitUntil(t, server, "redis-server", func() error {
		connection, err := net.Dial("unix", socket)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
	installed := &installation{cluster: in, namespace: namespace, redis: "unix://" + socket}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	in.kubectl(t, "", "create", "namespace", namespace)
	in.kubectl(t, "", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	in.kubectl(t, "", "-n", namespace, "create", "secret", "generic", "platform-redis", "--from-literal=url="+installed.redis)
	in.kubectl(t, "", "-n", namespace, "create", "secret", "generic", "platform-encryption", "--from-literal=key="+base64.StdEncoding.EncodeToString(key))
	must(t, "", in.environment, "helm", append([]string{"install", "platform", chart, "-n", namespace, "-f", minimal}, arguments...)...)
	return installed
}

// job returns the Job of the release. There is one.
func (i *installation) job(t *testing.T) object {
	t.Helper()
	items, _ := i.get(t, "-n", i.namespace, "jobs").value("items").([]any)
	if len(items) != 1 {
		t.Fatalf("there are %d Jobs", len(items))
	}
	return object(items[0].(map[string]any))
}

// commandLine returns the arguments and the variables of the only container of a workload, as a node would set them. Its paths lie in
// folder, in place of the root of the container.
func (i *installation) commandLine(t *testing.T, workload object) (arguments, environment []string) {
	t.Helper()
	container := object(workload.value("spec", "template", "spec", "containers").([]any)[0].(map[string]any))
	for _, each := range container["args"].([]any) {
		arguments = append(arguments, each.(string))
	}
	for _, each := range container["env"].([]any) {
		variable := object(each.(map[string]any))
		value := variable.text("value")
		if name := variable.text("valueFrom", "secretKeyRef", "name"); name != "" {
			value = i.secret(t, name, variable.text("valueFrom", "secretKeyRef", "key"))
		}
		environment = append(environment, variable.text("name")+"="+value)
	}
	return arguments, environment
}

// secret returns an entry of a Secret.
func (i *installation) secret(t *testing.T, name, entry string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(i.get(t, "-n", i.namespace, "secret", name).text("data", entry))
	if err != nil || len(text) == 0 {
		t.Fatalf("the Secret %s has no %s: %v", name, entry, err)
	}
	return string(text)
}

// runJob runs the command line of the Job with the rights of its ServiceAccount.
func (i *installation) runJob(t *testing.T) string {
	t.Helper()
	job := i.job(t)
	token := strings.TrimSpace(i.kubectl(t, "", "-n", i.namespace, "create", "token", job.value("spec", "template", "spec").(map[string]any)["serviceAccountName"].(string)))
	arguments, environment := i.commandLine(t, job)
	return must(t, "", append(environment, "KUBECONFIG="+i.kubeconfig(t, "job", i.namespace, token)), "platform", arguments...)
}

// startPod starts the command line of the Deployment on an address of its own, in a folder that it cannot write to and with no
// other variables.
func (i *installation) startPod(t *testing.T) (pod *process, address string) {
	t.Helper()
	arguments, environment := i.commandLine(t, i.get(t, "-n", i.namespace, "deployment", "platform"))
	address = freeAddress(t)
	at := slices.Index(arguments, "--listen=:8443")
	if at < 0 {
		t.Fatalf("the Deployment listens elsewhere: %q", arguments)
	}
	arguments[at] = "--listen=" + address
	pod = start(t, environment, program(t, "platform"), arguments...)
	client := i.client(t, address)
	waitUntil(t, pod, "the platform", func() error {
		answer, err := client.Get("https://platform.example.com/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
	return pod, address
}

// client returns a client that trusts the authority in the Secret of the admin key, and reaches every host at an address.
func (i *installation) client(t *testing.T, address string) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(i.secret(t, "platform-admin-key", "ca.crt")))
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// From nothing to the first key: the chart is installed, its Job makes the admin key, its pods serve, and kubectl lists access keys.
func TestInstall(t *testing.T) {
	cluster := startCluster(t)
	here := install(t, cluster, "here")
	report := here.runJob(t)
	key := here.secret(t, "platform-admin-key", "key")
	if !strings.Contains(report, "kubectl -n here get secret platform-admin-key") || strings.Contains(report, key) {
		t.Errorf("the Job says %q", report)
	}
	// The Job may run again, as after a restart of its node.
	if again := here.runJob(t); here.secret(t, "platform-admin-key", "key") != key {
		t.Errorf("the Job made another key: %s", again)
	}
	_, address := here.startPod(t)
	folder := t.TempDir()
	authority := write(t, filepath.Join(folder, "ca.crt"), here.secret(t, "platform-admin-key", "ca.crt"))
	platform := []string{"KUBECONFIG=" + write(t, filepath.Join(folder, "kubeconfig"), fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"clusters": [{"name": "c", "cluster": {"server": "https://%s/kubernetes/management", "certificate-authority": %q, "tls-server-name": "platform.here.svc"}}],
"users": [{"name": "u", "user": {"token": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, address, authority, key))}
	if output := must(t, "", platform, "kubectl", "get", "ownedaccesskeys", "-o", "name"); output != "ownedaccesskey.management.platform.sh/admin\n" {
		t.Errorf("kubectl get ownedaccesskeys prints %q", output)
	}
	// A second release in another namespace has nothing in common with the first one.
	there := install(t, cluster, "there", "--set=fullnameOverride=platform")
	there.runJob(t)
	if there.secret(t, "platform-admin-key", "key") == key {
		t.Error("two releases have the same key")
	}
}

// The account of the Job may do what the Job does, and nothing else.
func TestJobRights(t *testing.T) {
	cluster := startCluster(t)
	here := install(t, cluster, "here")
	for _, row := range []struct {
		allowed   bool
		arguments []string
	}{
		{true, []string{"create", "secrets"}},
		{true, []string{"get", "secrets/platform-admin-key"}},
		{false, []string{"get", "secrets/platform-encryption"}},
		{false, []string{"list", "secrets"}},
		{false, []string{"update", "secrets/platform-admin-key"}},
		{false, []string{"create", "pods"}},
	} {
		output, err := run(t, "", here.environment, "kubectl", append([]string{"-n", "here", "auth", "can-i", "--as=system:serviceaccount:here:platform-admin"}, row.arguments...)...)
		if (err == nil) != row.allowed {
			t.Errorf("%v: %s%v", row.arguments, output, err)
		}
	}
}

// A release is upgraded to another version of the chart and back. Each version has a Job of its own, because a Job cannot be changed.
func TestUpgradeAndRollback(t *testing.T) {
	cluster := startCluster(t)
	here := install(t, cluster, "here")
	image := func() string {
		container := here.get(t, "-n", "here", "deployment", "platform").value("spec", "template", "spec", "containers").([]any)[0]
		return object(container.(map[string]any)).text("image")
	}
	firstJob, firstImage := here.job(t).text("metadata", "name"), image()
	next := filepath.Join(t.TempDir(), "platform")
	if err := os.CopyFS(next, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	about := strings.NewReplacer("version: 0.0.0", "version: 0.1.0", "appVersion: dev", "appVersion: v0.1.0").Replace(read(t, filepath.Join(chart, "Chart.yaml")))
	write(t, filepath.Join(next, "Chart.yaml"), about)
	must(t, "", here.environment, "helm", "upgrade", "platform", next, "-n", "here", "-f", minimal)
	if image() == firstImage || here.job(t).text("metadata", "name") == firstJob {
		t.Errorf("after the upgrade: image %s, Job %s", image(), here.job(t).text("metadata", "name"))
	}
	here.runJob(t)
	key := here.secret(t, "platform-admin-key", "key")
	must(t, "", here.environment, "helm", "rollback", "platform", "1", "-n", "here")
	if image() != firstImage || here.job(t).text("metadata", "name") != firstJob {
		t.Errorf("after the rollback: image %s, Job %s", image(), here.job(t).text("metadata", "name"))
	}
	here.runJob(t)
	if here.secret(t, "platform-admin-key", "key") != key {
		t.Error("the rollback has another admin key")
	}
	must(t, "", here.environment, "helm", "uninstall", "platform", "-n", "here")
	// What the Job made is not the release's, so that an uninstall loses no key.
	if here.secret(t, "platform-admin-key", "key") != key {
		t.Error("the uninstall changed the admin key")
	}
}

// balancer passes connections to pods that are ready, as a Service does.
type balancer struct {
	mutex sync.Mutex
	pods  []string
	next  int
}

func (b *balancer) set(pods ...string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.pods = pods
}

func (b *balancer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	b.mutex.Lock()
	b.next++
	pod := b.pods[b.next%len(b.pods)]
	b.mutex.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, pod)
}

// Two pods are replaced in turn while clients read and write: no request fails, and no admin key is made.
func TestReplacedUnderLoad(t *testing.T) {
	cluster := startCluster(t)
	here := install(t, cluster, "here", "--set=shutdownDelaySeconds=2")
	here.runJob(t)
	type pod struct {
		process *process
		address string
	}
	newPod := func() pod {
		started, address := here.startPod(t)
		return pod{started, address}
	}
	pods := [2]pod{newPod(), newPod()}
	service := &balancer{}
	service.set(pods[0].address, pods[1].address)
	key := here.secret(t, "platform-admin-key", "key")
	const keys = "https://platform.here.svc/kubernetes/management/apis/management.platform.sh/v1/ownedaccesskeys"
	var requests, failures atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 3 {
		client := here.client(t, "")
		client.Transport.(*http.Transport).DialContext = service.dial
		clients.Go(func() {
			for ctx.Err() == nil {
				method, body := http.MethodGet, ""
				if requests.Add(1)%3 == 0 {
					method, body = http.MethodPost, `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"generateName":"load-"}}`
				}
				if err := ask(client, method, keys, key, body); err != nil {
					failures.Add(1)
					t.Error(err)
				}
			}
		})
	}
	for i := range pods {
		fresh := newPod()
		// A Service takes a pod out when it ends, and the pod still answers meanwhile.
		service.set(pods[1-i].address, fresh.address)
		pods[i].process.stop()
		pods[i] = fresh
	}
	stop()
	clients.Wait()
	if failures.Load() > 0 || requests.Load() < 10 {
		t.Errorf("%d of %d requests failed", failures.Load(), requests.Load())
	}
	t.Logf("%d requests", requests.Load())
	client := here.client(t, "")
	client.Transport.(*http.Transport).DialContext = service.dial
	if err := ask(client, http.MethodGet, keys+"/admin", key, ""); err != nil {
		t.Error(err)
	}
}

// ask sends a request, and reads the answer. An answer that is no success is an error.
func ask(client *http.Client, method, url, key, body string) error {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	// A request fails if the client says so; it is not sent again.
	request.GetBody = nil
	client.Timeout = time.Minute
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s: %s", method, answer.Status, text)
	}
	return nil
}

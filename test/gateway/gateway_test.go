// Package gateway_test runs NGINX, as it stands in front of the functions on Knative, with the routes that are generated from the catalog. It
// imports no code of the project, so that it tests the files as they are deployed. Source: ADR-0010.
package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const root = "../.."

// gateway starts NGINX with infra/nginx in front of an ingress, and returns its address. Only the addresses and the certificate differ from a
// deployment.
func gateway(t *testing.T, ingress string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("make nginx has not installed NGINX: %v", err)
		}
		t.Skipf("NGINX is not installed (make nginx): %v", err)
	}
	folder := t.TempDir()
	routes, err := os.ReadFile(filepath.Join(root, "infra/nginx/routes.conf"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "infra/nginx/nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, change := range [][2]string{
		{"kourier-internal.kourier-system.svc.cluster.local:80", ingress},
		{"listen 443 ssl;", "listen unix:" + folder + "/socket;"},
		{"        ssl_certificate tls.crt;\n        ssl_certificate_key tls.key;\n", ""},
		{"worker_processes auto;", "worker_processes 1;\ndaemon off;\nerror_log stderr;"},
	} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("nginx.conf does not have %q once", change[0])
		}
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	for name, content := range map[string]string{"nginx.conf": text, "routes.conf": string(routes)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-p", folder, "-c", "nginx.conf")
	var failure strings.Builder
	command.Stderr = &failure
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	exit := make(chan error, 1)
	go func() { exit <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-exit
	})
	for {
		connection, err := net.Dial("unix", folder+"/socket")
		if err == nil {
			_ = connection.Close()
			return folder + "/socket"
		}
		select {
		case err := <-exit:
			exit <- err
			t.Fatalf("NGINX ended: %v\n%s", err, failure.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// NGINX with the generated routes sends each route of the table to its function, and other paths to the function for unknown paths. It passes
// on each part of a response as soon as the part arrives.
func TestGateway(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	ingress := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s\n", r.Host, r.Header.Get("X-Forwarded-For"), r.URL.RequestURI())
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-more
			_, _ = io.WriteString(w, "second\n")
			w.(http.Flusher).Flush()
			<-more
		}
	}))
	t.Cleanup(ingress.Close)
	socket := gateway(t, ingress.Listener.Addr().String())
	client := &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(method, path string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://gateway"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", "203.0.113.9")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	answered := func(method, path string) string {
		t.Helper()
		response := ask(method, path)
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}

	content, err := os.ReadFile(filepath.Join(root, "infra/terraform/functions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]struct{ Routes []string }
	if err := json.Unmarshal(content, &table); err != nil {
		t.Fatal(err)
	}
	step, tail, requests := regexp.MustCompile(`\{\w+\}`), regexp.MustCompile(`\{\w+\+\}`), 0
	for function, one := range table {
		for _, route := range one.Routes {
			method, path, _ := strings.Cut(route, " ")
			if method == http.MethodHead {
				continue
			}
			path = tail.ReplaceAllString(step.ReplaceAllString(path, "a%2Fb"), "a/b")
			if got, want := answered(method, path+"?limit=1"), function+".platform.svc.cluster.local unix: "+path+"?limit=1\n"; got != want {
				t.Errorf("%s: got %q, want %q", route, got, want)
			}
			requests++
		}
	}
	if requests < 100 {
		t.Errorf("the table has %d routes: that cannot be all", requests)
	}
	for _, path := range []string{"/", "/nothing?x=/version", "/kubernetes/management/apis/management.platform.sh/v1/ownedaccesskeys/a/b/c"} {
		if got := answered(http.MethodGet, path); !strings.HasPrefix(got, "discoverapi.") {
			t.Errorf("%s: got %q", path, got)
		}
	}

	response := ask(http.MethodGet, "/kubernetes/management/apis/management.platform.sh/v1/ownedaccesskeys?watch=true")
	defer func() { _ = response.Body.Close() }()
	events := bufio.NewReader(response.Body)
	if first, err := events.ReadString('\n'); err != nil || !strings.HasPrefix(first, "listaccesskeys.") {
		t.Errorf("the first event of a watch is %q, %v", first, err)
	}
	more <- struct{}{}
	if second, err := events.ReadString('\n'); err != nil || second != "second\n" {
		t.Errorf("the second event of a watch is %q, %v", second, err)
	}
	close(more)
}

package runner

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"management.platform.sh/local/localtest"
)

// The kubeconfig alone is enough to reach the server and to verify it.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	created := openFolder(t, folder)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-token" || r.URL.Path != "/base/healthz" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	address := server.Listener.Addr().String()
	pair, err := created.ServerCertificate(time.Now(), nil, address)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)

	file := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(file, "https://"+address+"/base", trust{authorities: created.PEM}, "the-token"); err != nil {
		t.Fatal(err)
	}
	localtest.WantPrivate(t, file)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Clusters) != 1 || len(config.AuthInfos) != 1 || len(config.Contexts) != 1 {
		t.Errorf("it has %d clusters, %d users and %d contexts", len(config.Clusters), len(config.AuthInfos), len(config.Contexts))
	}
	if err := clientcmd.ConfirmUsable(*config, config.CurrentContext); err != nil {
		t.Error(err)
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if client.Host != "https://"+address+"/base" || client.BearerToken != "the-token" || client.Insecure ||
		!bytes.Equal(client.CAData, created.PEM) || client.BearerTokenFile != "" || client.CAFile != "" {
		t.Errorf("clients understand %v", client)
	}
	sender, err := rest.HTTPClientFor(client)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := sender.Get(client.Host + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the answer is %s", answer.Status)
	}
}

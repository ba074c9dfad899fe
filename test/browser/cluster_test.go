package browser_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"management.platform.sh/test/launch"
)

// kubectl builds the unmodified kubectl and returns its path.
func kubectl(t *testing.T) string {
	t.Helper()
	program, err := launch.Kubectl(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// asAdmin sends an object to the API of a runner with the admin key, and returns the response.
func asAdmin(t *testing.T, origin, keyFile, path string, object any) []byte {
	t.Helper()
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/kubernetes/management"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	request.Header.Set("Content-Type", "application/json")
	// The authority of the runner is its own.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("POST %s: %d %s (%v)", path, answer.StatusCode, text, err)
	}
	return text
}

// clusterDocuments are what kubectl asks a cluster for before it lists namespaces, and the list.
var clusterDocuments = map[string]string{
	"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["get","list"],"shortNames":["ns"]}]}`,
	"/api/v1/namespaces": `{"kind":"NamespaceList","apiVersion":"v1","metadata":{},"items":[{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"inside"}}]}`,
}

// registerCluster starts a virtual cluster and registers it as p-shop/dev. Like a kube-apiserver with the webhook of the platform, it
// accepts the bearers that the platform knows, and the certificates of its signer.
func registerCluster(t *testing.T, origin, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * 365 * time.Hour),
	}
	authority, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(authority)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(parsed)
	cluster := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		known := len(r.TLS.PeerCertificates) > 0
		if bearer, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
			var review struct{ Status struct{ Authenticated bool } }
			answer := asAdmin(t, origin, keyFile, "/apis/authentication.k8s.io/v1/tokenreviews", map[string]any{
				"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": bearer},
			})
			known = json.Unmarshal(answer, &review) == nil && review.Status.Authenticated
		}
		document, found := clusterDocuments[r.URL.Path]
		switch {
		case !known:
			w.WriteHeader(http.StatusUnauthorized)
			document = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`
		case !found:
			w.WriteHeader(http.StatusNotFound)
			document = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"not found","code":404}`
		}
		_, _ = io.WriteString(w, document)
	}))
	cluster.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients, MinVersion: tls.VersionTLS12}
	cluster.StartTLS()
	t.Cleanup(cluster.Close)
	block := func(kind string, bytes []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
	}
	asAdmin(t, origin, keyFile, "/apis/management.platform.sh/v1/namespaces/p-shop/virtualclusterinstances", map[string]any{
		"apiVersion": "management.platform.sh/v1", "kind": "VirtualClusterInstance", "metadata": map[string]any{"name": "dev", "namespace": "p-shop"},
		"spec": map[string]any{
			"displayName": "Development", "owner": map[string]any{"user": "admin"},
			"accessPoint": map[string]any{"ingress": map[string]any{
				"enabled": true, "host": cluster.Listener.Addr().String(), "caData": block("CERTIFICATE", cluster.Certificate().Raw),
			}},
			"signer": map[string]any{"ca": map[string]any{"certData": block("CERTIFICATE", authority), "keyData": block("PRIVATE KEY", private)}},
		},
	})
}

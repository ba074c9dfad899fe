package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"management.platform.sh/shared/model/secret"
)

// auditPolicy corresponds to level 1 of the API's audit for the measured requests: reads are not recorded, and other requests are recorded
// without their objects.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
`

// keysDefinition describes access keys to a kube-apiserver.
const keysDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"ownedaccesskeys.management.platform.sh","annotations":{"api-approved.kubernetes.io":"unapproved, for a measurement"}},
"spec":{"group":"management.platform.sh","scope":"Cluster",
"names":{"plural":"ownedaccesskeys","singular":"ownedaccesskey","kind":"OwnedAccessKey","listKind":"OwnedAccessKeyList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{
"displayName":{"type":"string","maxLength":256},"description":{"type":"string","maxLength":4096},"user":{"type":"string"},
"ttl":{"type":"integer","format":"int64","minimum":0},"type":{"type":"string","enum":["Other","User","Kubeconfig"]},
"scope":{"type":"object","properties":{
"roles":{"type":"array","maxItems":100,"items":{"type":"object","required":["role"],"properties":{"role":{"type":"string"}}}},
"projects":{"type":"array","maxItems":100,"items":{"type":"object","required":["project"],"properties":{"project":{"type":"string"}}}},
"virtualClusters":{"type":"array","maxItems":100,"items":{"type":"object","required":["project"],
"properties":{"project":{"type":"string"},"virtualCluster":{"type":"string"}}}}}}}}}}}}]}}`

// serviceAccount is the account for which the kube-apiserver issues tokens.
const serviceAccount = "/api/v1/namespaces/default/serviceaccounts"

// startKubernetes starts a kube-apiserver and its etcd, which writes every change to disk before it answers. The
// kube-apiserver has access keys as a custom resource with a schema, RBAC, an admin with a static token, and a key of P-256
// for tokens.
func startKubernetes(ctx context.Context, folder string, deletes bool) (_ *side, err error) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%s %w", name, errAbsent)
		}
	}
	var started []*peer
	stop := func() {
		for i := len(started) - 1; i >= 0; i-- {
			started[i].stop()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	var addresses [3]string
	for i := range addresses {
		if addresses[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	clients, peers, address := "http://"+addresses[0], "http://"+addresses[1], addresses[2]
	etcd, err := startPeer(folder, "etcd", "--name=load", "--data-dir="+filepath.Join(folder, "etcd"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=load="+peers, "--log-level=error")
	if err != nil {
		return nil, err
	}
	started = append(started, etcd)
	if err := etcd.waitUntilReady(ctx, func(ctx context.Context) error {
		return ask(ctx, http.DefaultClient, http.MethodGet, clients+"/health", nil, nil, nil)
	}); err != nil {
		return nil, err
	}
	a := &api{
		base: "https://" + address, address: address, bearer: secret.String(rand.Text()), deletes: deletes,
		token: request{serviceAccount + "/load/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`},
	}
	_, key, err := newAuthority()
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making a key for tokens: %w", err)
	}
	certificates := filepath.Join(folder, "certificates")
	files := map[string][]byte{
		"policy.yaml": []byte(auditPolicy),
		"tokens.csv":  fmt.Appendf(nil, "%s,admin,admin,system:masters\n", a.bearer.Reveal()),
		"signing.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return nil, fmt.Errorf("preparing the kube-apiserver: %w", err)
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("preparing the kube-apiserver: %w", err)
	}
	apiserver, err := startPeer(folder, "kube-apiserver", "--etcd-servers="+clients, "--bind-address="+host, "--secure-port="+port,
		"--cert-dir="+certificates, "--token-auth-file="+filepath.Join(folder, "tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://load.example.com", "--service-account-key-file="+filepath.Join(folder, "signing.key"),
		"--service-account-signing-key-file="+filepath.Join(folder, "signing.key"), "--service-cluster-ip-range=10.96.0.0/24",
		"--endpoint-reconciler-type=none", "--advertise-address=192.0.2.1",
		"--audit-policy-file="+filepath.Join(folder, "policy.yaml"), "--audit-log-path="+filepath.Join(folder, "audit.log"))
	if err != nil {
		return nil, err
	}
	started = append(started, apiserver)
	roots := x509.NewCertPool()
	if err := apiserver.waitUntilReady(ctx, func(ctx context.Context) error {
		// kube-apiserver writes its own certificate when it starts.
		text, err := os.ReadFile(filepath.Join(certificates, "apiserver.crt"))
		if err != nil {
			return err
		}
		if !roots.AppendCertsFromPEM(text) {
			return errors.New("there is no certificate yet")
		}
		trust := &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}
		a.http = &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
		a.dial = func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{Config: trust}).DialContext(ctx, "tcp", address)
		}
		return a.ask(ctx, http.MethodGet, "/readyz", nil, nil)
	}); err != nil {
		return nil, err
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := a.ask(ctx, http.MethodGet, "/version", nil, &version); err != nil {
		return nil, fmt.Errorf("asking the kube-apiserver for its version: %w", err)
	}
	if err := a.ask(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", []byte(keysDefinition), nil); err != nil {
		return nil, fmt.Errorf("describing access keys to the kube-apiserver: %w", err)
	}
	if err := apiserver.waitUntilReady(ctx, func(ctx context.Context) error { return a.ask(ctx, http.MethodGet, keysPath, nil, nil) }); err != nil {
		return nil, err
	}
	// The namespace is created soon after the start.
	if err := apiserver.waitUntilReady(ctx, func(ctx context.Context) error {
		return a.ask(ctx, http.MethodPost, serviceAccount, []byte(`{"metadata":{"name":"load"}}`), nil)
	}); err != nil {
		return nil, err
	}
	if err := a.prepare(ctx); err != nil {
		return nil, err
	}
	return &side{
		name: kubernetesName, server: apiserver.processes(), store: etcd.processes(), subject: a.subject, stop: stop,
		about: "kube-apiserver " + version.GitVersion + ", etcd with fsync, HTTP/1.1 over TLS, custom resource with a schema, RBAC, audit at Metadata of writes in a file",
	}, nil
}

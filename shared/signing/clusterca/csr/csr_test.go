package csr_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/clusterca"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
	"management.platform.sh/shared/signing/clusterca/csr"
)

const root = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// cluster answers as a kube-apiserver does, with the shapes in testdata, and has a controller that signs.
type cluster struct {
	t      *testing.T
	server *httptest.Server
	ca     *clusterca.CA
	// looks is the number of reads of a request until it has a certificate; below zero it never has one.
	looks int
	// conditions are added to a new request, as another client would. conflict refuses an approval.
	conditions string
	conflict   bool
	// refuse answers a create. wrong signs for another subject. redirect is the address of a redirect.
	refuse, wrong, redirect bool

	mu sync.Mutex
	// object is the current request; names are all requests that were made, and removed the requests that were deleted.
	object         map[string]any
	names, removed []string
	seconds        any
	approved       bool
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	certificate, key := clustercatest.Authority(t, nil)
	ca, wrongCertificate, wrongKey := clusterca.ParseCA(certificate, key, 365*24*time.Hour, func() time.Time { return clustercatest.Now })
	if err := errors.Join(wrongCertificate, wrongKey); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, ca: ca}
	c.server = httptest.NewTLSServer(c)
	c.server.Config.ErrorLog = nil
	t.Cleanup(c.server.Close)
	return c
}

func (c *cluster) access() *clusterca.Access {
	return &clusterca.Access{
		Server: c.server.URL, Token: secret.String("sesame"),
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw}),
	}
}

func (c *cluster) shape(name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		c.t.Error(err)
	}
	return string(text)
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer sesame" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if c.redirect {
		if r.URL.Path == "/elsewhere" {
			c.t.Error("a redirection was followed, with the credential")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, root+"/")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == root:
		c.create(w, r)
	case r.Method == http.MethodPut && strings.HasSuffix(name, "/approval"):
		c.approve(w, r)
	case r.Method == http.MethodGet && c.object != nil:
		c.sign()
		c.answer(w, http.StatusOK)
	case r.Method == http.MethodDelete:
		c.removed = append(c.removed, name)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (c *cluster) answer(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(c.object); err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) create(w http.ResponseWriter, r *http.Request) {
	if c.refuse {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, c.shape("forbidden.json"))
		return
	}
	var sent struct {
		Kind, APIVersion string
		Metadata         struct{ Name string }
		Spec             map[string]any
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent.Kind != "CertificateSigningRequest" || sent.APIVersion != "certificates.k8s.io/v1" {
		c.t.Errorf("created with %+v, %v", sent, err)
	}
	c.names = append(c.names, sent.Metadata.Name)
	c.seconds = sent.Spec["expirationSeconds"]
	text := strings.NewReplacer("NAME", sent.Metadata.Name, "REQUEST", sent.Spec["request"].(string)).Replace(c.shape("created.json"))
	if err := json.Unmarshal([]byte(text), &c.object); err != nil {
		c.t.Error(err)
	}
	if c.conditions != "" {
		var conditions []any
		if err := json.Unmarshal([]byte(c.conditions), &conditions); err != nil {
			c.t.Error(err)
		}
		c.object["status"] = map[string]any{"conditions": conditions}
	}
	c.answer(w, http.StatusCreated)
}

func (c *cluster) approve(w http.ResponseWriter, r *http.Request) {
	var sent map[string]any
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		c.t.Error(err)
	}
	if c.conflict {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
		return
	}
	if version := sent["metadata"].(map[string]any)["resourceVersion"]; version != "1042" {
		c.t.Errorf("approved without the resource version: %v", version)
	}
	c.object, c.approved = sent, true
	c.answer(w, http.StatusOK)
}

// sign is the controller, which acts after that many reads.
func (c *cluster) sign() {
	if c.looks--; c.looks >= 0 || !c.approved || c.looks < -1000 {
		return
	}
	raw, err := json.Marshal(c.object["spec"].(map[string]any)["request"])
	if err != nil {
		c.t.Error(err)
	}
	var text []byte
	if err := json.Unmarshal(raw, &text); err != nil {
		c.t.Error(err)
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = parsed.CheckSignature()
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	request := clusterca.Request{Subject: parsed.Subject, Key: publicHalf{public: parsed.PublicKey}}
	if c.wrong {
		request = clustercatest.Request(c.t, "somebody else")
	}
	chain, err := c.ca.Sign(context.Background(), request)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.object["status"].(map[string]any)["certificate"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[0].Raw})
}

// publicHalf is a key pair of which the cluster has the public half.
type publicHalf struct {
	crypto.Signer

	public crypto.PublicKey
}

func (p publicHalf) Public() crypto.PublicKey { return p.public }

func TestSign(t *testing.T) {
	t.Parallel()
	denied := func(c *cluster) { c.conditions = c.shape("denied.json") }
	for _, row := range []struct {
		about    string
		world    func(*cluster)
		options  csr.Options
		lifetime time.Duration
		seconds  any
		want     error
	}{
		{"at once", func(*cluster) {}, csr.Options{AllowLocal: true}, time.Hour, 3600.0, nil},
		{"0 leaves the lifetime to the cluster (Spec 2.6)", func(*cluster) {}, csr.Options{AllowLocal: true}, 0, nil, nil},
		{"after a while", func(c *cluster) { c.looks = 3 }, csr.Options{AllowLocal: true}, time.Hour, 3600.0, nil},
		{"denied", denied, csr.Options{AllowLocal: true}, time.Hour, 3600.0, clusterca.ErrDenied},
		{"denied while it was approved", func(c *cluster) { denied(c); c.conflict = true }, csr.Options{AllowLocal: true}, time.Hour, 3600.0, clusterca.ErrDenied},
		{"approved, and not signed", func(c *cluster) { c.conditions = c.shape("failed.json") }, csr.Options{AllowLocal: true}, time.Hour, 3600.0, clusterca.ErrDenied},
		{"not permitted", func(c *cluster) { c.refuse = true }, csr.Options{AllowLocal: true}, time.Hour, nil, clusterca.ErrDenied},
		{"never", func(c *cluster) { c.looks = 1 << 30 }, csr.Options{AllowLocal: true, Within: time.Second}, time.Hour, 3600.0, clusterca.ErrTimeout},
		{"for somebody else", func(c *cluster) { c.wrong = true }, csr.Options{AllowLocal: true}, time.Hour, 3600.0, clusterca.ErrUnreachable},
		{"elsewhere", func(c *cluster) { c.redirect = true }, csr.Options{AllowLocal: true}, time.Hour, nil, clusterca.ErrUnreachable},
		{"gone", func(c *cluster) { c.server.Close() }, csr.Options{AllowLocal: true}, time.Hour, nil, clusterca.ErrUnreachable},
		{"at an address of this machine", func(*cluster) {}, csr.Options{}, time.Hour, nil, clusterca.ErrUnreachable},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			row.world(c)
			s, err := csr.New(c.access(), row.options)
			if err != nil {
				t.Fatal(err)
			}
			request := clustercatest.Request(t, "ana", "team")
			request.Lifetime = row.lifetime
			chain, err := s.Sign(t.Context(), request)
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
				t.Fatalf("%v, want %v", err, row.want)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			// A busy machine may take all the time for the first request.
			if c.seconds != row.seconds && (c.seconds != nil || !errors.Is(row.want, clusterca.ErrTimeout)) {
				t.Errorf("expirationSeconds is %v, want %v", c.seconds, row.seconds)
			}
			if len(c.names) > 0 && (len(c.names) != 1 || len(c.removed) != 1 || c.removed[0] != c.names[0]) {
				t.Errorf("made %q, removed %q", c.names, c.removed)
			}
			if row.want != nil {
				if chain != nil {
					t.Error("there is a certificate all the same")
				}
				return
			}
			if got := chain[0]; got.Subject.CommonName != "ana" || !got.PublicKey.(*ecdsa.PublicKey).Equal(request.Key.Public()) {
				t.Errorf("a certificate of %s", got.Subject)
			}
			roots := x509.NewCertPool()
			roots.AddCert(c.ca.Certificate)
			if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: clustercatest.Now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A request that is given up ends, and what was created is removed all the same.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.looks = 1 << 30
	s, err := csr.New(c.access(), csr.Options{AllowLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	request := clustercatest.Request(t, "ana")
	done := make(chan error, 1)
	go func() {
		_, err := s.Sign(ctx, request)
		done <- err
	}()
	for looked := false; !looked; {
		c.mu.Lock()
		looked = c.approved
		c.mu.Unlock()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.removed) != 1 {
		t.Errorf("removed %q", c.removed)
	}
}

// A server that is not the server of the kubeconfig gets no credential.
func TestOtherServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	access := c.access()
	access.CA, _ = clustercatest.Authority(t, nil)
	s, err := csr.New(access, csr.Options{AllowLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(t.Context(), clustercatest.Request(t, "ana")); !errors.Is(err, clusterca.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkKubeconfig is whole requests for a kubeconfig on a real Redis, with a token and with a certificate of an
// authority, beside a request for a token of direct cluster endpoints, and beside what certificates cost by themselves: a key
// pair and the signature of the authority.
func BenchmarkKubeconfig(b *testing.B) {
	s := newCredentialServer(b, redistest.Server(b).UnixURL())
	for _, request := range credentials {
		b.Run(request.name, func(b *testing.B) {
			b.ReportAllocs()
			before := used(b)
			for b.Loop() {
				if got := s.call(http.MethodPost, request.path, "", []byte(request.body)); got != http.StatusCreated {
					b.Fatalf("HTTP status %d", got)
				}
			}
			b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
	b.Run("x509", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			bareCertificate(b)
		}
	})
}

// BenchmarkInstance is whole requests for one object of another resource than the caller's key, on a real Redis.
func BenchmarkInstance(b *testing.B) {
	s := newCredentialServer(b, redistest.Server(b).UnixURL())
	item := apiPath + "/namespaces/p-shop/virtualclusterinstances/dev"
	for _, request := range []struct {
		name string
		ask  func(i int) int
	}{
		{"get", func(int) int { return s.call(http.MethodGet, item, "", nil) }},
		{"patch", func(i int) int { return s.patch(item, fmt.Sprintf(`{"spec":{"displayName":"%d"}}`, i)) }},
	} {
		b.Run(request.name, func(b *testing.B) {
			b.ReportAllocs()
			before, i := used(b), 0
			for b.Loop() {
				i++
				if got := request.ask(i); got != http.StatusOK {
					b.Fatalf("HTTP status %d", got)
				}
			}
			b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// apiPath is that of the resources of the API.
var apiPath = frame.BasePath + "/apis/" + model.SchemeGroupVersion.String()

// credentials are the requests for credentials, with the most round trips to Redis that each takes.
var credentials = []struct {
	name, path, body string
	trips            int
}{
	// The caller with the instance, and the new access key.
	{"key", apiPath + "/namespaces/p-shop/virtualclusterinstances/dev/kubeconfig", `{}`, 2},
	// The caller with the instance.
	{"certificate", apiPath + "/namespaces/p-shop/virtualclusterinstances/dev/kubeconfig", `{"spec":{"clientCert":true}}`, 1},
	// The caller and the record of the token.
	{"token", apiPath + "/directclusterendpointtokens", `{"metadata":{},"spec":{}}`, 2},
}

// newCredentialServer is newServer with what tokens and kubeconfigs need: an instance with an authority.
func newCredentialServer(t testing.TB, url string) *server {
	t.Helper()
	s := newServer(t, url, func() time.Time { return clustercatest.Now })
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	s.env.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	s.env.Tokens.Issuer = "https://platform.example"
	s.Handler = s.Mount(catalog.Functions...)
	certificate, key := clustercatest.Authority(t, nil)
	if _, err := resource.Create(t.Context(), kinds.Instances(s.env), resource.CreateInput[*model.VirtualClusterInstance]{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins}), Namespace: "p-shop",
		Object: &model.VirtualClusterInstance{
			ObjectMeta: metav1.ObjectMeta{Name: "dev"},
			Spec: model.VirtualClusterInstanceSpec{
				AccessPoint: &model.InstanceAccessPoint{Ingress: &model.InstanceIngress{Enabled: true, Host: "dev.example.com", CAData: certificate}},
				Signer:      &model.InstanceSigner{CA: &model.InstanceSignerCA{CertData: certificate, KeyData: secret.WriteOnlyBytes(key)}},
			},
		},
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// used is the time that this process has spent on processors.
func used(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var authority = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}

func bareCertificate(b *testing.B) {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "ana"}, NotAfter: time.Now().Add(time.Hour)}
	if _, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), key); err != nil {
		b.Fatal(err)
	}
}

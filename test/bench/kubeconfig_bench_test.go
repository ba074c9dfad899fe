package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
// authority, beside what certificates cost by themselves: a key pair, a request and the signature on it.
func BenchmarkKubeconfig(b *testing.B) {
	s := newServer(b, redistest.Server(b).UnixURL(), func() time.Time { return clustercatest.Now })
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		b.Fatal(err)
	}
	s.env.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	certificate, key := clustercatest.Authority(b, nil)
	if _, err := resource.Create(b.Context(), kinds.Open(s.env).Instances, resource.CreateInput[*model.VirtualClusterInstance]{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins}), Namespace: "p-shop",
		Object: &model.VirtualClusterInstance{
			ObjectMeta: metav1.ObjectMeta{Name: "dev"},
			Spec: model.VirtualClusterInstanceSpec{
				AccessPoint: &model.InstanceAccessPoint{Ingress: &model.InstanceIngress{Enabled: true, Host: "dev.example.com", CAData: certificate}},
				Signer:      &model.InstanceSigner{CA: &model.InstanceSignerCA{CertData: certificate, KeyData: secret.WriteOnlyBytes(key)}},
			},
		},
	}); err != nil {
		b.Fatal(err)
	}
	path := frame.BasePath + "/apis/" + model.SchemeGroupVersion.String() + "/namespaces/p-shop/virtualclusterinstances/dev/kubeconfig"
	for name, body := range map[string]string{"token": `{}`, "certificate": `{"spec":{"clientCert":true}}`} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := s.call(http.MethodPost, path, "", []byte(body)); got != http.StatusCreated {
					b.Fatalf("HTTP status %d", got)
				}
			}
		})
	}
	b.Run("x509", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			bareCertificate(b)
		}
	})
}

var authority = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}

func bareCertificate(b *testing.B) {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ana"}}, key)
	if err != nil {
		b.Fatal(err)
	}
	asked, err := x509.ParseCertificateRequest(request)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{Subject: asked.Subject, NotAfter: time.Now().Add(time.Hour)}
	if _, err := x509.CreateCertificate(rand.Reader, template, authority, asked.PublicKey, key); err != nil {
		b.Fatal(err)
	}
}

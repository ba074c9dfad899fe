// Package clustercatest makes certificate authorities for tests. Source: ADR-0017.
package clustercatest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"management.platform.sh/shared/signing/clusterca"
)

// Now is in the middle of the validity of an authority that Authority makes.
var Now = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)

// Authority makes an authority that is valid for a year from Now, unless change alters that. It returns the certificate
// and the key in PEM.
func Authority(t testing.TB, change func(*x509.Certificate)) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: Now.Add(-time.Hour), NotAfter: Now.Add(365 * 24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key(t, private)
}

// Key returns a new private key in PEM.
func Key(t testing.TB, private crypto.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Request returns a request for a certificate of a user with groups and a new key pair.
func Request(t testing.TB, user string, groups ...string) clusterca.Request {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return clusterca.Request{Subject: pkix.Name{CommonName: user, Organization: groups}, Key: private}
}

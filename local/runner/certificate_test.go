package runner

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"management.platform.sh/local/authority"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
)

// writeCertificate writes a certificate and its key for a name, signed by an authority.
func writeCertificate(t *testing.T, from *authority.Authority, certFile, keyFile, name string) {
	t.Helper()
	pair, err := from.ServerCertificate(time.Now(), []string{name}, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writeChain(t, certFile, pair.Certificate)
	if err := os.WriteFile(keyFile, authority.EncodePEM("PRIVATE KEY", key), 0o600); err != nil {
		t.Fatal(err)
	}
}

// renewCertificate writes a certificate for a name and the key that the files have already.
func renewCertificate(t *testing.T, from *authority.Authority, certFile, keyFile, name string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	template := *pair.Leaf
	template.DNSNames = []string{name}
	raw, err := from.Sign(&template, pair.Leaf.PublicKey.(*ecdsa.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	writeChain(t, certFile, [][]byte{raw, rawOf(from)})
}

// openFolder returns the authority of a folder.
func openFolder(t *testing.T, folder string) *authority.Authority {
	t.Helper()
	opened, err := authority.OpenFolder(folder, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// rawOf returns the certificate of an authority in DER.
func rawOf(from *authority.Authority) []byte {
	block, _ := pem.Decode(from.PEM)
	return block.Bytes
}

func writeChain(t *testing.T, file string, chain [][]byte) {
	t.Helper()
	var text []byte
	for _, raw := range chain {
		text = append(text, authority.EncodePEM("CERTIFICATE", raw)...)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The listener serves the certificate that is in the files now. A certificate without its key is not served. Source: ADR-0050.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	given := settings.Settings{Runner: settings.Runner{TLSCertFile: certFile, TLSKeyFile: keyFile, Listen: "127.0.0.1:1", Data: filepath.Join(folder, "data")}}
	if _, err := openServerIdentity(t.Context(), given, &platform.Environment{Log: slog.New(slog.DiscardHandler)}, "127.0.0.1:1"); err == nil || !strings.HasPrefix(err.Error(), settings.TLSCertFile+": ") {
		t.Errorf("without the files: %v", err)
	}
	from := openFolder(t, folder)
	writeCertificate(t, from, certFile, keyFile, "first.example.com")
	identity, err := openServerIdentity(t.Context(), given, &platform.Environment{Log: slog.New(slog.DiscardHandler)}, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	serves := func(about, name string) {
		t.Helper()
		certificate, err := identity.get(&tls.ClientHelloInfo{})
		if err != nil || certificate.Leaf.VerifyHostname(name) != nil {
			t.Errorf("%s: it serves %v, %v; want %s", about, certificate.Leaf.DNSNames, err, name)
		}
	}
	serves("at the start", "first.example.com")
	trusted := identity.trust()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted.authorities)
	if _, err := identity.current.Load().certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "first.example.com"}); err != nil {
		t.Errorf("clients of this machine: %v", err)
	}
	writeCertificate(t, from, certFile, filepath.Join(folder, "other.key"), "second.example.com")
	identity.reload()
	serves("with a key that does not match", "first.example.com")
	writeCertificate(t, from, certFile, keyFile, "second.example.com")
	identity.reload()
	serves("after both were replaced", "second.example.com")
	renewCertificate(t, from, certFile, keyFile, "third.example.com")
	identity.reload()
	serves("after a renewal with the same key", "third.example.com")
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	identity.reload()
	serves("without the file", "third.example.com")
	if _, err := os.Stat(given.Runner.Data); err == nil {
		t.Error("a data folder was made")
	}
}

// The own authority signs for the names of the settings.
func TestCertificateNames(t *testing.T) {
	t.Parallel()
	given := settings.Settings{Runner: settings.Runner{TLSNames: []string{"platform.example.com", "192.0.2.7"}, Listen: "127.0.0.1:1", Data: t.TempDir()}}
	identity, err := openServerIdentity(t.Context(), given, &platform.Environment{Log: slog.New(slog.DiscardHandler)}, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	leaf := identity.current.Load().certificate.Leaf
	for _, name := range []string{"platform.example.com", "192.0.2.7", "localhost", "127.0.0.1"} {
		if err := leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	identity.reload()
	if identity.current.Load().certificate.Leaf != leaf {
		t.Error("the certificate was replaced")
	}
}

// The own authority signs another certificate when two thirds of the life of the current one are over. If it cannot, the current one stays.
func TestCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	own := openFolder(t, t.TempDir())
	var failure error
	identity := &serverIdentity{log: slog.New(slog.DiscardHandler), sign: func() (tls.Certificate, error) {
		if failure != nil {
			return tls.Certificate{}, failure
		}
		return own.ServerCertificate(time.Now(), nil, "127.0.0.1:1")
	}}
	serve := func(age time.Duration) *tls.Certificate {
		t.Helper()
		certificate, err := own.ServerCertificate(time.Now().Add(-age), nil, "127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		identity.current.Store(&certificatePair{certificate: &certificate})
		identity.reload()
		return &certificate
	}
	const year = 365 * 24 * time.Hour
	if young := serve(year * 65 / 100); identity.current.Load().certificate != young {
		t.Error("it was renewed before two thirds of its life")
	}
	old := serve(year * 68 / 100)
	if renewed := identity.current.Load().certificate; renewed == old || !renewed.Leaf.NotAfter.After(old.Leaf.NotAfter) {
		t.Error("it was not renewed after two thirds of its life")
	}
	failure = os.ErrPermission
	if old = serve(year * 68 / 100); identity.current.Load().certificate != old {
		t.Error("the certificate did not stay")
	}
}

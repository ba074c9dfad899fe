package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/local/localtest"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authorityOf(t *testing.T, folder string, now time.Time) *Authority {
	t.Helper()
	made, err := OpenFolder(folder, now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// leafOf makes a server certificate and parses it.
func leafOf(t *testing.T, from *Authority, now time.Time, addresses ...string) *x509.Certificate {
	t.Helper()
	pair, err := from.ServerCertificate(now, nil, addresses...)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// verify checks a certificate like a client that has the authority from the kubeconfig.
func verify(authorityPEM []byte, leaf *x509.Certificate, host string, now time.Time) error {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authorityPEM)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: host, CurrentTime: now})
	return err
}

func TestAuthorityFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	created := authorityOf(t, folder, start)
	for _, file := range []string{"ca.crt", "ca.key"} {
		localtest.WantPrivate(t, filepath.Join(folder, file))
	}
	if list := localtest.Names(t, folder); !slices.Equal(list, []string{"ca.crt", "ca.key"}) {
		t.Errorf("the folder holds %q", list)
	}
	if !bytes.Equal(localtest.Read(t, filepath.Join(folder, "ca.crt")), created.PEM) {
		t.Error("ca.crt is not the authority's certificate")
	}
	if bytes.Contains(created.PEM, []byte("PRIVATE")) {
		t.Error("what clients get holds a private key")
	}
	if !created.certificate.IsCA || created.certificate.KeyUsage&x509.KeyUsageCertSign == 0 {
		t.Error("the certificate is no authority's")
	}
}

// The authority is made once. It is replaced before it would expire earlier than a new server certificate. Source: ADR-0006.
func TestAuthorityIsKept(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		later time.Duration
		kept  bool
	}{
		{"the next start", time.Minute, true},
		{"a start years later", 8 * year, true},
		{"the last start whose certificate it outlives", 9*year - time.Second, true},
		{"a start whose certificate would outlive it", 9 * year, false},
		{"a start after its end", 11 * year, false},
		{"a start with a clock that is behind", -day, true},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			folder, now := t.TempDir(), start.Add(row.later)
			first := authorityOf(t, folder, start)
			then := authorityOf(t, folder, now)
			if kept := bytes.Equal(first.PEM, then.PEM) && first.key.Equal(then.key); kept != row.kept {
				t.Fatalf("kept is %v", kept)
			}
			if !bytes.Equal(localtest.Read(t, filepath.Join(folder, "ca.crt")), then.PEM) {
				t.Error("ca.crt is not the authority in use")
			}
			if row.kept {
				return
			}
			again := authorityOf(t, folder, now)
			if !bytes.Equal(then.PEM, again.PEM) || !then.key.Equal(again.key) {
				t.Error("the new one is not kept")
			}
			if err := verify(first.PEM, leafOf(t, then, now, "127.0.0.1:1"), "127.0.0.1", now); err == nil {
				t.Error("who trusts the old one trusts the new one")
			}
		})
	}
}

// An unreadable file is named in the error and left as it is: clients may trust only this authority.
func TestAuthorityIsRefused(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: start, NotAfter: start.Add(10 * year), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, rsaKey.Public(), rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	rsaPEM := string(EncodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)))
	other := t.TempDir()
	authorityOf(t, other, start)
	for _, row := range []struct {
		about, certificate, key string
		names                   string
	}{
		{"an empty certificate", "", "-", "ca.crt"},
		{"a text that is not a certificate", "nonsense", "-", "ca.crt"},
		{"a certificate that was cut", "-----BEGIN CERTIFICATE-----\nMIIB", "-", "ca.crt"},
		{"a certificate with other content", string(EncodePEM("CERTIFICATE", []byte("nonsense"))), "-", "ca.crt"},
		{"an empty key", "-", "", "ca.key"},
		{"a text that is not a key", "-", "nonsense", "ca.key"},
		{"the key of another authority", "-", string(localtest.Read(t, filepath.Join(other, "ca.key"))), "ca.key"},
		{"a key of another algorithm", string(EncodePEM("CERTIFICATE", raw)), rsaPEM, "ca.key"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			authorityOf(t, folder, start)
			for file, text := range map[string]string{"ca.crt": row.certificate, "ca.key": row.key} {
				if text != "-" {
					localtest.Write(t, filepath.Join(folder, file), text)
				}
			}
			certificate, key := localtest.Read(t, filepath.Join(folder, "ca.crt")), localtest.Read(t, filepath.Join(folder, "ca.key"))
			made, err := OpenFolder(folder, start)
			if err == nil || made != nil {
				t.Fatalf("authority %v, error %v", made, err)
			}
			if !strings.Contains(err.Error(), filepath.Join(folder, row.names)) {
				t.Errorf("the error does not name the file: %v", err)
			}
			if !bytes.Equal(certificate, localtest.Read(t, filepath.Join(folder, "ca.crt"))) || !bytes.Equal(key, localtest.Read(t, filepath.Join(folder, "ca.key"))) {
				t.Error("the files were changed")
			}
		})
	}
}

// If one of the two files is missing, both are replaced.
func TestAuthorityIsMadeFromHalf(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{"ca.crt", "ca.key"} {
		t.Run("without "+gone, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			before := authorityOf(t, folder, start)
			if err := os.Remove(filepath.Join(folder, gone)); err != nil {
				t.Fatal(err)
			}
			after := authorityOf(t, folder, start)
			if before.key.Equal(after.key) {
				t.Error("the key is the old one")
			}
			if again := authorityOf(t, folder, start); !again.key.Equal(after.key) {
				t.Error("the files do not belong together")
			}
		})
	}
}

func TestServerCertificate(t *testing.T) {
	t.Parallel()
	created := authorityOf(t, t.TempDir(), start)
	for _, row := range []struct {
		about     string
		addresses []string
		good      []string
		bad       []string
	}{
		{"loopback", []string{"127.0.0.1:8443", "127.0.0.1:8443"}, nil, []string{"192.0.2.1", "example.com", "::", "0.0.0.0"}},
		{"loopback in IPv6", []string{"[::1]:8443"}, nil, []string{"2001:db8::1"}},
		{"another address", []string{"192.0.2.1:8443"}, []string{"192.0.2.1"}, []string{"192.0.2.2"}},
		{"another address in IPv6", []string{"[2001:db8::1]:8443"}, []string{"2001:db8::1"}, []string{"2001:db8::2"}},
		{"every address", []string{"[::]:8443", ":8443"}, []string{"::"}, []string{"192.0.2.1"}},
		{"every address of IPv4", []string{"0.0.0.0:8443"}, []string{"0.0.0.0"}, []string{"192.0.2.1"}},
		{"a name and what it leads to", []string{"192.0.2.1:8443", "build.example.com:8443"}, []string{"192.0.2.1", "build.example.com"}, []string{"example.com", "a.build.example.com"}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			leaf := leafOf(t, created, start, row.addresses...)
			for _, host := range append(row.good, "localhost", "127.0.0.1", "::1") {
				if err := verify(created.PEM, leaf, host, start); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			for _, host := range row.bad {
				if err := verify(created.PEM, leaf, host, start); err == nil {
					t.Errorf("it is good for %s", host)
				}
			}
			if slices.Contains(leaf.DNSNames, "") {
				t.Error("it has an empty name")
			}
			if leaf.IsCA || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
				t.Error("it is good for more than a server")
			}
		})
	}
	if _, err := created.ServerCertificate(start, nil, "127.0.0.1"); err == nil {
		t.Error("an address without a port was taken")
	}
}

// A server certificate is valid for a year, with room for clocks of clients that are behind. Every start makes a new one.
func TestServerCertificateLife(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	created := authorityOf(t, folder, start)
	first := leafOf(t, created, start, "127.0.0.1:1")
	for _, row := range []struct {
		about string
		later time.Duration
		good  bool
	}{
		{"a clock that is behind", -59 * time.Minute, true},
		{"a clock that is far behind", -61 * time.Minute, false},
		{"now", 0, true},
		{"shortly before its end", year - time.Second, true},
		{"after its end", year + time.Second, false},
	} {
		if err := verify(created.PEM, first, "127.0.0.1", start.Add(row.later)); (err == nil) != row.good {
			t.Errorf("%s: %v", row.about, err)
		}
	}
	// At every start, the authority that clients get is valid as long as the certificate.
	for _, later := range []time.Duration{year, 9*year - time.Second, 9 * year, 10*year - time.Second, 20 * year} {
		now := start.Add(later)
		then := authorityOf(t, folder, now)
		leaf := leafOf(t, then, now, "127.0.0.1:1")
		if leaf.SerialNumber.Cmp(first.SerialNumber) == 0 || leaf.PublicKey.(*ecdsa.PublicKey).Equal(first.PublicKey) {
			t.Errorf("after %v: the certificate is the first one", later)
		}
		if err := verify(then.PEM, leaf, "127.0.0.1", now.Add(year-time.Second)); err != nil {
			t.Errorf("after %v: %v", later, err)
		}
	}
}

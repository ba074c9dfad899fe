package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{certificate: certificate, key: key, file: write(t, "CERTIFICATE", der)}
}

// issue returns the files of a certificate for a host and of its key. The certificate expires after the given time.
func (a *authority) issue(t *testing.T, ends time.Duration, host string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-12 * time.Hour), NotAfter: time.Now().Add(ends),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return write(t, "CERTIFICATE", der), write(t, "PRIVATE KEY", pkcs8)
}

func write(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	certificate, key := ours.issue(t, time.Hour, "127.0.0.1")
	named, namedKey := ours.issue(t, time.Hour, "state.internal")
	expired, expiredKey := ours.issue(t, -time.Hour, "127.0.0.1")
	plain := redistest.Server(t)
	good := redistest.Server(t, redistest.TLS(certificate, key, ours.file, false), redistest.Password("s3cret"))
	internal := redistest.Server(t, redistest.TLS(named, namedKey, ours.file, false))
	expiredServer := redistest.Server(t, redistest.TLS(expired, expiredKey, ours.file, false))
	mutual := redistest.Server(t, redistest.TLS(certificate, key, ours.file, true))

	trusting := func(url string) string { return url + "?ca_file=" + ours.file }
	pool := x509.NewCertPool()
	pool.AddCert(ours.certificate)
	for _, row := range []struct {
		about, url string
		tls        *tls.Config
		// want is a part of the error. Empty: there must be no error. If a server requires a certificate, either its
		// alert or the end of the connection arrives first, so the error's text is not checked.
		want string
	}{
		{"a file of authorities", trusting(good.SecureURL()), nil, ""},
		{"a config", good.SecureURL(), &tls.Config{RootCAs: pool}, ""},
		{"the system's authorities", good.SecureURL(), nil, "certificate signed by unknown authority"},
		{"another authority", good.SecureURL() + "?ca_file=" + theirs.file, nil, "certificate signed by unknown authority"},
		{"nothing verified", good.SecureURL() + "?skip_verify=true", nil, ""},
		{"a name of its own", trusting(internal.SecureURL()) + "&server_name=state.internal", nil, ""},
		{"another name", trusting(internal.SecureURL()), nil, "127.0.0.1"},
		{"an expired certificate", trusting(expiredServer.SecureURL()), nil, "certificate has expired"},
		{"a server without TLS", trusting(strings.Replace(plain.URL(), "redis://", "rediss://", 1)), nil, "TLS with"},
		{"a client without TLS", strings.Replace(mutual.SecureURL(), "rediss://", "redis://", 1), nil, ""},
		{"a wrong password", trusting(strings.Replace(good.SecureURL(), "s3cret", "hunter2", 1)), nil, "WRONGPASS"},
		{"no password", trusting(strings.Replace(good.SecureURL(), ":s3cret@", "", 1)), nil, "NOAUTH"},
		{"a client certificate", trusting(mutual.SecureURL()) + "&cert_file=" + certificate + "&key_file=" + key, nil, ""},
		{"no client certificate", trusting(mutual.SecureURL()), nil, "e"},
	} {
		options := redisstore.Options{TLS: row.tls}
		if row.about == "a server without TLS" {
			options.Timeout = prompt.Timeout // it does not answer a client that begins with TLS
		}
		client := open(t, row.url, options)
		err := client.Ping(t.Context())
		if row.about == "a client without TLS" {
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v", row.about, err)
			}
			continue
		}
		if row.want == "" {
			if err != nil {
				t.Errorf("%s: %v", row.about, err)
			}
			continue
		}
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.about, err)
		}
		for _, secret := range []string{"s3cret", "hunter2"} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error tells the password: %v", row.about, err)
			}
		}
	}
}

// TestUsers: the server's ACL allows each user other commands.
func TestUsers(t *testing.T) {
	process := redistest.Server(t)
	admin := raw(t, process.URL())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">s3c/ret", "~p1:*", "+@all").Err())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">s3c/ret", "~p1:*", "+@read", "+@connection").Err())
	for user, want := range map[string]error{"app": nil, "reader": store.ErrUnavailable, "nobody": store.ErrUnavailable} {
		s := open(t, "redis://"+user+":s3c%2Fret@"+process.Address(), redisstore.Options{}).Resource(freshName())
		_, err := s.Create(t.Context(), thing("one"))
		if !errors.Is(err, want) {
			t.Errorf("Create by %s: %v", user, err)
		}
		if err != nil && strings.Contains(err.Error(), "ret@") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func TestTLSSuite(t *testing.T) {
	skipIfShort(t)
	authority := newAuthority(t)
	certificate, key := authority.issue(t, time.Hour, "127.0.0.1")
	suite(t, redistest.Server(t, redistest.TLS(certificate, key, authority.file, false)).SecureURL()+"?ca_file="+authority.file)
}

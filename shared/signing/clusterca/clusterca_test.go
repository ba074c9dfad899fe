package clusterca_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/signing/clusterca"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
)

func now() time.Time { return clustercatest.Now }

const year = 365 * 24 * time.Hour

func TestParseCA(t *testing.T) {
	t.Parallel()
	good, goodKey := clustercatest.Authority(t, nil)
	other, _ := clustercatest.Authority(t, nil)
	authority := func(change func(*x509.Certificate)) [2][]byte {
		certificate, key := clustercatest.Authority(t, change)
		return [2][]byte{certificate, key}
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		about                      string
		given                      [2][]byte
		wrongCertificate, wrongKey bool
	}{
		{"a good one", [2][]byte{good, goodKey}, false, false},
		{"no CA", authority(func(c *x509.Certificate) { c.IsCA = false }), true, false},
		{"expired, to the second", authority(func(c *x509.Certificate) { c.NotAfter = now() }), true, false},
		{"not yet valid", authority(func(c *x509.Certificate) { c.NotBefore = now().Add(time.Second) }), true, false},
		{"it may not sign", authority(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }), true, false},
		{"it may sign servers alone", authority(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), true, false},
		{"it may sign clients", authority(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), false, false},
		{"the key of another", [2][]byte{other, goodKey}, false, true},
		{"a key of another kind", [2][]byte{good, clustercatest.Key(t, edKey)}, false, true},
		{"a weak key", [2][]byte{good, clustercatest.Key(t, weak)}, false, true},
		{"two certificates", [2][]byte{slices.Concat(good, other), goodKey}, true, false},
		{"the key in the certificate's place", [2][]byte{goodKey, goodKey}, true, false},
		{"the certificate in the key's place", [2][]byte{good, good}, false, true},
		{"an encrypted key", [2][]byte{good, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}})}, false, true},
		{"nonsense", [2][]byte{[]byte("x"), []byte("y")}, true, true},
		{"nothing", [2][]byte{nil, nil}, true, true},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			_, wrongCertificate, wrongKey := clusterca.ParseCA(row.given[0], row.given[1], year, now)
			if (wrongCertificate != nil) != row.wrongCertificate || (wrongKey != nil) != row.wrongKey {
				t.Errorf("certificate: %v, key: %v", wrongCertificate, wrongKey)
			}
			for _, err := range []error{wrongCertificate, wrongKey} {
				if err != nil && strings.Contains(err.Error(), "BEGIN") {
					t.Errorf("it quotes: %v", err)
				}
			}
		})
	}
}

// Certificates begin five minutes back. They live as long as the request or the signer says, and never longer than the
// authority. Source: Spec 2.6, 8. The error says that a key is encrypted, in both forms of encrypted keys.
func TestParseCAEncrypted(t *testing.T) {
	t.Parallel()
	certificate, _ := clustercatest.Authority(t, nil)
	var whys []string
	for _, block := range []*pem.Block{
		{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}},
		{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}, Bytes: []byte{1}},
	} {
		_, _, wrongKey := clusterca.ParseCA(certificate, pem.EncodeToMemory(block), year, now)
		whys = append(whys, fmt.Sprint(wrongKey))
	}
	if whys[0] != whys[1] {
		t.Errorf("told %q", whys)
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	request := clustercatest.Request(t, "ana", "team", "platform:authenticated")
	for _, row := range []struct {
		about    string
		end      time.Duration
		duration time.Duration
		lifetime time.Duration
		want     time.Duration
	}{
		{"a day", year, year, 24 * time.Hour, 24 * time.Hour},
		{"a second", year, year, time.Second, time.Second},
		{"the signer's duration", year, 48 * time.Hour, 0, 48 * time.Hour},
		{"not beyond the authority", time.Hour, year, 24 * time.Hour, time.Hour},
		{"not beyond the authority, by default", time.Hour, year, 0, time.Hour},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			certificate, private := clustercatest.Authority(t, func(c *x509.Certificate) { c.NotAfter = now().Add(row.end) })
			ca, _, _ := clusterca.ParseCA(certificate, private, row.duration, now)
			request := request
			request.Lifetime = row.lifetime
			chain, err := ca.Sign(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			got := chain[0]
			if !got.NotBefore.Equal(now().Add(-5*time.Minute)) || !got.NotAfter.Equal(now().Add(row.want)) {
				t.Errorf("from %s to %s", got.NotBefore, got.NotAfter)
			}
			roots := x509.NewCertPool()
			roots.AddCert(ca.Certificate)
			if _, err := got.Verify(x509.VerifyOptions{
				Roots: roots, CurrentTime: now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			}); err != nil {
				t.Error(err)
			}
			if _, err := got.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
				t.Error("it is good for servers")
			}
			if !got.BasicConstraintsValid || got.KeyUsage != x509.KeyUsageDigitalSignature {
				t.Errorf("basic constraints %v, key usage %b", got.BasicConstraintsValid, got.KeyUsage)
			}
			if got.IsCA || got.Subject.CommonName != "ana" || !slices.Equal(got.Subject.Organization, []string{"team", "platform:authenticated"}) ||
				!got.PublicKey.(*ecdsa.PublicKey).Equal(request.Key.Public()) || got.SerialNumber.BitLen() < 64 {
				t.Errorf("%s, CA %v, serial %x", got.Subject, got.IsCA, got.SerialNumber)
			}
		})
	}
}

// An authority that has expired by the time of its use returns an error.
func TestSignExpired(t *testing.T) {
	t.Parallel()
	certificate, private := clustercatest.Authority(t, nil)
	at := now()
	ca, wrongCertificate, wrongKey := clusterca.ParseCA(certificate, private, year, func() time.Time { return at })
	if wrongCertificate != nil || wrongKey != nil {
		t.Fatal(wrongCertificate, wrongKey)
	}
	at = at.Add(2 * year)
	if chain, err := ca.Sign(t.Context(), clustercatest.Request(t, "ana")); !errors.Is(err, clusterca.ErrUnusable) || chain != nil {
		t.Errorf("%v, %v", chain, err)
	}
	if err := ca.Usable(); err == nil {
		t.Error("an expired authority is usable")
	}
}

// A certificate of an authority names its subject with the same bytes as a certificate from a virtual cluster.
func TestSubject(t *testing.T) {
	t.Parallel()
	certificate, private := clustercatest.Authority(t, nil)
	ca, wrongCertificate, wrongKey := clusterca.ParseCA(certificate, private, year, now)
	if wrongCertificate != nil || wrongKey != nil {
		t.Fatal(wrongCertificate, wrongKey)
	}
	for _, groups := range [][]string{nil, {"team"}, {"zebra", "ant", "crew of the north", "ant"}, {"Grüße", "a*b", "a@b", "日本"}} {
		request := clustercatest.Request(t, "ana, O=other + \"ö\"", groups...)
		chain, err := ca.Sign(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: request.Subject}, request.Key)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := x509.ParseCertificateRequest(der)
		if err != nil || !bytes.Equal(chain[0].RawSubject, asked.RawSubject) {
			t.Errorf("%q: %s, asked for %s, %v", groups, chain[0].Subject, asked.Subject, err)
		}
	}
}

// kubeconfig is one with other lines in the cluster and the user.
func kubeconfig(cluster, user string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"+
		"clusters:\n- name: c\n  cluster: {%s}\nusers:\n- name: u\n  user: {%s}\n", cluster, user)
}

func TestParseAccess(t *testing.T) {
	t.Parallel()
	const server, token = "server: 'https://vc.example.com:6443'", "token: sesame-open-0123456789"
	certificate, key := clustercatest.Authority(t, nil)
	pair := func(certificate, key []byte) string {
		return "client-certificate-data: " + base64.StdEncoding.EncodeToString(certificate) + ", client-key-data: " + base64.StdEncoding.EncodeToString(key)
	}
	_, another := clustercatest.Authority(t, nil)
	for _, row := range []struct {
		about, text string
		refused     bool
	}{
		{"a token", kubeconfig(server, token), false},
		{"a certificate", kubeconfig(server, pair(certificate, key)), false},
		{"an authority", kubeconfig(server+", certificate-authority-data: "+base64.StdEncoding.EncodeToString(certificate), token), false},
		{"a name to verify", kubeconfig(server+", tls-server-name: kubernetes", token), false},
		{"notes of minikube", kubeconfig(server+", extensions: [{name: cluster_info, extension: {provider: minikube}}]", token), false},
		{"another kind", strings.Replace(kubeconfig(server, token), "kind: Config", "kind: Pod", 1), true},
		{"another version", strings.Replace(kubeconfig(server, token), "apiVersion: v1", "apiVersion: v2", 1), true},
		{"a program", kubeconfig(server, "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}"), true},
		{"a program beside a token", kubeconfig(server, token+", exec: {command: sh}"), true},
		{"a plugin", kubeconfig(server, "auth-provider: {name: oidc}"), true},
		{"a file with a token", kubeconfig(server, "tokenFile: /var/run/secrets/token"), true},
		{"a file with an authority", kubeconfig(server+", certificate-authority: /etc/passwd", token), true},
		{"files with a certificate", kubeconfig(server, "client-certificate: /a, client-key: /b"), true},
		{"any server", kubeconfig(server+", insecure-skip-tls-verify: true", token), true},
		{"a proxy", kubeconfig(server+", proxy-url: 'http://169.254.169.254'", token), true},
		{"a password", kubeconfig(server, "username: a, password: b"), true},
		{"somebody else", kubeconfig(server, token+", as: admin"), true},
		{"no credential", kubeconfig(server, ""), true},
		{"two credentials", kubeconfig(server, token+", "+pair(certificate, key)), true},
		{"a certificate with another key", kubeconfig(server, pair(certificate, another)), true},
		{"a token with a line break", kubeconfig(server, `token: "a\nHost: b"`), true},
		{"plain HTTP", kubeconfig("server: 'http://vc.example.com'", token), true},
		{"no server", kubeconfig("", token), true},
		{"a text that is not an authority", kubeconfig(server+", certificate-authority-data: eA==", token), true},
		{"no base64", kubeconfig(server+", certificate-authority-data: '*'", token), true},
		{"no text", kubeconfig(server, "token: [a]"), true},
		{"no context", strings.Replace(kubeconfig(server, token), "current-context: a", "current-context: b", 1), true},
		{"no cluster", strings.Replace(kubeconfig(server, token), "- name: c", "- name: d", 1), true},
		{"no YAML", "{", true},
		{"nothing", "", true},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			access, err := clusterca.ParseAccess(row.text)
			if (err != nil) != row.refused {
				t.Fatalf("%+v, %v", access, err)
			}
			if err != nil && (strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "passwd")) {
				t.Errorf("it quotes: %v", err)
			}
			if err == nil && access.Server != "https://vc.example.com:6443" {
				t.Errorf("it leads to %s", access.Server)
			}
		})
	}
}

func TestCheckServer(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"https://vc.example.com": true, "https://vc.example.com:6443": true, "https://10.0.0.1": true, "https://[fd00::1]:443": true,
		"https://vc.example.com/kubernetes/project/a/virtualcluster/b": true, "https://localhost:6443": true,
		"": false, "vc.example.com": false, "http://vc.example.com": false, "HTTPS://a b": false, "https://": false, "https:///x": false,
		"https://a:b@vc.example.com": false, "https://a@vc.example.com": false, "https://vc.example.com#x": false, "https://vc.example.com/#": false,
		"https://vc.example.com?a=b": false, "https://vc.example.com?": false, "https://vc.example.com:0": false, "https://vc.example.com:99999": false,
		"https://vc.example.com:": false, "https://vc_example..com": false, "https://-a": false, "ftp://a": false, "https://[x]": false,
		"HTTPS://a/b": true, "https://a/b%20c/": true, "https://a//b/../c": true, "https://a/b c": false, "https://a/ü": false, `https://a/"`: false,
		"https://a\nb": false, "https://" + strings.Repeat("a.", 130) + "b": false,
	} {
		if err := clusterca.CheckServer(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, good := range map[string]bool{
		"vc.example.com": true, "vc.example.com:6443": true, "127.0.0.1:1": true, "": false, "https://a": false, "a/b": false, "a?b": false, "a b": false, "a@b": false, "a#b": false,
	} {
		if err := clusterca.CheckHost(text); (err == nil) != good {
			t.Errorf("host %q: %v", text, err)
		}
	}
}

func FuzzParseAccess(f *testing.F) {
	f.Add(kubeconfig("server: 'https://a'", "token: b"))
	f.Add(kubeconfig("server: 'https://a'", "exec: {command: sh}"))
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		access, err := clusterca.ParseAccess(text)
		if err == nil && (!strings.HasPrefix(strings.ToLower(access.Server), "https://") || access.Token == "" && len(access.Key) == 0) {
			t.Errorf("%+v", access)
		}
	})
}

package kubeconfig

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/clusterca"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
)

// library returns the kubeconfig as the library of Kubernetes writes it.
func (d document) library(t *testing.T) string {
	t.Helper()
	user := &clientcmdapi.AuthInfo{Token: d.token.Reveal()}
	if d.key != "" {
		user = &clientcmdapi.AuthInfo{ClientCertificateData: d.certificate, ClientKeyData: []byte(d.key.Reveal())}
	}
	config := clientcmdapi.NewConfig()
	entry := d.entry
	config.Clusters[entry] = &clientcmdapi.Cluster{Server: d.server, CertificateAuthorityData: d.ca}
	config.AuthInfos[entry] = user
	config.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry}
	config.CurrentContext = entry
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// read reads a kubeconfig with the library. More reports whether the kubeconfig has other content than a document.
func read(t *testing.T, text string) (d document, more bool) {
	t.Helper()
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	entry := config.CurrentContext
	cluster, user, at := config.Clusters[entry], config.AuthInfos[entry], config.Contexts[entry]
	if cluster == nil || user == nil || at == nil || at.Cluster != entry || at.AuthInfo != entry {
		t.Fatalf("not a kubeconfig of one cluster:\n%s", text)
	}
	d = document{
		entry: entry, server: cluster.Server, ca: cluster.CertificateAuthorityData, token: secret.String(user.Token),
		certificate: user.ClientCertificateData, key: secret.String(user.ClientKeyData),
	}
	more = len(config.Clusters)+len(config.AuthInfos)+len(config.Contexts) != 3 || len(config.Extensions) != 0 ||
		cluster.CertificateAuthority != "" || cluster.InsecureSkipTLSVerify || cluster.ProxyURL != "" || cluster.TLSServerName != "" ||
		user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.Username != "" || user.Password != "" ||
		user.ClientCertificate != "" || user.ClientKey != "" || user.Impersonate != "" || at.Namespace != ""
	return d, more
}

// bearer matches the bearer tokens that the server makes, and usual matches usual names of entries.
var (
	bearer = regexp.MustCompile(`^pak_[0-9A-Za-z]{46}$`)
	usual  = regexp.MustCompile(`^[a-z][a-z0-9-]{5,}$`)
)

// checkDocument renders a kubeconfig. A client must read from it what was written and nothing else. If the server is accepted,
// the token has the form of the platform's tokens and the name is usual, the text must equal the library's text.
func checkDocument(t *testing.T, d document) {
	t.Helper()
	text := d.render()
	got, more := read(t, text)
	if more || got.entry != d.entry || got.server != d.server || got.token != d.token || got.key != d.key ||
		!bytes.Equal(got.ca, d.ca) || !bytes.Equal(got.certificate, d.certificate) {
		t.Errorf("%q is read from\n%s", got.server, text)
	}
	tokens := d.token == "" || bearer.MatchString(d.token.Reveal())
	if clusterca.CheckServer(d.server) == nil && strings.HasPrefix(d.server, "https://") && tokens && usual.MatchString(d.entry) && text != d.library(t) {
		t.Errorf("made\n%swant\n%s", text, d.library(t))
	}
}

// Kubeconfigs of all forms equal the text that the library of Kubernetes writes, and clients read the values that were written:
// no server URL can add a field, and no text is read as a number or a word with a meaning. Source: Spec 2.6; ADR-0026.
func TestDocument(t *testing.T) {
	t.Parallel()
	certificate, key := clustercatest.Authority(t, nil)
	accepted := []string{
		"https://a", "https://vc.example.com", "https://vc.example.com:6443", "https://10.0.0.1:443", "https://[2001:db8::1]:6443/",
		"https://[fe80::1%25eth0]", "https://a_b.example.com", "https://vc.example.com/kubernetes/project/a/virtualcluster/b",
		"https://a/b%20c/", "https://a/b:", "https://a/b:c", "https://a/'quoted'", "https://a/it's:", "https://a/(b),[c];d=e&f+g$h!*@~_-",
		"https://a//b/../c", "https://a/" + strings.Repeat("long/", 100), "https://a/{b}", "https://a/%7Bb%7D", "https://a/b,c",
	}
	for _, server := range slices.Concat(accepted, []string{
		// These servers are never accepted. They still add nothing.
		"", "true", "null", "~", "1e3", "0x10", "2026-11-22", "https://a: b", "https://a #b", "a\nb: c", "https://a\n    token: b",
		`"`, `'`, `it's`, "{}", "[a]", "*a", "&a", "!!int 1", "- a", "? a", "% a", "@a", "`a", "ü", "\u2028", "a\tb", " a", "a ", ":", "yes", "infinity",
	}) {
		for _, ca := range [][]byte{nil, certificate, append([]byte("notes: 1\n"), certificate...)} {
			checkDocument(t, document{entry: "dev-p-shop", server: server, ca: ca, token: secret.String("pak_" + strings.Repeat("0aZ9", 11) + "xy")})
			checkDocument(t, document{entry: "dev-p-shop", server: server, ca: ca, certificate: certificate, key: secret.String(key)})
		}
	}
	// Names are read as they are, also names that look like numbers.
	for _, entry := range []string{"1e-5", "0b-1", "2026-11-22", "a-b", "a.b-p-c", "0-0"} {
		checkDocument(t, document{entry: entry, server: "https://a.example.com", token: "pak_a"})
	}
	for _, server := range accepted {
		if err := clusterca.CheckServer(server); err != nil && !strings.Contains(server, "{b}") {
			t.Errorf("%s: %v", server, err)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("https://a.example.com/b", "-----BEGIN", "pak_"+strings.Repeat("0", 46), "dev-p-shop")
	f.Add("https://a/b:", "", "123", "1e-5")
	f.Add("a\nb: c", "x", "true", "0b-1")
	f.Fuzz(func(t *testing.T, server, ca, token, entry string) {
		// Requests and records are JSON, which has only valid UTF-8. Clients read an absent token as an empty token.
		if !utf8.ValidString(server) || !utf8.ValidString(token) {
			t.Skip()
		}
		checkDocument(t, document{entry: "dev-p-shop", server: server, ca: []byte(ca), token: secret.String(token)})
	})
}

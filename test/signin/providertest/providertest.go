// Package providertest starts the OpenID Connect provider of the npm package oidc-provider, clients of the npm package openid-client and of the
// Python library Authlib, providers that are Go modules, and the SAML providers samlp and SimpleSAMLphp, in processes of their own, for tests.
// `make test` installs what is not a Go module.
// Source: ADR-0031, ADR-0038.
package providertest

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Provider is a provider that runs until the end of its test.
type Provider struct {
	// Issuer is its address.
	Issuer string
	// CAFile is a file with the certificate that vouches for it, and Trusted has that certificate.
	CAFile  string
	Trusted *x509.CertPool
}

// Client is the client of a provider, platform.
type Client struct {
	// Secret is its secret. Callback and After are the addresses to which it may send a browser back.
	Secret, Callback, After string
	// Logout is where the provider says that a session has ended. Empty: nowhere. Authority is the path of a certificate that vouches for it.
	Logout, Authority string
}

// Start starts the provider with one client. Folder is the path of this package. It skips the test where the provider is not installed. In
// CI nothing is skipped.
func Start(t *testing.T, folder string, client Client) *Provider {
	t.Helper()
	needs(t, folder, "oidc-provider")
	p, keyFile := certified(t)
	p.Issuer = launch(
		t, []string{"CLIENT_SECRET=" + client.Secret, "LOGOUT_URI=" + client.Logout, "NODE_EXTRA_CA_CERTS=" + client.Authority},
		"node", filepath.Join(folder, "provider.mjs"), keyFile, p.CAFile, client.Callback, client.After)
	return p
}

// The providers that are programs of a Go module: the example of github.com/zitadel/oidc, and dex.
const (
	Zitadel = "zitadel"
	Dex     = "dex"
)

// StartGo starts Zitadel or Dex with one client, which has no addresses but its callback. Module is the folder of test/providers. It compiles for
// minutes when cold.
func StartGo(t *testing.T, module, name string, client Client) *Provider {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name)
	build.Dir = module
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, output)
	}
	environment := []string{"CLIENT_SECRET=" + client.Secret}
	if name == Dex {
		list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/dexidp/dex")
		list.Dir = module
		source, err := list.Output()
		if err != nil {
			t.Fatalf("looking for the pages of dex: %v", err)
		}
		environment = append(environment, "WEB="+filepath.Join(strings.TrimSpace(string(source)), "web"))
	}
	p, keyFile := certified(t)
	p.Issuer = launch(t, environment, program, keyFile, p.CAFile, client.Callback)
	return p
}

// certified returns a provider with a certificate for the loopback, and the file of its key.
func certified(t *testing.T) (*Provider, string) {
	t.Helper()
	p := &Provider{Trusted: x509.NewCertPool()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	keyFile := filepath.Join(files, "key.pem")
	p.CAFile = filepath.Join(files, "ca.pem")
	for file, block := range map[string]*pem.Block{keyFile: {Type: "PRIVATE KEY", Bytes: encoded}, p.CAFile: {Type: "CERTIFICATE", Bytes: certificate}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(p.CAFile)
	if err != nil || !p.Trusted.AppendCertsFromPEM(text) {
		t.Fatal("the certificate cannot be read", err)
	}
	return p, keyFile
}

// RunClient runs a program that signs people in with the npm package openid-client, and returns what it prints. It asks the platform with an issuer
// at an address, and lets a browser at another one do what people do: the head of client.mjs says how.
func RunClient(t *testing.T, folder, issuer, platform, browser string) []byte {
	t.Helper()
	needs(t, folder, "openid-client")
	return run(t, "node", filepath.Join(folder, "client.mjs"), issuer, platform, browser)
}

// python is the interpreter of Debian, which alone finds Debian's packages.
const python = "/usr/bin/python3"

// RunAuthlib is RunClient with the Python library Authlib of Debian. The head of client.py says what it does.
func RunAuthlib(t *testing.T, folder, issuer, platform, browser string) []byte {
	t.Helper()
	for _, needed := range []string{python, "/usr/lib/python3/dist-packages/authlib", "/usr/lib/python3/dist-packages/requests"} {
		if _, err := os.Stat(needed); err != nil {
			missing(t, "python3-authlib is not installed")
		}
	}
	return run(t, python, filepath.Join(folder, "client.py"), issuer, platform, browser)
}

// run runs a program to its end, and returns what it prints.
func run(t *testing.T, name string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	var wrong strings.Builder
	command.Stderr = &wrong
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("the client fails: %v %s", err, wrong.String())
	}
	return printed
}

// StartSAML starts the SAML provider of the npm package samlp, with a key and its certificate, and returns its address. It posts its
// answers to the callback. Below its address, /sso signs the assertion, /response the response, and /both both.
func StartSAML(t *testing.T, folder string, key *rsa.PrivateKey, certificate *x509.Certificate, callback string) string {
	t.Helper()
	needs(t, folder, "samlp")
	keyFile, certificateFile := write(t, t.TempDir(), key, certificate)
	return launch(t, nil, "node", filepath.Join(folder, "saml.mjs"), keyFile, certificateFile, callback)
}

// write writes a key and its certificate into a folder, and returns their files.
func write(t *testing.T, folder string, key *rsa.PrivateKey, certificate *x509.Certificate) (keyFile, certificateFile string) {
	t.Helper()
	keyFile, certificateFile = filepath.Join(folder, "key.pem"), filepath.Join(folder, "crt.pem")
	for file, block := range map[string]*pem.Block{
		keyFile: {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}, certificateFile: {Type: "CERTIFICATE", Bytes: certificate.Raw},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return keyFile, certificateFile
}

// simpleSAMLphp is where Debian has the pages of SimpleSAMLphp.
const simpleSAMLphp = "/usr/share/simplesamlphp/www"

// StartPHP starts the SAML provider SimpleSAMLphp on the server of PHP, with a key and its certificate, and returns the address that takes
// requests. It posts its answers to the callback.
func StartPHP(t *testing.T, folder string, key *rsa.PrivateKey, certificate *x509.Certificate, callback string) string {
	t.Helper()
	if _, err := exec.LookPath("php"); err != nil {
		missing(t, "PHP is not installed")
	}
	if _, err := os.Stat(simpleSAMLphp); err != nil {
		missing(t, "SimpleSAMLphp is not installed")
	}
	settings, err := filepath.Abs(filepath.Join(folder, "simplesamlphp"))
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	write(t, files, key, certificate)
	command := exec.CommandContext(t.Context(), "php", "-S", "127.0.0.1:0", "-t", simpleSAMLphp)
	command.Env = append(os.Environ(), "SIMPLESAMLPHP_CONFIG_DIR="+settings, "FILES="+files, "CALLBACK="+callback)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() })
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if _, rest, found := strings.Cut(lines.Text(), "Server ("); found {
			// Nobody reads what else it prints, so it must not wait for a reader.
			go func() { _, _ = io.Copy(io.Discard, output) }()
			address, _, _ := strings.Cut(rest, ")")
			return address + "/saml2/idp/SSOService.php"
		}
	}
	t.Fatal("PHP names no address")
	return ""
}

// needs skips the test where a package of npm is not installed.
func needs(t *testing.T, folder, module string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		missing(t, "node is not installed")
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules", module)); err != nil {
		missing(t, "the provider is not installed")
	}
}

// missing skips the test. In CI it fails.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s, and in CI no test may be skipped: run make test", what)
	}
	t.Skipf("%s: run make test as root on Debian", what)
}

// launch starts a provider that ends with its standard input, and returns the address that it prints.
func launch(t *testing.T, environment []string, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Env, command.Stderr = append(os.Environ(), environment...), t.Output()
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		// Warnings come first.
		if strings.HasPrefix(lines.Text(), "http") {
			return lines.Text()
		}
	}
	t.Fatalf("the provider does not start: %v", lines.Err())
	return ""
}

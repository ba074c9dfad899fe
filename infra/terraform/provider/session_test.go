package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	root = "../../.."
	// jobVariable makes the test program act as the job that Terraform starts in its provisioner. It names the file for what the job saw.
	jobVariable = "PROVIDER_TEST_JOB"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(jobVariable); file != "" {
		if err := runJob(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sighting is what the job got from Terraform, and who the API says that it is.
type sighting struct {
	Secrets                 map[string]string
	Key, KubeconfigKey      string
	KeyType, KubeconfigType string
}

// runJob uses the credentials in its environment, and writes them to a file outside of Terraform's folder.
func runJob(file string) error {
	connection, err := connect(os.Getenv("JOB_AUTHORITY"))
	if err != nil {
		return err
	}
	seen := sighting{Secrets: map[string]string{}}
	for _, name := range []string{"KEY", "CLUSTER_TOKEN", "KUBECONFIG", "KUBECONFIG_TOKEN", "CERTIFICATE", "PRIVATE_KEY"} {
		if seen.Secrets[name] = os.Getenv("JOB_" + name); seen.Secrets[name] == "" {
			return fmt.Errorf("%s is empty", name)
		}
	}
	self := func(bearer string) (name, kind string, err error) {
		var answer struct {
			Status struct{ AccessKey, AccessKeyType string }
		}
		c := &client{endpoint: os.Getenv("JOB_SERVER"), bearer: bearer, http: connection}
		_, err = c.create(context.Background(), "selves", map[string]any{}, &answer)
		return answer.Status.AccessKey, answer.Status.AccessKeyType, err
	}
	if seen.Key, seen.KeyType, err = self(seen.Secrets["KEY"]); err != nil {
		return fmt.Errorf("with the key: %w", err)
	}
	if seen.KubeconfigKey, seen.KubeconfigType, err = self(seen.Secrets["KUBECONFIG_TOKEN"]); err != nil {
		return fmt.Errorf("with the kubeconfig: %w", err)
	}
	text, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// platform is a runner without a Redis of its own, and its first admin key.
type platform struct {
	*client
	authority string
}

func build(t *testing.T, folder, target, what string, flags ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append(append([]string{"build"}, flags...), "-o", target, what)...)
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", what, err, output)
	}
}

func serve(t *testing.T) platform {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "platform")
	build(t, root, program, "./local")
	data := filepath.Join(folder, "data")
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--listen", "127.0.0.1:0", "--data", data)
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	address := ""
	for lines := bufio.NewScanner(output); address == "" && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "API" {
			address = words[1]
		}
	}
	if address == "" {
		t.Fatalf("the runner did not start:\n%s", failure.String())
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	key, err := os.ReadFile(filepath.Join(data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(data, "ca.crt")
	connection, err := connect(authority)
	if err != nil {
		t.Fatal(err)
	}
	return platform{&client{endpoint: address, bearer: strings.TrimSpace(string(key)), http: connection}, authority}
}

// list returns the names of the objects of a resource.
func (p platform) list(t *testing.T, resource string) []string {
	t.Helper()
	var answer struct{ Items []made }
	if _, err := p.send(t.Context(), http.MethodGet, resource, "application/json", p.bearer, nil, &answer); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range answer.Items {
		names = append(names, item.Metadata.Name)
	}
	return names
}

// register makes the virtual cluster dev with an authority for client certificates.
func (p platform) register(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	if _, err := p.create(t.Context(), "namespaces/p-shop/virtualclusterinstances", map[string]any{
		"metadata": map[string]any{"name": "dev"},
		"spec": map[string]any{
			"owner":       map[string]any{"user": "admin"},
			"accessPoint": map[string]any{"ingress": map[string]any{"enabled": true, "host": "dev.shop.example.com", "caData": authority}},
			"signer":      map[string]any{"ca": map[string]any{"certData": authority, "keyData": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}},
		},
	}, nil); err != nil {
		t.Fatal(err)
	}
}

// mirror builds the provider into a mirror, as docs/terraform.md does, and returns the configuration file that names it.
func mirror(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	build(t, ".", filepath.Join(folder, "mirror", filepath.FromSlash(address), "0.0.1", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-platform_v0.0.1"), ".")
	settings := filepath.Join(folder, "terraform.rc")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(folder, "mirror")), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings
}

// engines returns the programs that run configurations: OpenTofu at the version that test/tofu pins, and Terraform if it is on PATH.
func engines(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"tofu": filepath.Join(t.TempDir(), "tofu")}
	build(t, filepath.Join(root, "test", "tofu"), found["tofu"], "github.com/opentofu/opentofu/cmd/tofu", "-ldflags=-s -w")
	if terraform, err := exec.LookPath("terraform"); err == nil {
		found["terraform"] = terraform
	} else {
		t.Log("terraform is not on PATH: OpenTofu alone runs the provider")
	}
	return found
}

// session is a folder with a configuration, and the program that runs it.
type session struct {
	engine, folder string
	environment    []string
}

func newSession(t *testing.T, p platform, engine, settings, configuration string) *session {
	t.Helper()
	s := &session{engine: engine, folder: t.TempDir(), environment: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TF_CLI_CONFIG_FILE=" + settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		"PLATFORM_SERVER=" + p.endpoint, "PLATFORM_ACCESS_KEY=" + p.bearer, "TF_VAR_authority=" + p.authority, "TF_VAR_server=" + p.endpoint,
		"TF_VAR_kubeconfig=" + filepath.Join(filepath.Dir(p.authority), "kubeconfig"),
	}}
	s.write(t, "main.tf", configuration)
	s.run(t, true, "init", "-no-color")
	return s
}

func (s *session) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a command and returns what it prints. It fails the test unless the command succeeds as expected.
func (s *session) run(t *testing.T, succeeds bool, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.engine, args...)
	command.Dir, command.Env = s.folder, s.environment
	output, err := command.CombinedOutput()
	if (err == nil) != succeeds {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(s.engine), strings.Join(args, " "), err, output)
	}
	return string(output)
}

const header = `terraform {
  required_providers {
    platform = {
      source = "management.platform.sh/platform/platform"
    }
  }
}

variable "authority" {
  type = string
}

variable "server" {
  type = string
}

variable "kubeconfig" {
  type = string
}

provider "platform" {
  certificate_authority = var.authority
}
`

const job = `
ephemeral "platform_access_key" "ci" {
  display_name = "Nightly builds"
  ttl          = 600
  scope = {
    virtual_clusters = [{ project = "shop", virtual_cluster = "dev" }]
  }
}

provider "platform" {
  alias                 = "ci"
  certificate_authority = file(var.authority)
  access_key            = ephemeral.platform_access_key.ci.key
}

ephemeral "platform_kubeconfig" "dev" {
  provider  = platform.ci
  namespace = "p-shop"
  name      = "dev"
}

provider "platform" {
  alias      = "file"
  kubeconfig = var.kubeconfig
  context    = "platform"
}

ephemeral "platform_kubeconfig" "certificate" {
  provider        = platform.file
  namespace       = "p-shop"
  name            = "dev"
  client_cert     = true
  certificate_ttl = 600
}

ephemeral "platform_cluster_token" "clusters" {
  ttl = 300
  scope = {
    clusters = [{ cluster = "east" }]
  }
}

variable "program" {
  type = string
}

variable "sighting" {
  type = string
}

resource "terraform_data" "job" {
  input = "a job"

  provisioner "local-exec" {
    command = "\"${var.program}\""
    environment = {
      PROVIDER_TEST_JOB    = var.sighting
      JOB_SERVER           = var.server
      JOB_AUTHORITY        = var.authority
      JOB_KEY              = ephemeral.platform_access_key.ci.key
      JOB_CLUSTER_TOKEN    = ephemeral.platform_cluster_token.clusters.token
      JOB_KUBECONFIG       = ephemeral.platform_kubeconfig.dev.kubeconfig
      JOB_KUBECONFIG_TOKEN = ephemeral.platform_kubeconfig.dev.token
      JOB_CERTIFICATE      = ephemeral.platform_kubeconfig.certificate.client_certificate
      JOB_PRIVATE_KEY      = ephemeral.platform_kubeconfig.certificate.client_key
    }
  }
}
`

// secretForm matches every access key and every signed token.
var secretForm = regexp.MustCompile(`pak_[A-Za-z0-9]{20}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.|PRIVATE KEY-----\\?n?[A-Za-z0-9+/]{20}|client-key-data`)

// findSecrets returns the files of a folder that have a secret, or the form of one, also within archives.
func findSecrets(t *testing.T, folder string, secrets []string) []string {
	t.Helper()
	var files []string
	look := func(name string, text []byte) {
		if form := secretForm.Find(text); form != nil {
			files = append(files, fmt.Sprintf("%s has %.12s...", name, form))
		}
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(secret))[:40])) {
				files = append(files, name+" has a secret")
			}
		}
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), "terraform-provider-") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		look(path, text)
		archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return nil //nolint:nilerr // it is no archive
		}
		for _, member := range archive.File {
			content, err := archive.Open(member.Name)
			if err != nil {
				return err
			}
			inner, err := io.ReadAll(content)
			if err != nil {
				return err
			}
			look(path+"!"+member.Name, inner)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Plan, apply and destroy with each kind of credential. The credentials work while Terraform runs, are gone afterwards, and stand nowhere: not in
// the state, not in the plan, not in logs at the level TRACE.
func TestSession(t *testing.T) {
	t.Parallel()
	p, settings := serve(t), mirror(t)
	p.register(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, engine := range engines(t) {
		t.Run(name, func(t *testing.T) {
			example, err := os.ReadFile(filepath.Join(root, "docs", "examples", "terraform-ephemeral", "main.tf"))
			if err != nil {
				t.Fatal(err)
			}
			s := newSession(t, p, engine, settings, string(example))
			s.environment = append(s.environment, "TF_VAR_certificate_authority="+p.authority)
			s.run(t, true, "fmt", "-check", "-diff")
			s.run(t, true, "apply", "-no-color", "-auto-approve")
			s = newSession(t, p, engine, settings, header+job)
			seenFile := filepath.Join(t.TempDir(), "seen.json")
			s.environment = append(s.environment, "TF_LOG=TRACE", "TF_LOG_PATH="+filepath.Join(s.folder, "trace.log"), "TF_VAR_program="+program, "TF_VAR_sighting="+seenFile)
			nothingLeft := func(after string) {
				t.Helper()
				if keys, tokens := p.list(t, "ownedaccesskeys"), p.list(t, "directclusterendpointtokens"); len(keys) != 1 || len(tokens) != 0 {
					t.Errorf("after %s there are the keys %q and the tokens %q", after, keys, tokens)
				}
			}
			s.write(t, "out.txt", s.run(t, true, "plan", "-no-color", "-out=plan.bin"))
			nothingLeft("plan")
			s.write(t, "apply.txt", s.run(t, true, "apply", "-no-color", "plan.bin"))
			nothingLeft("apply")
			s.write(t, "plan.json", s.run(t, true, "show", "-json", "plan.bin"))
			s.write(t, "state.json", s.run(t, true, "show", "-json"))

			text, err := os.ReadFile(seenFile)
			if err != nil {
				t.Fatal(err)
			}
			var seen sighting
			if err := json.Unmarshal(text, &seen); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(seen.Key, namePrefix) || seen.KeyType != "User" || seen.KubeconfigType != "Kubeconfig" || seen.KubeconfigKey == seen.Key {
				t.Errorf("the job was %q (%s) and %q (%s)", seen.Key, seen.KeyType, seen.KubeconfigKey, seen.KubeconfigType)
			}
			for _, bearer := range []string{"KEY", "KUBECONFIG_TOKEN"} {
				c := *p.client
				c.bearer = seen.Secrets[bearer]
				_, err := c.create(t.Context(), "selves", map[string]any{}, nil)
				if refusal, ok := errors.AsType[*apiError](err); !ok || refusal.Code != http.StatusUnauthorized {
					t.Errorf("%s after the apply: %v", bearer, err)
				}
			}
			secrets := []string{p.bearer}
			for name, secret := range seen.Secrets {
				if name == "PRIVATE_KEY" || name == "CERTIFICATE" {
					secret = strings.Split(secret, "\n")[1]
				}
				secrets = append(secrets, secret)
			}
			s.write(t, "destroy.txt", s.run(t, true, "destroy", "-no-color", "-auto-approve"))
			nothingLeft("destroy")
			for _, found := range findSecrets(t, s.folder, secrets) {
				t.Error(found)
			}
			for _, name := range []string{"trace.log", "terraform.tfstate.backup", "plan.bin"} {
				if info, err := os.Stat(filepath.Join(s.folder, name)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
			// The search finds what is there.
			s.write(t, "planted.txt", "x"+seen.Secrets["KEY"]+"x")
			if found := findSecrets(t, s.folder, secrets); len(found) == 0 {
				t.Error("a planted secret is not found")
			}
		})
	}
}

// diagnostic is an error or a warning, as plan -json prints it.
type diagnostic struct {
	Severity, Summary, Detail, Address string
	Snippet                            struct{ Code string }
}

// Wrong arguments are errors at the argument that is wrong, and leave no credential.
func TestProblems(t *testing.T) {
	t.Parallel()
	p, settings := serve(t), mirror(t)
	p.register(t)
	var narrow made
	if _, err := p.create(t.Context(), "ownedaccesskeys", map[string]any{
		"metadata": map[string]any{"name": "narrow"}, "spec": map[string]any{"ttl": 3600, "scope": map[string]any{"projects": []any{map[string]any{"project": "shop"}}}},
	}, &narrow); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.crt")
	otherPlatform := httpsAuthority(t)
	if err := os.WriteFile(other, otherPlatform, 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		about, configuration string
		environment          []string
		// code is what the line of the error has, detail what its text has.
		code, detail string
	}{
		{
			about: "403: a scope that is wider than the scope of the provider's key", environment: []string{"PLATFORM_ACCESS_KEY=" + narrow.Spec.Key},
			configuration: `ephemeral "platform_access_key" "x" {
  scope = { projects = [{ project = "other" }] }
}`, code: "scope", detail: "spec.scope.projects[0]",
		},
		{
			about: "403: a token that is wider", environment: []string{"PLATFORM_ACCESS_KEY=" + narrow.Spec.Key},
			configuration: `ephemeral "platform_cluster_token" "x" {
  scope = { clusters = [{ cluster = "east" }] }
}`, code: "scope", detail: "spec.scope.clusters[0]",
		},
		{
			about: "422: two owners",
			configuration: `ephemeral "platform_access_key" "x" {
  user = "admin"
  team = "shop"
}`, code: "team", detail: "spec.team",
		},
		{
			about: "404: an unknown virtual cluster",
			configuration: `ephemeral "platform_kubeconfig" "x" {
  namespace = "p-shop"
  name      = "gone"
}`, code: "name      =", detail: "not found",
		},
		{
			about: "422: a lifetime that is too long",
			configuration: `ephemeral "platform_kubeconfig" "x" {
  namespace       = "p-shop"
  name            = "dev"
  certificate_ttl = 100000000000
}`, code: "certificate_ttl", detail: "spec.certificateTTL",
		},
		{
			about: "a key without an end",
			configuration: `ephemeral "platform_access_key" "x" {
  ttl = 0
}`, code: "ttl", detail: "at least 1",
		},
		{
			about: "401: a wrong access key", environment: []string{"PLATFORM_ACCESS_KEY=nokey"},
			configuration: `ephemeral "platform_access_key" "x" {}`, code: "ephemeral", detail: "bearer",
		},
		{
			about: "a wrong certificate authority", environment: []string{"TF_VAR_authority=" + other},
			configuration: `ephemeral "platform_access_key" "x" {}`, code: "ephemeral", detail: "unknown authority",
		},
		{
			about: "no server", environment: []string{"PLATFORM_SERVER=127.0.0.1:1"},
			configuration: `ephemeral "platform_access_key" "x" {}`, code: "ephemeral", detail: "connection refused",
		},
		{
			about: "a server without TLS", environment: []string{"PLATFORM_SERVER=http://platform.example.com"},
			configuration: `ephemeral "platform_access_key" "x" {}`, code: "provider", detail: "https",
		},
		{
			about: "no kubeconfig",
			configuration: `provider "platform" {
  alias      = "file"
  kubeconfig = "/gone/kubeconfig"
}

ephemeral "platform_access_key" "x" {
  provider = platform.file
}`, code: "kubeconfig", detail: "/gone/kubeconfig",
		},
		{
			about: "a context that the kubeconfig does not have",
			configuration: `provider "platform" {
  alias      = "file"
  kubeconfig = var.kubeconfig
  context    = "other"
}

ephemeral "platform_access_key" "x" {
  provider = platform.file
}`, code: "context", detail: `use one of "platform"`,
		},
		{
			about: "no certificate authority", environment: []string{"TF_VAR_authority=/gone/ca.crt"},
			configuration: `ephemeral "platform_access_key" "x" {}`, code: "certificate_authority", detail: "/gone/ca.crt",
		},
	}
	for name, engine := range engines(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, p, engine, settings, header)
			environment := s.environment
			for _, row := range rows {
				s.environment = append(slices.Clone(environment), row.environment...)
				s.write(t, "main.tf", header+"\n"+row.configuration+"\n")
				output := s.run(t, false, "plan", "-json")
				found := false
				for line := range strings.Lines(output) {
					var message struct{ Diagnostic *diagnostic }
					if json.Unmarshal([]byte(line), &message) == nil && message.Diagnostic != nil && message.Diagnostic.Severity == "error" {
						d := message.Diagnostic
						found = found || strings.Contains(d.Snippet.Code, row.code) && strings.Contains(d.Detail, row.detail)
					}
				}
				if !found {
					t.Errorf("%s: no error at %q says %q:\n%s", row.about, row.code, row.detail, output)
				}
			}
			if keys := p.list(t, "ownedaccesskeys"); len(keys) != 2 {
				t.Errorf("there are the keys %q", keys)
			}
		})
	}
}

// httpsAuthority returns the certificate of an authority that signed nothing.
func httpsAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}

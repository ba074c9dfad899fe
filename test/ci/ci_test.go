//go:build unix

// Package ci_test runs the jobs of docs/ci.md with the GitHub action and the GitLab component of infra/ci, as the runners of both systems do: with
// inputs and variables, the files through which steps hand on values, and the steps at the end. The platform is a real runner, and the
// virtual cluster is a server that asks the platform who the caller is. Source: ADR-0051.
package ci_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"management.platform.sh/test/launch"
)

const (
	root     = "../.."
	version  = "1.2.3"
	basePath = "/kubernetes/management"
	apiPath  = basePath + "/apis/management.platform.sh/v1/"
	// runnerSecret is the bearer token with which a GitHub job asks for its ID token.
	runnerSecret = "runner-8Kx20wQm57ZtLp93"
)

// programs builds platform and kubectl once. It reads the metadata of the sources, so that the test cache knows them.
var programs = sync.OnceValues(func() (map[string]string, error) {
	for _, folder := range []string{"functions", "infra", "local", "shared", "go.mod", "go.sum"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			if err == nil && !entry.IsDir() {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	platform, err := filepath.Abs(filepath.Join(root, "build", "test", "ci", "platform"))
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-o", platform, "./local")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building platform: %w\n%s", err, output)
	}
	kubectl, err := launch.Kubectl(context.Background(), root)
	return map[string]string{"platform": platform, "kubectl": kubectl}, err
})

// world is a platform with a trust rule and a virtual cluster, the issuer of the tokens of jobs, and a release.
type world struct {
	t testing.TB
	// host is the address of the platform, and authority the file with its certificate authority.
	host, authority string
	// api is the URL of its plain HTTP listener, and admin the key of an admin.
	api   *url.URL
	admin string
	// tools is a folder for PATH, with kubectl.
	tools string
	// archives is the URL of a release. release is its folder.
	archives, release string
	issuer            *httptest.Server
	// github is the URL at which a GitHub job asks for its ID token.
	github string
	key    *ecdsa.PrivateKey

	mu sync.Mutex
	// tokens are the ID tokens that jobs got.
	tokens []string
}

// newWorld starts the platform and everything around it.
func newWorld(t testing.TB) *world {
	t.Helper()
	built, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, tools: t.TempDir(), release: t.TempDir()}
	folder := t.TempDir()
	runner, err := launch.StartProgram(t.Context(), []string{built["platform"]}, folder, filepath.Join(t.TempDir(), "log"), "PLATFORM_REDIS_TIMEOUT=20s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Stop)
	w.must(os.Symlink(built["kubectl"], filepath.Join(w.tools, "kubectl")))
	admin, err := os.ReadFile(runner.KeyFile())
	w.must(err)
	w.admin = strings.TrimSpace(string(admin))
	w.api, err = url.Parse(runner.Server)
	w.must(err)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	w.must(err)
	address, err := url.Parse(config.Host)
	w.must(err)
	w.host, w.authority = address.Host, filepath.Join(folder, "ca.crt")
	w.serveIssuer()
	w.setUp()

	// The program in the archive is the real one. It stands in another place, so that it is not compressed for each test.
	writeRelease(t, w.release, version, map[string]string{platformOfMachine(): "#!/bin/sh\nexec '" + built["platform"] + "' \"$@\"\n"})
	files := httptest.NewServer(http.FileServer(http.Dir(w.release)))
	t.Cleanup(files.Close)
	w.archives = files.URL
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func platformOfMachine() string { return runtime.GOOS + "_" + runtime.GOARCH }

// writeRelease writes archives in the layout of infra/release, with the programs of machines such as linux_amd64, and their checksums.
func writeRelease(t testing.TB, folder, version string, machines map[string]string) {
	t.Helper()
	var sums bytes.Buffer
	for machine, program := range machines {
		name := "platform_" + version + "_" + machine
		var text bytes.Buffer
		compressed := gzip.NewWriter(&text)
		archive := tar.NewWriter(compressed)
		for _, entry := range []struct {
			name, text string
			mode       int64
		}{{name + "/", "", 0o755}, {name + "/LICENSE", "all rights\n", 0o644}, {name + "/platform", program, 0o755}} {
			header := &tar.Header{Name: entry.name, Mode: entry.mode, Size: int64(len(entry.text)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
			if strings.HasSuffix(entry.name, "/") {
				header.Typeflag = tar.TypeDir
			}
			if err := archive.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Write([]byte(entry.text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmp.Or(archive.Close(), compressed.Close(), os.WriteFile(filepath.Join(folder, name+".tar.gz"), text.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s.tar.gz\n", sha256.Sum256(text.Bytes()), name)
	}
	fmt.Fprintf(&sums, "%x  functions_%s_image.tar\n", sha256.Sum256(nil), version)
	file, err := os.OpenFile(filepath.Join(folder, "checksums.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(sums.Bytes())
	if err := cmp.Or(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// serveIssuer starts the system that signs the tokens of jobs. A job of GitHub asks it for a token.
func (w *world) serveIssuer() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	point, err := key.PublicKey.Bytes()
	w.must(err)
	w.key = key
	encode := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	w.issuer = httptest.NewTLSServer(mux)
	w.t.Cleanup(w.issuer.Close)
	for path, answer := range map[string]any{
		"/.well-known/openid-configuration": map[string]string{"issuer": w.issuer.URL, "jwks_uri": w.issuer.URL + "/keys"},
		"/keys": map[string]any{"keys": []any{map[string]string{
			"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:]),
		}}},
	} {
		mux.HandleFunc("GET "+path, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(answer)
		})
	}
	tokens := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+runnerSecret {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(rw).Encode(map[string]string{"value": w.token(r.URL.Query().Get("audience"))})
	}))
	w.t.Cleanup(tokens.Close)
	w.github = tokens.URL + "/?api-version=2.0"
}

// token returns an ID token of a job of the branch main.
func (w *world) token(audience string) string {
	now := time.Now().Unix()
	part := func(object any) string {
		text, err := json.Marshal(object)
		if err != nil {
			w.t.Error(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]string{"alg": "ES256", "kid": "1"}) + "." + part(map[string]any{
		"iss": w.issuer.URL, "aud": audience, "iat": now, "exp": now + 300, "jti": rand.Text(), "sub": "repo:acme/shop",
		"repository_id": "345", "ref": "refs/heads/main", "event_name": "push",
	})
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, w.key, sum[:])
	if err != nil {
		w.t.Error(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	token := signed + "." + base64.RawURLEncoding.EncodeToString(signature)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens = append(w.tokens, token)
	return token
}

// secrets returns what no job may print: its own secrets, the ID tokens of all jobs, and what does not belong to jobs.
func (w *world) secrets(own []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Concat(own, w.tokens, []string{runnerSecret, w.admin})
}

// setUp does what an admin does by docs/ci.md, and registers the virtual clusters.
func (w *world) setUp() {
	w.ask(http.MethodPatch, "configs/config", w.admin, http.StatusOK, map[string]any{"status": map[string]any{"platformHost": w.host}})
	w.ask(http.MethodPost, "teams", w.admin, http.StatusCreated, map[string]any{"metadata": map[string]any{"name": "web"}})

	// The virtual cluster knows callers from the platform. What it stores is in the platform as well.
	to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: w.api.Scheme, Host: w.api.Host, Path: basePath})
		r.Out.Header.Set("Authorization", "Bearer "+w.admin)
	}}
	cluster := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if status, _ := w.send(http.MethodPost, "selves", token, map[string]any{}); status != http.StatusCreated {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		to.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(cluster.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw})
	for _, name := range []string{"shop", "other"} {
		w.ask(http.MethodPost, "namespaces/p-web/virtualclusterinstances", w.admin, http.StatusCreated, map[string]any{
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"owner":       map[string]any{"team": "web"},
				"accessPoint": map[string]any{"ingress": map[string]any{"enabled": true, "host": strings.TrimPrefix(cluster.URL, "https://"), "caData": certificate}},
			},
		})
	}
	var rule map[string]any
	w.must(yaml.Unmarshal([]byte(block(w.t, "kind: TrustRule")), &rule))
	spec := rule["spec"].(map[string]any)
	spec["issuer"] = w.issuer.URL
	spec["caData"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.issuer.Certificate().Raw})
	w.ask(http.MethodPost, "trustrules", w.admin, http.StatusCreated, rule)
}

// send sends a request to the platform.
func (w *world) send(method, path, key string, body any) (status int, answer []byte) {
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Error(err)
	}
	request, err := http.NewRequest(method, w.api.Scheme+"://"+w.api.Host+apiPath+path, bytes.NewReader(text))
	if err != nil {
		w.t.Error(err)
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Error(err)
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		w.t.Error(err)
	}
	return response.StatusCode, answer
}

func (w *world) ask(method, path, key string, want int, body any) {
	w.t.Helper()
	if status, answer := w.send(method, path, key, body); status != want {
		w.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
}

// works reports whether the platform accepts a credential.
func (w *world) works(credential string) bool {
	w.t.Helper()
	status, answer := w.send(http.MethodPost, "selves", credential, map[string]any{})
	if status != http.StatusCreated && status != http.StatusUnauthorized {
		w.t.Errorf("asking about a credential: %d %s", status, answer)
	}
	return status == http.StatusCreated
}

// keysOfRule returns the number of access keys that the trust rule has made and that exist.
func (w *world) keysOfRule() int {
	w.t.Helper()
	status, answer := w.send(http.MethodGet, "ownedaccesskeys?fieldSelector=status.trustRule.name%3Ddeploy-shop", w.admin, nil)
	var list struct{ Items []any }
	if err := json.Unmarshal(answer, &list); err != nil || status != http.StatusOK {
		w.t.Fatalf("%d %v %s", status, err, answer)
	}
	return len(list.Items)
}

// deployment is what the job of the page applies: a team in the virtual cluster.
const deployment = "apiVersion: management.platform.sh/v1\nkind: Team\nmetadata:\n  name: deployed\n"

// checkDeployed checks that the job has applied deploy.yaml, and removes what it has applied.
func (w *world) checkDeployed() {
	w.t.Helper()
	if status, _ := w.send(http.MethodDelete, "teams/deployed", w.admin, map[string]any{}); status != http.StatusOK {
		w.t.Errorf("the job has deployed nothing: %d", status)
	}
}

// checkout returns a folder with the files of the job.
func checkout(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "shop")
	if err := cmp.Or(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "deploy.yaml"), []byte(deployment), 0o600)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// environment returns the variables that every job has.
func (w *world) environment(home string) map[string]string {
	return map[string]string{
		"PATH": w.tools + ":" + os.Getenv("PATH"), "HOME": home, "KUBECACHEDIR": filepath.Join(home, "cache"), "LANG": "C.UTF-8",
	}
}

func list(variables map[string]string) []string {
	var all []string
	for name, value := range variables {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// block returns the block of docs/ci.md that contains a text.
func block(t testing.TB, text string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range yamlBlock.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(found[1], text) {
			return found[1]
		}
	}
	t.Fatalf("docs/ci.md has no block with %q", text)
	return ""
}

// secretsIn returns the secrets of the jobs in folders.
func secretsIn(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, strings.Fields(string(text))...)
	}
	return secrets
}

// checkClosed checks that other users can read nothing in a folder that its job has filled.
func checkClosed(t testing.TB, folder string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		public := []string{"job.sh", "platform"}
		if err == nil && info.Mode().Perm()&0o077 != 0 && (entry.IsDir() || !slices.Contains(public, entry.Name())) {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen < 5 {
		t.Errorf("%s: %d files, %v", folder, seen, err)
	}
}

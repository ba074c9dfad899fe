package client

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process"
)

// plugin is the token command with its own platform.
type plugin struct {
	*issuertest.World
	t      *testing.T
	server *httptest.Server
	folder string
	asked  atomic.Int64
	status atomic.Int64
}

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{World: issuertest.New(t), t: t, folder: t.TempDir()}
	handler := process.NewServer(p.Env).Mount(catalog.Functions...)
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if status := p.status.Load(); status != 0 {
			w.WriteHeader(int(status))
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.Key("ci", "ana", model.OwnedAccessKeySpec{})
	for name, text := range map[string][]byte{
		"key": []byte(issuertest.Bearer + "ci\n"), "ca": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}),
	} {
		if err := os.WriteFile(filepath.Join(p.folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *plugin) command() *Token {
	return &Token{
		Server: p.server.URL + frame.BasePath, authorityFlag: authorityFlag{filepath.Join(p.folder, "ca")}, KeyFile: filepath.Join(p.folder, "key"),
		TTL: time.Hour, Cache: filepath.Join(p.folder, "cache"), now: p.Now, output: &bytes.Buffer{}, warn: &bytes.Buffer{},
	}
}

// run runs a command and returns what it printed.
func (p *plugin) run(c *Token) (printed clientauthenticationv1.ExecCredential, warned string, err error) {
	p.t.Helper()
	err = c.Run(p.t.Context())
	text := c.output.(*bytes.Buffer).Bytes()
	if err == nil {
		if err := json.Unmarshal(text, &printed); err != nil {
			p.t.Fatal(err)
		}
	} else if len(text) > 0 {
		p.t.Errorf("failed, and printed %q", text)
	}
	warned = c.warn.(*bytes.Buffer).String()
	if said := fmt.Sprint(warned, err); strings.Contains(said, issuertest.Bearer) || strings.Contains(said, "eyJ") {
		p.t.Errorf("said a secret: %s", said)
	}
	return printed, warned, err
}

func (p *plugin) cached() []string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.folder, "cache", "*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// A printed token is valid for a verifier, is cached where no other user can read it, and is renewed before it expires.
func TestTokenIsKeptAndRenewed(t *testing.T) {
	p := newPlugin(t)
	first, _, err := p.run(p.command())
	if err != nil {
		t.Fatal(err)
	}
	if first.APIVersion != "client.authentication.k8s.io/v1" || first.Kind != "ExecCredential" {
		t.Errorf("%+v", first)
	}
	from := issuer.Open(p.Env, issuedtoken.Open(p.Env))
	claims, _, err := from.Verify(t.Context(), secret.String(first.Status.Token), from.Audiences())
	if err != nil || claims.Subject != "ana" || claims.Scope != nil || !claims.Expires.Equal(first.Status.ExpirationTimestamp.Time) {
		t.Errorf("%+v, %v", claims, err)
	}
	for _, file := range append(p.cached(), filepath.Join(p.folder, "cache")) {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if len(p.cached()) != 1 {
		t.Errorf("kept %q", p.cached())
	}
	p.Pass(48*time.Minute - time.Second)
	if again, _, err := p.run(p.command()); err != nil || again.Status.Token != first.Status.Token || p.asked.Load() != 1 {
		t.Errorf("a young token is not used again: %v, asked %d times", err, p.asked.Load())
	}
	p.Pass(time.Second)
	if next, _, err := p.run(p.command()); err != nil || next.Status.Token == first.Status.Token || p.asked.Load() != 2 {
		t.Errorf("an old token is not renewed: %v, asked %d times", err, p.asked.Load())
	}
}

// Other flags get another token.
func TestTokensAreKeptApart(t *testing.T) {
	p := newPlugin(t)
	p.Key("other", "ben", model.OwnedAccessKeySpec{})
	seen := map[string]bool{}
	for _, change := range []func(*Token){
		func(*Token) {},
		func(c *Token) { c.TTL = time.Minute },
		func(c *Token) { c.Cluster = []string{"a"} },
		func(c *Token) { c.Cluster = []string{"a", "b"} },
		func(c *Token) { c.KeyFile, c.Key = "", issuertest.Bearer+"other" },
	} {
		c := p.command()
		change(c)
		printed, _, err := p.run(c)
		if err != nil || seen[printed.Status.Token] {
			t.Fatalf("%+v: %v", printed, err)
		}
		seen[printed.Status.Token] = true
		from := issuer.Open(p.Env, issuedtoken.Open(p.Env))
		claims, _, err := from.Verify(t.Context(), secret.String(printed.Status.Token), from.Audiences())
		if err != nil || (claims.Scope != nil) != (len(c.Cluster) > 0) || claims.Scope != nil && len(claims.Scope.Clusters) != len(c.Cluster) {
			t.Errorf("%+v, %v", claims, err)
		}
	}
	if len(p.cached()) != 5 {
		t.Errorf("kept %d", len(p.cached()))
	}
}

// While the platform is unreachable, a cached token is used until it expires.
func TestTokenWhileThePlatformIsAway(t *testing.T) {
	p := newPlugin(t)
	first, _, err := p.run(p.command())
	if err != nil {
		t.Fatal(err)
	}
	p.status.Store(http.StatusServiceUnavailable)
	p.Pass(59 * time.Minute)
	if again, warned, err := p.run(p.command()); err != nil || again.Status.Token != first.Status.Token || warned == "" {
		t.Errorf("%v, %q", err, warned)
	}
	p.Pass(time.Minute)
	if _, _, err := p.run(p.command()); err == nil {
		t.Error("a token that is over is used")
	}
}

// A refused key gets no token, and its cached token is removed.
func TestTokenOfARefusedKey(t *testing.T) {
	p := newPlugin(t)
	if _, _, err := p.run(p.command()); err != nil {
		t.Fatal(err)
	}
	p.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
	p.Pass(50 * time.Minute)
	if _, _, err := p.run(p.command()); err == nil || !strings.Contains(err.Error(), "access key disabled") {
		t.Errorf("%v", err)
	}
	if len(p.cached()) != 0 {
		t.Errorf("kept %q", p.cached())
	}
}

// A cached token is not used if its file was changed or is readable by others.
func TestTokensThatAreNotTrusted(t *testing.T) {
	for about, spoil := range map[string]func(t *testing.T, file string) error{
		"readable by others": func(_ *testing.T, file string) error { return os.Chmod(file, 0o644) },
		"no JSON":            func(_ *testing.T, file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
		"empty":              func(_ *testing.T, file string) error { return os.WriteFile(file, nil, 0o600) },
		"without a token": func(_ *testing.T, file string) error {
			return os.WriteFile(file, []byte(`{"issued":"2027-01-01T00:00:00Z","expires":"2099-01-01T00:00:00Z"}`), 0o600)
		},
		"from the future": func(_ *testing.T, file string) error {
			return os.WriteFile(file, []byte(`{"token":"x","issued":"2098-01-01T00:00:00Z","expires":"2099-01-01T00:00:00Z"}`), 0o600)
		},
		"a link": func(t *testing.T, file string) error {
			elsewhere := filepath.Join(t.TempDir(), "x")
			if err := os.Rename(file, elsewhere); err != nil {
				return err
			}
			return os.Symlink(elsewhere, file)
		},
	} {
		p := newPlugin(t)
		first, _, err := p.run(p.command())
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(t, p.cached()[0]); err != nil {
			t.Fatal(err)
		}
		if again, _, err := p.run(p.command()); err != nil || again.Status.Token == first.Status.Token || p.asked.Load() != 2 {
			t.Errorf("%s: used, %v", about, err)
		}
		if again, _, err := p.run(p.command()); err != nil || p.asked.Load() != 2 {
			t.Errorf("%s: not mended: %+v, %v", about, again, err)
		}
	}
}

// A certificate of an authority that this machine does not know leads to the flag that names the authority.
func TestUnknownAuthority(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := connect("")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(server.URL)
	if err == nil {
		_ = answer.Body.Close()
	}
	if !errors.As(err, new(x509.UnknownAuthorityError)) || !strings.Contains(err.Error(), "--certificate-authority") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// The kubeconfig in the document is valid, and the command knows its arguments.
func TestTokenOfTheDocument(t *testing.T) {
	p := newPlugin(t)
	text, err := os.ReadFile("../../docs/clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\n# kubeconfig\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the document has no kubeconfig")
	}
	config, err := clientcmd.Load([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.ConfirmUsable(*config, ""); err != nil {
		t.Fatal(err)
	}
	exec := config.AuthInfos["ana"].Exec
	replacer := strings.NewReplacer(
		"https://platform.example/kubernetes/management", p.server.URL+frame.BasePath,
		"/srv/ana/platform/ca.crt", filepath.Join(p.folder, "ca"), "/srv/ana/platform/key", filepath.Join(p.folder, "key"),
	)
	arguments := []string{"--cache=" + filepath.Join(p.folder, "cache")}
	for _, argument := range exec.Args[1:] {
		arguments = append(arguments, replacer.Replace(argument))
	}
	c := p.command()
	var all struct {
		Token Token `cmd:""`
	}
	parser, err := kong.New(&all, kong.Exit(func(int) { t.Error("asked for help") }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append(exec.Args[:1], arguments...)); err != nil {
		t.Fatal(err)
	}
	all.Token.now, all.Token.output, all.Token.warn = c.now, c.output, c.warn
	printed, _, err := p.run(&all.Token)
	if err != nil || printed.APIVersion != exec.APIVersion {
		t.Fatalf("%+v, %v", printed, err)
	}
	from := issuer.Open(p.Env, issuedtoken.Open(p.Env))
	claims, _, err := from.Verify(t.Context(), secret.String(printed.Status.Token), from.Audiences())
	if err != nil || claims.Scope == nil || len(claims.Scope.Clusters) != 1 || claims.Scope.Clusters[0].Cluster != "cluster-a" {
		t.Errorf("%+v, %v", claims, err)
	}
}

// An empty name, for example from an unset variable, does not request a token for every cluster.
func TestClusterFlag(t *testing.T) {
	for _, row := range []struct {
		line []string
		want []string
		ok   bool
	}{
		{nil, nil, true},
		{[]string{"--cluster=a"}, []string{"a"}, true},
		{[]string{"--cluster", "a,b", "--cluster=c"}, []string{"a", "b", "c"}, true},
		{[]string{"--cluster="}, nil, false},
		{[]string{"--cluster", ""}, nil, false},
		{[]string{"--cluster=a,"}, nil, false},
		{[]string{"--cluster=a", "--cluster="}, nil, false},
	} {
		var parsed Token
		parser, err := kong.New(&parsed)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(append([]string{"--server=https://platform.example"}, row.line...))
		if (err == nil) != row.ok || row.ok && !slices.Equal(parsed.Cluster, row.want) {
			t.Errorf("%q: %v, %v", row.line, parsed, err)
		}
	}
}

func TestTokensAtOnce(t *testing.T) {
	p := newPlugin(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := p.run(p.command()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(p.cached()) != 1 {
		t.Errorf("left %q", p.cached())
	}
}

func TestTokenFlags(t *testing.T) {
	p := newPlugin(t)
	for about, change := range map[string]func(*Token){
		"--server: no host":              func(c *Token) { c.Server = "https://" },
		"--server: not encrypted":        func(c *Token) { c.Server = "http://platform.example" },
		"--server: a query":              func(c *Token) { c.Server += "?a=b" },
		"--ttl: negative":                func(c *Token) { c.TTL = -time.Second },
		"--ttl: a fraction":              func(c *Token) { c.TTL = time.Millisecond },
		"--key-file: none":               func(c *Token) { c.KeyFile += "x" },
		"no access key":                  func(c *Token) { c.KeyFile = "" },
		"--certificate-authority: none":  func(c *Token) { c.Authority += "x" },
		"--certificate-authority: empty": func(c *Token) { c.Authority = c.KeyFile },
	} {
		c := p.command()
		change(c)
		flag, _, _ := strings.Cut(about, ":")
		if _, _, err := p.run(c); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if p.asked.Load() != 0 {
		t.Errorf("the platform was asked %d times", p.asked.Load())
	}
	for _, info := range []string{"{", `{"apiVersion":"client.authentication.k8s.io/v1beta1"}`} {
		t.Setenv(execInfo, info)
		if _, _, err := p.run(p.command()); err == nil {
			t.Errorf("%s is understood", info)
		}
	}
	t.Setenv(execInfo, `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}`)
	if _, _, err := p.run(p.command()); err != nil {
		t.Error(err)
	}
}

// Without a key file and a variable, the access key is the key of the sign-in at that platform. A token for a virtual cluster has
// only the scope of that cluster, and a file of its own in the cache.
func TestTokenOfALogin(t *testing.T) {
	p := newPlugin(t)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(p.folder, "config"))
	t.Setenv("HOME", p.folder)
	command := func() *Token {
		c := p.command()
		c.KeyFile = ""
		return c
	}
	if _, _, err := p.run(command()); err == nil || !strings.Contains(err.Error(), "platform login "+p.server.URL) {
		t.Errorf("without a sign-in: %v", err)
	}
	_, folder, err := platformOf(p.server.URL)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, loginKey), []byte(issuertest.Bearer+"ci"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	unscoped, _, err := p.run(command())
	if err != nil {
		t.Fatal(err)
	}
	narrow := command()
	narrow.Virtual = virtualNames{{Project: "shop", VirtualCluster: "dev"}}
	printed, _, err := p.run(narrow)
	if err != nil || printed.Status.Token == unscoped.Status.Token {
		t.Fatalf("the token of a virtual cluster: %v", err)
	}
	from := issuer.Open(p.Env, issuedtoken.Open(p.Env))
	claims, _, err := from.Verify(t.Context(), secret.String(printed.Status.Token), from.Audiences())
	if want := (&model.Scope{VirtualClusters: narrow.Virtual}); err != nil || !reflect.DeepEqual(claims.Scope, want) {
		t.Errorf("%+v, %v", claims, err)
	}
}

// A virtual cluster has a project and a name.
func TestTokenVirtualCluster(t *testing.T) {
	for text, want := range map[string]virtualNames{
		"shop/dev": {{Project: "shop", VirtualCluster: "dev"}}, "a/b,c/d": {{Project: "a", VirtualCluster: "b"}, {Project: "c", VirtualCluster: "d"}},
		"dev": nil, "/dev": nil, "shop/": nil, "a/b/c": nil, "": nil, "a/b,": nil,
	} {
		var command Token
		parser, err := kong.New(&command, kong.Exit(func(int) {}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse([]string{"--server=https://platform.example", "--virtual-cluster=" + text})
		if (err != nil) != (want == nil) || err == nil && !reflect.DeepEqual(command.Virtual, want) {
			t.Errorf("%q: %v, %v", text, command.Virtual, err)
		}
	}
}

// Flags about the tokens of jobs mean nothing without --ci, and are not ignored. Source: ADR-0036.
func TestFlagsOfJobsNeedCI(t *testing.T) {
	t.Parallel()
	for _, command := range []Token{{Rule: "deploy"}, {TokenFile: "token"}, {Audience: "https://platform.example"}} {
		command.Server, command.Key, command.now = "https://127.0.0.1:1/kubernetes/management", "pak_mine", time.Now
		if _, _, _, err := command.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "--ci") {
			t.Errorf("%+v: %v", command, err)
		}
		login := Login{Host: "https://127.0.0.1:1", Rule: command.Rule, TokenFile: command.TokenFile, Audience: command.Audience, Output: filepath.Join(t.TempDir(), "none")}
		if err := login.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--ci") {
			t.Errorf("login with %+v: %v", login, err)
		}
	}
}

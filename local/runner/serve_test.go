package runner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/local/admin"
	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// goodServe returns a runner with the defaults and its own state. It reads no variables.
func goodServe(t *testing.T, data string) *Serve {
	t.Helper()
	command := New("test")
	command.Getenv = func(string) string { return "" }
	for key, value := range map[string]string{
		settings.Listen: "127.0.0.1:0", settings.RedisURL: redistest.Embedded(t), settings.RedisTimeout: "20s", settings.Data: data,
		settings.ExpireEvery: "1h", settings.EncryptionKey: encryption.Generate().Reveal(),
	} {
		command.Set(key, value)
	}
	return &command
}

// Wrong settings are refused before anything is created.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		change func(*Serve)
		names  string
	}{
		{"plain HTTP for others", func(c *Serve) { c.Set(settings.HTTP, "0.0.0.0:0") }, "--http"},
		{"no pause between expiries", func(c *Serve) { c.Set(settings.ExpireEvery, "0") }, "--expire-every"},
		{"a pause below none", func(c *Serve) { c.Set(settings.ExpireEvery, "-1s") }, "--expire-every"},
		{"no time for the state", func(c *Serve) { c.Set(settings.RedisTimeout, "99ms") }, "--redis-timeout"},
		{"more time than a gateway has", func(c *Serve) { c.Set(settings.RedisTimeout, "21s") }, "--redis-timeout"},
		{"a studio for others", func(c *Serve) { c.Set(settings.Studio, "true"); c.Set(settings.Listen, "0.0.0.0:0") }, "--studio"},
		{"a studio at a name", func(c *Serve) { c.Set(settings.Studio, "true"); c.Set(settings.Listen, "platform.example:0") }, "--studio"},
		{"a Redis without the key of its secrets", func(c *Serve) { c.Set(settings.EncryptionKey, "") }, settings.EncryptionKey},
		{"others without an issuer", func(c *Serve) { c.Set(settings.Listen, "0.0.0.0:0") }, settings.Issuer},
		{"a certificate without a key", func(c *Serve) { c.Set(settings.TLSCertFile, "tls.crt") }, "--tls-cert-file"},
		{"a key without a certificate", func(c *Serve) { c.Set(settings.TLSKeyFile, "tls.key") }, settings.TLSCertFile},
		{"names beside a certificate", func(c *Serve) {
			c.Set(settings.TLSCertFile, "tls.crt")
			c.Set(settings.TLSKeyFile, "tls.key")
			c.Set(settings.TLSNames, "a.example.com")
		}, "--tls-names"},
		{"a name with a port", func(c *Serve) { c.Set(settings.TLSNames, "a.example.com, a.example.com:8443") }, "--tls-names"},
		{"objects without a key to apply them", func(c *Serve) {
			c.Set(settings.AdminKey, settings.NoAdminKey)
			c.Set(settings.Manifests, t.TempDir())
		}, "--manifests"},
		{"a delay below none", func(c *Serve) { c.Set(settings.ShutdownDelay, "-1s") }, "--shutdown-delay"},
		{"memory that no worker starts with", func(c *Serve) { c.Set(settings.PatchMemory, "1Ki") }, "--patch-memory"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			command := goodServe(t, data)
			row.change(command)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := command.Run(ctx); err == nil || !strings.HasPrefix(err.Error(), row.names+": ") {
				t.Errorf("the error is %v", err)
			}
			if _, err := os.Stat(data); err == nil {
				t.Error("the data folder was made")
			}
		})
	}
}

// If the machine refuses an address or a folder, the error names the flag.
func TestServeNamesTheFlag(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for _, row := range []struct {
		flag   string
		change func(t *testing.T, c *Serve)
	}{
		{"--listen", func(_ *testing.T, c *Serve) { c.Set(settings.Listen, listener.Addr().String()) }},
		{"--http", func(_ *testing.T, c *Serve) { c.Set(settings.HTTP, listener.Addr().String()) }},
		{"--data", func(t *testing.T, c *Serve) {
			if err := os.WriteFile(c.Lookup(settings.Data), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"--data", func(t *testing.T, c *Serve) {
			if err := os.MkdirAll(filepath.Join(c.Lookup(settings.Data), "lock"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(row.flag, func(t *testing.T) {
			t.Parallel()
			command := goodServe(t, filepath.Join(t.TempDir(), "data"))
			row.change(t, command)
			if err := command.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), row.flag+": ") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
		defer cancel()
		begin, calls := time.Now(), []time.Duration{}
		runEvery(ctx, 4*time.Minute, func() { calls = append(calls, time.Since(begin)) })
		if len(calls) != 2 || calls[0] != 4*time.Minute || calls[1] != 8*time.Minute {
			t.Errorf("it was called after %v", calls)
		}
		if ended := time.Since(begin); ended != 10*time.Minute+time.Second {
			t.Errorf("it ended after %v", ended)
		}
	})
}

// Without its state the process is alive, but not ready.
func TestHealth(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := redistest.Open(t, "redis://"+server.Addr())
	metrics := prometheus.NewRegistry()
	configured := settings.Default()
	configured.Version = "test"
	api := process.New(configured, process.World{Stores: client.Resource, Log: slog.New(slog.DiscardHandler)})
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	api.Env.Tokens.Issuer = "https://a.example"
	api.Env.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	draining := &atomic.Bool{}
	handler := routes(api, client, metrics, draining)
	ask := func(method, path string) int {
		answer, request := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
		request.RemoteAddr = "127.0.0.1:1"
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
	for _, step := range []struct {
		about string
		do    func()
		ready int
	}{
		{"with the state", func() {}, http.StatusOK},
		{"without it", server.Close, http.StatusServiceUnavailable},
		{"with it again", func() {
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		}, http.StatusOK},
		{"while it drains", func() { draining.Store(true) }, http.StatusServiceUnavailable},
	} {
		step.do()
		for path, want := range map[string]int{
			"/healthz": http.StatusOK, "/livez": http.StatusOK, "/readyz": step.ready, "/metrics": http.StatusOK, "/nothing": http.StatusNotFound,
			"/kubernetes/management/healthz": http.StatusOK, "/kubernetes/management/livez": http.StatusOK, "/kubernetes/management/readyz": step.ready,
		} {
			if code := ask(http.MethodGet, path); code != want {
				t.Errorf("%s, %s: %d", step.about, path, code)
			}
		}
	}
	// With signing keys that cannot be opened, the process is alive, but not ready.
	other, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	api.Env.Encryption = func(context.Context) (*encryption.Keyring, error) { return other, nil }
	draining.Store(false)
	handler = routes(api, client, metrics, draining)
	if ready, alive := ask(http.MethodGet, "/readyz"), ask(http.MethodGet, "/livez"); ready != http.StatusServiceUnavailable || alive != http.StatusOK {
		t.Errorf("with another encryption key: ready %d, alive %d", ready, alive)
	}
}

// The metrics are for programs of this machine and for those with a key that may read them. Every page refuses with a Status,
// and no path is redirected.
func TestPages(t *testing.T) {
	t.Parallel()
	world := processtest.New(t)
	api, err := process.Open(world.Lookup(nil), process.Shell{Log: io.Discard, Streams: true})
	if err != nil {
		t.Fatal(err)
	}
	client := redistest.Open(t, world.URL)
	keys := map[string]string{"": ""}
	for name, role := range map[string]string{"reader": "metrics-reader", "agent": "agent"} {
		caller := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
		key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}}
		key.Spec.Scope = &model.Scope{Roles: []model.ScopeRole{{Role: role}}}
		written, err := resource.Create(t.Context(), kinds.AccessKeys(world.Env), resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: key})
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = written.Object.Spec.Key
	}
	handler := routes(api, client, prometheus.NewRegistry(), &atomic.Bool{})
	for _, row := range []struct {
		method, path, from, key, forwarded string
		want                               int
	}{
		{"GET", "/metrics", "127.0.0.1:1", "", "", http.StatusOK},
		{"GET", "/metrics", "[::1]:1", "", "", http.StatusOK},
		{"GET", "/metrics", "127.0.0.1:1", "", "192.0.2.9", http.StatusUnauthorized},
		{"GET", "/metrics", "192.0.2.1:1", "", "", http.StatusUnauthorized},
		{"HEAD", "/metrics", "192.0.2.1:1", "", "", http.StatusUnauthorized},
		{"GET", "/metrics", "192.0.2.1:1", "reader", "", http.StatusOK},
		{"GET", "/metrics", "192.0.2.1:1", "agent", "", http.StatusForbidden},
		{"POST", "/metrics", "127.0.0.1:1", "", "", http.StatusMethodNotAllowed},
		{"POST", "/healthz", "192.0.2.1:1", "", "", http.StatusMethodNotAllowed},
		{"GET", "//healthz", "192.0.2.1:1", "", "", http.StatusNotFound},
		{"GET", "/a/../healthz", "192.0.2.1:1", "", "", http.StatusNotFound},
		{"GET", "//", "192.0.2.1:1", "", "", http.StatusNotFound},
	} {
		answer, request := httptest.NewRecorder(), httptest.NewRequest(row.method, "/", nil)
		request.URL.Path, request.RequestURI, request.RemoteAddr = row.path, row.path, row.from
		if row.key != "" {
			request.Header.Set("Authorization", "Bearer "+keys[row.key])
		}
		if row.forwarded != "" {
			request.Header.Set("X-Forwarded-For", row.forwarded)
		}
		handler.ServeHTTP(answer, request)
		if answer.Code != row.want || answer.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s from %s as %q: %d %v", row.method, row.path, row.from, row.key, answer.Code, answer.Header())
		}
		if row.want >= http.StatusBadRequest && row.method != http.MethodHead && !strings.Contains(answer.Body.String(), `"kind":"Status"`) {
			t.Errorf("%s %s is refused with %s", row.method, row.path, answer.Body)
		}
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"[::]:8443": "127.0.0.1:8443", "0.0.0.0:1": "127.0.0.1:1", "127.0.0.1:8443": "127.0.0.1:8443", "[::1]:2": "[::1]:2", "192.0.2.1:3": "192.0.2.1:3",
	} {
		if got := clientAddress(given); got != want {
			t.Errorf("%s is reached at %s, want %s", given, got, want)
		}
	}
}

// The welcome says where everything is.
func TestAnnounce(t *testing.T) {
	for _, plain := range []string{"", "127.0.0.1:81"} {
		var noKey error
		if plain == "" {
			noKey = fmt.Errorf("a start: %w", admin.ErrDeleted)
		}
		text := localtest.Stdout(t, func() {
			given := &settings.Settings{Runner: settings.Runner{Data: "data", Studio: plain == ""}}
			announce("test", given, "127.0.0.1:80", plain, "Redis at example.com:6379", noKey)
		})
		for _, part := range []string{"https://127.0.0.1:80/kubernetes/management\n", "example.com:6379\n", filepath.Join("data", "admin.key"), filepath.Join("data", "kubeconfig")} {
			if !strings.Contains(text, part) {
				t.Errorf("it does not say %q:\n%s", part, text)
			}
		}
		if says := strings.Contains(text, "was deleted"); says != (plain == "") {
			t.Errorf("it says that the first admin key was deleted: %v", says)
		}
		if strings.Contains(text, "https://127.0.0.1:80/console/studio (without sign-in)\n") != (plain == "") {
			t.Errorf("it names the studio:\n%s", text)
		}
		if strings.Contains(text, "http://127.0.0.1:81/kubernetes/management\n") != (plain != "") {
			t.Errorf("with plain HTTP at %q:\n%s", plain, text)
		}
	}
}

// All errors in the flags are reported at once, and no key is quoted.
func TestTokenFlagsRefused(t *testing.T) {
	t.Parallel()
	bad := goodServe(t, filepath.Join(t.TempDir(), "data"))
	for key, value := range map[string]string{
		settings.Issuer: "http://hunter2", settings.SigningKey: "hunter2", settings.TokenMaxTTL: "1s", settings.SigningRotateEvery: "1m", settings.SigningPublishBefore: "1m",
	} {
		bad.Set(key, value)
	}
	err := bad.Run(t.Context())
	for _, flag := range []string{"--token-max-ttl", "--signing-publish-before", "--signing-rotate-every", "--issuer", "--signing-key"} {
		if err == nil || !strings.Contains(err.Error(), flag+":") {
			t.Errorf("%s is not in %v", flag, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("quoted: %v", err)
	}
}

// A runner that is given its state, key and certificate, and makes no admin key, writes nothing to disk. Source: ADR-0050.
func TestServeWithoutFolder(t *testing.T) {
	folder := t.TempDir()
	data, certFile, keyFile := filepath.Join(folder, "data"), filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	writeCertificate(t, openFolder(t, folder), certFile, keyFile, "platform.example.com")
	for _, given := range []string{settings.NoAdminKey, "given-key-8Kx20wQm57ZtLp93VrNc4Hd6"} {
		command := goodServe(t, data)
		for key, value := range map[string]string{settings.TLSCertFile: certFile, settings.TLSKeyFile: keyFile, settings.AdminKey: given} {
			command.Set(key, value)
		}
		ctx, end := context.WithCancel(t.Context())
		command.Ready = end
		text := localtest.Stdout(t, func() {
			if err := command.Run(ctx); err != nil {
				t.Errorf("%s: %v", given, err)
			}
		})
		if want := map[bool]string{true: "admin key   none; make one", false: "admin key   as given"}[given == settings.NoAdminKey]; !strings.Contains(text, want) || strings.Contains(text, data) {
			t.Errorf("%s: it says\n%s", given, text)
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%s: the data folder was made", given)
		}
	}
}

// If Redis cannot be reached, the error names the flag, without the secrets in the URL.
func TestRedisThatIsNotThere(t *testing.T) {
	t.Parallel()
	serve := goodServe(t, filepath.Join(t.TempDir(), "data"))
	serve.Set(settings.RedisURL, "unix://:hunter2@"+filepath.Join(t.TempDir(), "nobody.sock"))
	if err := serve.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "--redis: ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

// While a process drains, each response ends its connection, so that no client sends a request on a connection that is being closed.
func TestConnectionsEndWhileDraining(t *testing.T) {
	t.Parallel()
	draining := &atomic.Bool{}
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		draining.Store(false)
		server := httptest.NewUnstartedServer(closeConnections(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), draining))
		server.EnableHTTP2 = version == "HTTP/2.0"
		var opened atomic.Int64
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		server.StartTLS()
		ask := func() {
			t.Helper()
			answer, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.Proto != version {
				t.Fatalf("the answer is %s, not %s", answer.Proto, version)
			}
		}
		ask()
		ask()
		if opened.Load() != 1 {
			t.Errorf("%s: before, %d connections", version, opened.Load())
		}
		draining.Store(true)
		ask()
		answered := opened.Load()
		ask()
		if opened.Load() != answered+1 {
			t.Errorf("%s: while draining, the connection is used again", version)
		}
		server.Close()
	}
}

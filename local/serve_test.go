package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kong"
	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/syncpatch"
)

// Plain HTTP is for this machine alone. Source: ADR-0006.
func TestRequireLoopback(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about   string
		address string
		ok      bool
	}{
		{"none", "", true},
		{"loopback", "127.0.0.1:8080", true},
		{"any of loopback", "127.255.255.254:8080", true},
		{"any port", "127.0.0.1:0", true},
		{"loopback in IPv6", "[::1]:8080", true},
		{"loopback of IPv4 in IPv6", "[::ffff:127.0.0.1]:8080", true},
		{"its name", "localhost:8080", true},
		{"every address", ":8080", false},
		{"every address of IPv4", "0.0.0.0:8080", false},
		{"every address of IPv6", "[::]:8080", false},
		{"every address of IPv4 in IPv6", "[::ffff:0.0.0.0]:8080", false},
		{"a public address", "192.0.2.1:8080", false},
		{"a private address", "10.0.0.1:8080", false},
		{"a link-local address", "[fe80::1%eth0]:8080", false},
		{"a name", "example.com:8080", false},
		{"a name that begins like loopback", "localhost.example.com:8080", false},
		{"a name that looks like loopback", "127.0.0.1.example.com:8080", false},
		{"a short form", "127.1:8080", false},
		{"a number", "2130706433:8080", false},
		{"no port", "127.0.0.1", false},
		{"a port alone", "8080", false},
		{"IPv6 without brackets", "::1:8080", false},
		{"a URL", "http://127.0.0.1:8080", false},
		{"a blank", " 127.0.0.1:8080", false},
	} {
		err := requireLoopback(row.address)
		if (err == nil) != row.ok {
			t.Errorf("%s, %q: %v", row.about, row.address, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "--http: ") {
			t.Errorf("%s: the error does not name the flag: %v", row.about, err)
		}
	}
}

// parse reads a command line as main does, without the variables of whoever runs the test.
func parse(t *testing.T, variables map[string]string, line ...string) (*commands, string, error) {
	t.Helper()
	for _, name := range []string{
		"PLATFORM_REDIS_URL", "PLATFORM_REDIS_TIMEOUT", "PLATFORM_ADMIN_KEY", "PLATFORM_LOG_LEVEL", "PLATFORM_EDITION", "PLATFORM_PATCH_EXPRESSION_TIME",
		"PLATFORM_PATCH_OBJECT_TIME", "PLATFORM_PATCH_MEMORY", "PLATFORM_PATCH_RESULT", "PLATFORM_PATCH_DEPTH", "PLATFORM_PATCH_WORKERS",
		"PLATFORM_PATCH_IN_PROCESS",
	} {
		t.Setenv(name, variables[name])
		if variables[name] == "" {
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	var parsed commands
	parser, err := kong.New(&parsed, secretFlags())
	if err != nil {
		t.Fatal(err)
	}
	found, err := parser.Parse(line)
	if err != nil {
		return nil, "", err
	}
	return &parsed, found.Command(), nil
}

// A line that is wrong names the command whose help has the right ones.
func TestHelpFor(t *testing.T) {
	for line, want := range map[string]string{
		"bogus": "local --help", "--port=1": "local --help", "serve --port=1": "local serve --help", "patch eval": "local patch eval --help",
		"token --server=x --ttl=1": "local token --help",
	} {
		parser, err := kong.New(&commands{}, kong.Name("local"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = parser.Parse(strings.Fields(line)); err == nil || !strings.HasPrefix(helpFor(err, strings.Fields(line)), want) {
			t.Errorf("%s: %v, %s", line, err, helpFor(err, strings.Fields(line)))
		}
	}
}

func TestFlags(t *testing.T) {
	plain := serveCommand{Listen: "127.0.0.1:8443", Data: ".platform", ExpireEvery: 30 * time.Second, RedisTimeout: redisstore.DefaultTimeout, LogLevel: logLevel(slog.LevelInfo)}
	// The defaults are those that deployed functions have.
	plain.Signing = signingFlags{
		TokenMaxTTL: issuer.DefaultMaxTTL, Algorithm: issuer.DefaultAlgorithm,
		RotateEvery: issuer.DefaultRotateEvery, PublishBefore: issuer.DefaultPublishBefore,
	}
	limits := syncpatch.DefaultLimits()
	plain.Edition = frame.Enterprise
	plain.Patches = patchFlags{
		ExpressionTime: limits.Expression, ObjectTime: limits.Object, Memory: quantity(limits.Memory), Result: quantity(limits.Result), Depth: limits.Depth,
	}
	with := func(change func(*serveCommand)) serveCommand {
		changed := plain
		change(&changed)
		return changed
	}
	for _, row := range []struct {
		about     string
		variables map[string]string
		line      []string
		want      serveCommand
	}{
		{"nothing", nil, nil, plain},
		{"the command", nil, []string{"serve"}, plain},
		{"flags without the command", nil, []string{"--listen=[::1]:0", "--http", "127.0.0.1:0", "--data", "d", "--config", "c", "--manifests", "m"},
			with(func(c *serveCommand) {
				c.Listen, c.HTTP, c.Data, c.Config, c.Manifests = "[::1]:0", "127.0.0.1:0", "d", "c", "m"
			})},
		{"flags", nil, []string{"serve", "--redis=redis://a,redis://b", "--admin-key=k", "--expire-every=1h", "--log-level=debug"},
			with(func(c *serveCommand) {
				c.Redis, c.AdminKey, c.ExpireEvery, c.LogLevel = "redis://a,redis://b", "k", time.Hour, logLevel(slog.LevelDebug)
			})},
		{"variables", map[string]string{"PLATFORM_REDIS_URL": "redis://v", "PLATFORM_REDIS_TIMEOUT": "3s", "PLATFORM_ADMIN_KEY": "v", "PLATFORM_LOG_LEVEL": "warn"}, nil,
			with(func(c *serveCommand) {
				c.Redis, c.RedisTimeout, c.AdminKey, c.LogLevel = "redis://v", 3*time.Second, "v", logLevel(slog.LevelWarn)
			})},
		{"variables of patches", map[string]string{
			"PLATFORM_EDITION": "community", "PLATFORM_PATCH_EXPRESSION_TIME": "1s", "PLATFORM_PATCH_OBJECT_TIME": "2s", "PLATFORM_PATCH_MEMORY": "128Mi",
			"PLATFORM_PATCH_RESULT": "2Ki", "PLATFORM_PATCH_DEPTH": "9", "PLATFORM_PATCH_WORKERS": "3", "PLATFORM_PATCH_IN_PROCESS": "true",
		}, nil, with(func(c *serveCommand) {
			c.Edition = frame.Community
			c.Patches = patchFlags{ExpressionTime: time.Second, ObjectTime: 2 * time.Second, Memory: 128 << 20, Result: 2 << 10, Depth: 9, Workers: 3, InProcess: true}
		})},
		{"a flag wins over its variable", map[string]string{"PLATFORM_REDIS_URL": "redis://v", "PLATFORM_LOG_LEVEL": "warn"},
			[]string{"--redis=redis://f", "--log-level=ERROR"},
			with(func(c *serveCommand) { c.Redis, c.LogLevel = "redis://f", logLevel(slog.LevelError) })},
	} {
		t.Run(row.about, func(t *testing.T) {
			parsed, command, err := parse(t, row.variables, row.line...)
			if err != nil {
				t.Fatal(err)
			}
			if command != "serve" || parsed.Serve != row.want {
				t.Errorf("%s %+v, want %+v", command, parsed.Serve, row.want)
			}
		})
	}
}

func TestFlagsAreRefused(t *testing.T) {
	for _, row := range []struct {
		about     string
		variables map[string]string
		line      []string
		names     string
	}{
		{"a level that there is not", nil, []string{"--log-level=loud"}, "--log-level"},
		{"a level that there is not, by its variable", map[string]string{"PLATFORM_LOG_LEVEL": "loud"}, nil, "PLATFORM_LOG_LEVEL"},
		{"a time without a unit", nil, []string{"--expire-every=30"}, "--expire-every"},
		{"another word", nil, []string{"surve"}, "surve"},
		{"a flag without its value", nil, []string{"--listen"}, "--listen"},
		{"bootstrap without a Redis", nil, []string{"bootstrap"}, "--redis"},
		{"a flag of another command", nil, []string{"bootstrap", "--redis=redis://a", "--listen=:1"}, "--listen"},
		{"a key that is an argument", map[string]string{"PLATFORM_ADMIN_KEY": givenKey.Reveal()}, []string{"serve", "more"}, "more"},
	} {
		t.Run(row.about, func(t *testing.T) {
			_, _, err := parse(t, row.variables, row.line...)
			if err == nil || !strings.Contains(err.Error(), row.names) {
				t.Fatalf("the error is %v", err)
			}
			if strings.Contains(err.Error(), givenKey.Reveal()) {
				t.Error("the error tells the key")
			}
		})
	}
}

// goodServe is a runner with the defaults, on a state of its own.
func goodServe(t *testing.T, data string) *serveCommand {
	t.Helper()
	limits := syncpatch.DefaultLimits()
	return &serveCommand{
		Listen: "127.0.0.1:0", Redis: secret.String(redistest.Embedded(t)), RedisTimeout: redisstore.DefaultTimeout, Data: data, ExpireEvery: time.Hour,
		Signing: signingFlags{
			TokenMaxTTL: issuer.DefaultMaxTTL, Algorithm: issuer.DefaultAlgorithm,
			RotateEvery: issuer.DefaultRotateEvery, PublishBefore: issuer.DefaultPublishBefore,
		},
		Patches: patchFlags{
			ExpressionTime: limits.Expression, ObjectTime: limits.Object, Memory: quantity(limits.Memory), Result: quantity(limits.Result), Depth: limits.Depth,
		},
	}
}

// What cannot be served is refused before anything is made.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		change func(*serveCommand)
		names  string
	}{
		{"plain HTTP for others", func(c *serveCommand) { c.HTTP = "0.0.0.0:0" }, "--http"},
		{"no pause between expiries", func(c *serveCommand) { c.ExpireEvery = 0 }, "--expire-every"},
		{"a pause below none", func(c *serveCommand) { c.ExpireEvery = -time.Second }, "--expire-every"},
		{"no time for the state", func(c *serveCommand) { c.RedisTimeout = redisstore.LeastTimeout - 1 }, "--redis-timeout"},
		{"more time than a gateway has", func(c *serveCommand) { c.RedisTimeout = redisstore.MostTimeout + 1 }, "--redis-timeout"},
		{"memory that no worker starts with", func(c *serveCommand) { c.Patches.Memory = 1 << 10 }, "--patch-memory"},
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

// What the machine does not give is told with the flag that asks for something else.
func TestServeNamesTheFlag(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for _, row := range []struct {
		flag   string
		change func(t *testing.T, c *serveCommand)
	}{
		{"--listen", func(_ *testing.T, c *serveCommand) { c.Listen = taken.Addr().String() }},
		{"--http", func(_ *testing.T, c *serveCommand) { c.HTTP = taken.Addr().String() }},
		{"--data", func(t *testing.T, c *serveCommand) {
			if err := os.WriteFile(c.Data, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"--data", func(t *testing.T, c *serveCommand) {
			if err := os.MkdirAll(filepath.Join(c.Data, "lock"), 0o700); err != nil {
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
		every(ctx, 4*time.Minute, func() { calls = append(calls, time.Since(begin)) })
		if len(calls) != 2 || calls[0] != 4*time.Minute || calls[1] != 8*time.Minute {
			t.Errorf("it was called after %v", calls)
		}
		if ended := time.Since(begin); ended != 10*time.Minute+time.Second {
			t.Errorf("it ended after %v", ended)
		}
	})
}

// The process is alive without its state, and ready with it alone.
func TestHealth(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client, err := redisstore.Open("redis://"+server.Addr(), redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	metrics := prometheus.NewRegistry()
	env := newEnvironment(client, slog.New(slog.DiscardHandler), "", nil, metrics)
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	env.Tokens.Issuer = "https://a.example"
	env.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	handler := routes(env, client, metrics)
	ask := func(method, path string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(method, path, nil))
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
	if code := ask(http.MethodPost, "/healthz"); code == http.StatusOK {
		t.Errorf("POST is answered %d", code)
	}
	// Signing keys that cannot be opened: alive, and not ready.
	other, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	env.Encryption = func(context.Context) (*encryption.Keyring, error) { return other, nil }
	handler = routes(env, client, metrics)
	if ready, alive := ask(http.MethodGet, "/readyz"), ask(http.MethodGet, "/livez"); ready != http.StatusServiceUnavailable || alive != http.StatusOK {
		t.Errorf("with another encryption key: ready %d, alive %d", ready, alive)
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"[::]:8443": "127.0.0.1:8443", "0.0.0.0:1": "127.0.0.1:1", "127.0.0.1:8443": "127.0.0.1:8443", "[::1]:2": "[::1]:2", "192.0.2.1:3": "192.0.2.1:3",
	} {
		if got := reachable(given); got != want {
			t.Errorf("%s is reached at %s, want %s", given, got, want)
		}
	}
}

// A secret is what stands behind its flag, whatever it begins with, and no error shows it.
func TestSecretFlags(t *testing.T) {
	const pem = "-----BEGIN EC PRIVATE KEY-----\ncanary\n-----END EC PRIVATE KEY-----"
	parsed, _, err := parse(t, nil, "--signing-key", pem, "--admin-key=-a", "--encryption-key", "--b")
	if err != nil || parsed.Serve.SigningKey.Reveal() != pem || parsed.Serve.AdminKey.Reveal() != "-a" || parsed.Serve.Encryption.Reveal() != "--b" {
		t.Errorf("%v, %v", parsed, err)
	}
	if _, _, err := parse(t, nil, "--signing-key"); err == nil || !strings.Contains(err.Error(), "--signing-key") {
		t.Errorf("without a value: %v", err)
	}
}

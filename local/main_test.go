package main

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"management.platform.sh/local/flags"
	"management.platform.sh/local/localtest"
	"management.platform.sh/local/runner"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/syncpatch"
)

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
	plain := runner.Serve{Listen: "127.0.0.1:8443", Data: ".platform", ExpireEvery: 30 * time.Second, RedisTimeout: redisstore.DefaultTimeout, LogLevel: flags.LogLevel(slog.LevelInfo)}
	// The defaults are those that deployed functions have.
	plain.Signing = flags.Signing{
		TokenMaxTTL: issuer.DefaultMaxTTL, Algorithm: issuer.DefaultAlgorithm,
		RotateEvery: issuer.DefaultRotateEvery, PublishBefore: issuer.DefaultPublishBefore,
	}
	limits := syncpatch.DefaultLimits()
	plain.Edition = settings.Enterprise
	plain.Patches = flags.Patches{
		ExpressionTime: limits.Expression, ObjectTime: limits.Object, Memory: flags.Quantity(limits.Memory), Result: flags.Quantity(limits.Result), Depth: limits.Depth,
	}
	with := func(change func(*runner.Serve)) runner.Serve {
		changed := plain
		change(&changed)
		return changed
	}
	for _, row := range []struct {
		about     string
		variables map[string]string
		line      []string
		want      runner.Serve
	}{
		{"nothing", nil, nil, plain},
		{"the command", nil, []string{"serve"}, plain},
		{"flags without the command", nil, []string{"--listen=[::1]:0", "--http", "127.0.0.1:0", "--data", "d", "--config", "c", "--manifests", "m"},
			with(func(c *runner.Serve) {
				c.Listen, c.HTTP, c.Data, c.Config, c.Manifests = "[::1]:0", "127.0.0.1:0", "d", "c", "m"
			})},
		{"flags", nil, []string{"serve", "--redis=redis://a,redis://b", "--admin-key=k", "--expire-every=1h", "--log-level=debug"},
			with(func(c *runner.Serve) {
				c.Redis, c.AdminKey, c.ExpireEvery, c.LogLevel = "redis://a,redis://b", "k", time.Hour, flags.LogLevel(slog.LevelDebug)
			})},
		{"variables", map[string]string{"PLATFORM_REDIS_URL": "redis://v", "PLATFORM_REDIS_TIMEOUT": "3s", "PLATFORM_ADMIN_KEY": "v", "PLATFORM_LOG_LEVEL": "warn"}, nil,
			with(func(c *runner.Serve) {
				c.Redis, c.RedisTimeout, c.AdminKey, c.LogLevel = "redis://v", 3*time.Second, "v", flags.LogLevel(slog.LevelWarn)
			})},
		{"variables of patches", map[string]string{
			"PLATFORM_EDITION": "community", "PLATFORM_PATCH_EXPRESSION_TIME": "1s", "PLATFORM_PATCH_OBJECT_TIME": "2s", "PLATFORM_PATCH_MEMORY": "128Mi",
			"PLATFORM_PATCH_RESULT": "2Ki", "PLATFORM_PATCH_DEPTH": "9", "PLATFORM_PATCH_WORKERS": "3", "PLATFORM_PATCH_IN_PROCESS": "true",
		}, nil, with(func(c *runner.Serve) {
			c.Edition = settings.Community
			c.Patches = flags.Patches{ExpressionTime: time.Second, ObjectTime: 2 * time.Second, Memory: 128 << 20, Result: 2 << 10, Depth: 9, Workers: 3, InProcess: true}
		})},
		{"a flag wins over its variable", map[string]string{"PLATFORM_REDIS_URL": "redis://v", "PLATFORM_LOG_LEVEL": "warn"},
			[]string{"--redis=redis://f", "--log-level=ERROR"},
			with(func(c *runner.Serve) { c.Redis, c.LogLevel = "redis://f", flags.LogLevel(slog.LevelError) })},
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
		{"a key that is an argument", map[string]string{"PLATFORM_ADMIN_KEY": localtest.GivenKey.Reveal()}, []string{"serve", "more"}, "more"},
	} {
		t.Run(row.about, func(t *testing.T) {
			_, _, err := parse(t, row.variables, row.line...)
			if err == nil || !strings.Contains(err.Error(), row.names) {
				t.Fatalf("the error is %v", err)
			}
			if strings.Contains(err.Error(), localtest.GivenKey.Reveal()) {
				t.Error("the error tells the key")
			}
		})
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

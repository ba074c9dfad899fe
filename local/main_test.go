package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/settings"
)

// parse reads a command line as main does, without the PLATFORM_ variables of the environment.
func parse(t *testing.T, variables map[string]string, line ...string) (*commands, string, error) {
	t.Helper()
	for _, setting := range settings.List {
		name := setting.Name
		if name == "" {
			continue
		}
		t.Setenv(name, variables[name])
		if variables[name] == "" {
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	parsed := newCommands()
	parser := newParser(parsed)
	found, err := parser.Parse(separateIDs(parser.Model, line))
	if err != nil {
		return nil, "", err
	}
	return parsed, found.Command(), nil
}

// The error for a wrong line names the command whose help lists what is right.
func TestHelpFor(t *testing.T) {
	for line, want := range map[string]string{
		"bogus": "see platform --help", "--port=1": "see platform --help", "serve --port=1": "see platform serve --help",
		"patch eval": "see platform patch eval --help", "token --server=x --ttl=1": "see platform token --help",
	} {
		if _, err := newParser(newCommands()).Parse(strings.Fields(line)); err == nil || !strings.HasPrefix(helpFor(err, strings.Fields(line)), want) {
			t.Errorf("%s: %v, %s", line, err, helpFor(err, strings.Fields(line)))
		}
	}
}

// The command help prints what the flag --help of a command prints.
func TestHelpCommand(t *testing.T) {
	printed := func(line ...string) string {
		t.Helper()
		var out strings.Builder
		// The flag --help ends the program.
		type ended struct{}
		func() {
			defer func() {
				if reason := recover(); reason != nil && reason != any(ended{}) {
					panic(reason)
				}
			}()
			parsed, err := newParser(newCommands(), kong.Writers(&out, &out), kong.Exit(func(int) { panic(ended{}) })).Parse(line)
			if err == nil {
				err = parsed.Run()
			}
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}()
		return out.String()
	}
	for _, command := range [][]string{nil, {"keys"}, {"keys", "list"}, {"doctor"}} {
		got, want := printed(append([]string{"help"}, command...)...), printed(append(slices.Clone(command), "--help")...)
		if got != want || !strings.HasPrefix(got, "Usage: platform "+strings.Join(command, " ")) {
			t.Errorf("help %q:\n%s\nwant\n%s", command, got, want)
		}
	}
	parsed, err := newParser(newCommands()).Parse([]string{"help", "bogus"})
	if err == nil {
		err = parsed.Run()
	}
	if err == nil || !strings.Contains(err.Error(), "see platform --help") {
		t.Errorf("the help of an unknown command: %v", err)
	}
}

// A key id can begin with hyphens. It is an argument at every position, and the value of a flag stays the value.
func TestKeyIDs(t *testing.T) {
	const end = "Xq3vN0c8Yw1kTjLr5mZb7HdPs2fGaEuI4oBnC6xV-"
	for _, id := range []string{"a-" + end, "-a" + end, "--" + end, "-h" + end, "-o" + end} {
		if len(id) != 43 {
			t.Fatalf("%s has %d characters", id, len(id))
		}
		for _, line := range [][]string{
			{"signing-keys", "taint", id},
			{"signing-keys", "taint", id, "--data", "d"},
			{"signing-keys", "--data=d", "taint", id},
			{"signing-keys", "taint", "--", id},
			{"signing-keys", "taint", "--data", "d", "--", id},
			{"signing-keys", "taint", "--encryption-key", "-k" + end, id},
			{"signing-keys", "taint", id, "--encryption-key", "-k" + end},
		} {
			parsed, command, err := parse(t, nil, line...)
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if command != "signing-keys taint <kid>" || parsed.SigningKeys.Taint.ID != id {
				t.Errorf("%q: %s %q", line, command, parsed.SigningKeys.Taint.ID)
			}
			if slices.Contains(line, "--encryption-key") && parsed.SigningKeys.Encryption.Reveal() != "-k"+end {
				t.Errorf("%q: the encryption key is %q", line, parsed.SigningKeys.Encryption.Reveal())
			}
		}
	}
	// A short argument that begins with a hyphen may be a mistyped flag. After `--` it is an argument.
	if _, _, err := parse(t, nil, "signing-keys", "taint", "--lost"); err == nil || !strings.Contains(err.Error(), "--lost") {
		t.Errorf("an unknown flag: %v", err)
	}
	parsed, _, err := parse(t, nil, "patch", "check", "--", "-vcluster.yaml", "--other.yaml")
	if err != nil || !slices.Equal(parsed.Patch.Check.Files, []string{"-vcluster.yaml", "--other.yaml"}) {
		t.Errorf("files behind two hyphens: %v, %v", parsed, err)
	}
}

func TestFlags(t *testing.T) {
	// The defaults equal the defaults of deployed functions.
	plain := settings.Default()
	changed := func(change func(*settings.Settings)) settings.Settings {
		changed := plain
		change(&changed)
		return changed
	}
	for _, row := range []struct {
		about     string
		variables map[string]string
		line      []string
		want      settings.Settings
	}{
		{"nothing", nil, nil, plain},
		{"the command", nil, []string{"serve"}, plain},
		{"flags without the command", nil, []string{"--listen=[::1]:0", "--http", "127.0.0.1:0", "--data", "d", "--config", "main_test.go", "--manifests", "m"},
			changed(func(s *settings.Settings) {
				s.Runner.Listen, s.Runner.HTTP, s.Runner.Data, s.Config, s.Runner.Manifests = "[::1]:0", "127.0.0.1:0", "d", "main_test.go", "m"
			})},
		{"flags", nil, []string{"serve", "--redis=redis://a,redis://b", "--admin-key=k", "--expire-every=1h", "--log-level=debug", "--patch-in-process", "--issuer=https://a"},
			changed(func(s *settings.Settings) {
				s.Redis.URL, s.Redis.URLFrom, s.Runner.AdminKey, s.Runner.ExpireEvery = "redis://a,redis://b", settings.RedisURL, "k", time.Hour
				s.LogLevel, s.Patches.InProcess, s.Tokens.Issuer = slog.LevelDebug, true, "https://a"
			})},
		{"a boolean with a value", map[string]string{settings.PatchInProcess: "true"}, []string{"--patch-in-process=false"}, plain},
		{"variables", map[string]string{"PLATFORM_REDIS_URL": "redis://v", "PLATFORM_REDIS_TIMEOUT": "3s", "PLATFORM_ADMIN_KEY": "v", "PLATFORM_LOG_LEVEL": "warn", "PLATFORM_CONFIG": "main_test.go"}, nil,
			changed(func(s *settings.Settings) {
				s.Redis.URL, s.Redis.URLFrom, s.Redis.Timeout, s.Runner.AdminKey = "redis://v", settings.RedisURL, 3*time.Second, "v"
				s.LogLevel, s.Config = slog.LevelWarn, "main_test.go"
			})},
		{"variables without a flag", map[string]string{"PLATFORM_TOKEN_AUDIENCES": "a,b", "PLATFORM_WATCH_WINDOW": "1m", "PLATFORM_REDIS_POOL_SIZE": "3"}, nil,
			changed(func(s *settings.Settings) {
				s.Tokens.Audiences, s.Watch.Window, s.Redis.PoolSize = []string{"a", "b"}, time.Minute, 3
			})},
		{"variables of patches", map[string]string{
			"PLATFORM_EDITION": "community", "PLATFORM_PATCH_EXPRESSION_TIME": "1s", "PLATFORM_PATCH_OBJECT_TIME": "2s", "PLATFORM_PATCH_MEMORY": "128Mi",
			"PLATFORM_PATCH_RESULT": "2Ki", "PLATFORM_PATCH_DEPTH": "10", "PLATFORM_PATCH_WORKERS": "3", "PLATFORM_PATCH_IN_PROCESS": "true",
		}, nil, changed(func(s *settings.Settings) {
			s.Edition = settings.Community
			s.Patches = settings.Patches{ExpressionTime: time.Second, ObjectTime: 2 * time.Second, MemoryBytes: 128 << 20, ResultBytes: 2 << 10, Depth: 10, Workers: 3, InProcess: true}
		})},
		{"a flag wins over its variable", map[string]string{"PLATFORM_REDIS_URL": "redis://v", "PLATFORM_LOG_LEVEL": "warn"},
			[]string{"--redis=redis://f", "--log-level=ERROR"},
			changed(func(s *settings.Settings) {
				s.Redis.URL, s.Redis.URLFrom, s.LogLevel = "redis://f", settings.RedisURL, slog.LevelError
			})},
	} {
		t.Run(row.about, func(t *testing.T) {
			parsed, command, err := parse(t, row.variables, row.line...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := settings.ReadRunner(parsed.Serve.Lookup, nil)
			if err != nil || command != "serve" || !reflect.DeepEqual(got, row.want) {
				t.Errorf("%s %+v, want %+v; %v", command, got, row.want, err)
			}
		})
	}
}

// A flag that a command declares itself, for a setting in the list, has the name, the variable and the default of the list.
func TestFlagsAreSettings(t *testing.T) {
	parser, seen := newParser(newCommands()), 0
	err := kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		flag, ok := node.(*kong.Flag)
		if !ok {
			return next(nil)
		}
		for _, setting := range settings.List {
			if setting.Name == "" && setting.Flag != flag.Name || setting.Name != "" && !slices.Contains(flag.Envs, setting.Name) {
				continue
			}
			seen++
			if setting.Flag != "" && flag.Name != setting.Flag || flag.HasDefault && flag.Default != setting.Default {
				t.Errorf("the flag of %s is --%s with the default %q, want --%s with %q", setting.Key(), flag.Name, flag.Default, setting.Flag, setting.Default)
			}
		}
		return next(nil)
	})
	if err != nil || seen < 30 {
		t.Errorf("%d flags, %v", seen, err)
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
		{"a flag that is wrong beside a variable that is not", map[string]string{"PLATFORM_EDITION": "community"}, []string{"--edition=pro"}, "--edition: "},
		{"a token of ten years", nil, []string{"--token-max-ttl=90000h"}, "--token-max-ttl: must be a duration from 1m to 8784h"},
		{"a text that is not a boolean", nil, []string{"--patch-in-process=yes"}, "--patch-in-process: must be true or false"},
		{"another word", nil, []string{"surve"}, "surve"},
		{"a flag without its value", nil, []string{"--listen"}, "--listen"},
		{"bootstrap without a Redis", nil, []string{"bootstrap"}, "--redis"},
		{"a flag of another command", nil, []string{"bootstrap", "--redis=redis://a", "--listen=:1"}, "--listen"},
		{"a key that is an argument", map[string]string{"PLATFORM_ADMIN_KEY": localtest.GivenKey.Reveal()}, []string{"serve", "more"}, "more"},
	} {
		t.Run(row.about, func(t *testing.T) {
			parsed, _, err := parse(t, row.variables, row.line...)
			if err == nil {
				_, err = settings.ReadRunner(parsed.Serve.Lookup, parsed.Serve.InputName)
			}
			if err == nil || !strings.Contains(err.Error(), row.names) {
				t.Fatalf("the error is %v", err)
			}
			if strings.Contains(err.Error(), localtest.GivenKey.Reveal()) {
				t.Error("the error tells the key")
			}
		})
	}
}

// The argument after a secret flag is its value, whatever it begins with. No error shows it.
func TestSecretFlags(t *testing.T) {
	const pem = "-----BEGIN EC PRIVATE KEY-----\ncanary\n-----END EC PRIVATE KEY-----"
	parsed, _, err := parse(t, nil, "--signing-key", pem, "--admin-key=-a", "--encryption-key", "--b")
	if err != nil || parsed.Serve.Lookup(settings.SigningKey) != pem || parsed.Serve.Lookup(settings.AdminKey) != "-a" || parsed.Serve.Lookup(settings.EncryptionKey) != "--b" {
		t.Errorf("%v, %v", parsed, err)
	}
	if _, _, err := parse(t, nil, "--signing-key"); err == nil || !strings.Contains(err.Error(), "--signing-key") {
		t.Errorf("without a value: %v", err)
	}
}

// A secret stands in a file or a variable. In the command line, every user of the machine would see it.
func TestSecretsOnTheLine(t *testing.T) {
	const key = "canary-0123456789-0123456789-01234567"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		line, want []string
		refused    string
	}{
		{[]string{"serve", "--admin-key=@" + file, "--data", "d"}, []string{"serve", "--admin-key=" + key, "--data", "d"}, ""},
		{[]string{"--encryption-key", "@" + file}, []string{"--encryption-key", key}, ""},
		{[]string{"serve", "--redis=redis://a:1,redis://b"}, []string{"serve", "--redis=redis://a:1,redis://b"}, ""},
		{[]string{"serve", "--redis", "unix:///a/redis.sock"}, []string{"serve", "--redis", "unix:///a/redis.sock"}, ""},
		{[]string{"serve", "--redis"}, []string{"serve", "--redis"}, ""},
		{[]string{"serve", "--admin-key", "none"}, []string{"serve", "--admin-key", "none"}, ""},
		{[]string{"patch", "check", "--", "--admin-key=" + key}, []string{"patch", "check", "--", "--admin-key=" + key}, ""},
		{[]string{"serve", "--redis=redis://:" + key + "@a"}, nil, "--redis: "},
		{[]string{"audit", "verify", "d", "--redis", "redis://a?password=" + key}, nil, "--redis: "},
		{[]string{"serve", "--admin-key", key}, nil, "--admin-key: "},
		{[]string{"serve", "--signing-key=-----BEGIN EC PRIVATE KEY-----" + key}, nil, "--signing-key: "},
		{[]string{"token", "--key=" + key}, nil, "--key: "},
		{[]string{"serve", "--admin-key=@" + key}, nil, "--admin-key: "},
	} {
		got, err := readSecrets(newParser(newCommands()).Model, row.line)
		if row.refused == "" && (err != nil || !slices.Equal(got, row.want)) {
			t.Errorf("%q becomes %q, %v", row.line, got, err)
		}
		if row.refused != "" && (err == nil || !strings.HasPrefix(err.Error(), row.refused) || strings.Contains(err.Error(), key)) {
			t.Errorf("%q: %v", row.line, err)
		}
	}
}

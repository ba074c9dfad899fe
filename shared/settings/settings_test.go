package settings

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func from(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// variablesWith returns a function's variables: a URL of the state and what else is set.
func variablesWith(name, value string) map[string]string {
	return map[string]string{RedisURL: "redis://127.0.0.1:6379", name: value}
}

// Every setting is in the list once, and says what it is.
func TestList(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range List {
		if seen[s.Key()] || s.Name != "" && !strings.HasPrefix(s.Name, "PLATFORM_") || s.Unit == "" || s.Readers == 0 || !strings.HasSuffix(s.Meaning, ".") {
			t.Errorf("%+v", s)
		}
		if strings.ContainsAny(s.Meaning, "|\"`") {
			t.Errorf("%s: what it is for can stand neither in a table nor in help: %s", s.Key(), s.Meaning)
		}
		if s.Instead != "" && !seen[s.Instead] {
			t.Errorf("%s stands for %s, which is not before it", s.Key(), s.Instead)
		}
		if s.Flag != "" && seen["--"+s.Flag] {
			t.Errorf("two settings have the flag --%s", s.Flag)
		}
		seen[s.Key()], seen["--"+s.Flag] = true, true
	}
}

// The variables that the configuration can name are never those of the process itself. Source: ADR-0024.
func TestConfigVariables(t *testing.T) {
	t.Parallel()
	for prefix, good := range map[string]bool{
		"PLATFORM_SECRET_": true, "PLATFORM_SECRET_OIDC_": true, "VAULT_": true, "P_": true, "": false, "VAULT": false, "1_": false, "A-B_": false,
		"PLATFORM_": false, "PLATFORM_REDIS_": false, "platform_": false, "AWS_": false, "AWS_SECRET_": false, "GOOGLE_": false, "LAMBDA_": false,
		"PARAMETERS_": false, "PARAMETERS_SECRETS_": false,
	} {
		if err := checkVariables(prefix); (err == nil) != good {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := Settings{
		Redis: Redis{PoolSize: 64, Timeout: time.Second},
		Tokens: Tokens{
			MaxTTL: 24 * time.Hour, Algorithm: ES256, RotateEvery: 7 * 24 * time.Hour, PublishBefore: time.Hour,
		},
		Patches: Patches{
			ExpressionTime: 100 * time.Millisecond, ObjectTime: time.Second, MemoryBytes: 64 << 20, ResultBytes: 1 << 20, Depth: 200, Workers: 2,
		},
		Shares:    Shares{Requests: 128, RequestsPerCaller: 32, Lists: 4, ListsPerCaller: 2, Watches: 1000, WatchesPerCaller: 100},
		Rates:     Rates{Anonymous: 100, Failures: 20},
		Quota:     Quota{Objects: 200_000, Bytes: 256 << 20},
		Runner:    Runner{Listen: "127.0.0.1:8443", Data: ".platform", ExpireEvery: 30 * time.Second},
		Extension: Extension{URL: "http://localhost:2773"},
		Version:   "dev", Metrics: NoMetrics, Edition: Enterprise, DeviceLogin: On, UnsignedSAML: Off, Probe: Off, ConfigVariables: "PLATFORM_SECRET_",
	}
	if got := Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	if got, err := ReadRunner(lookupNothing, nil); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the runner: %+v, %v", got, err)
	}
	for _, s := range List {
		if s.Default != "" && s.Min != "" && s.set(&Settings{}, s.Default) != nil {
			t.Errorf("the default of %s is beyond its bounds", s.Key())
		}
	}
}

// All wrong settings are reported at once, and the right ones are set nevertheless.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	got, err := Read(from(map[string]string{
		LogLevel: "hunter2", Stream: "hunter2", TokenMaxTTL: "hunter2", SigningKey: "hunter2", Issuer: "http://hunter2", Edition: Community,
		EncryptionKey: "a", EncryptionKeySecret: "b", SigningRotateEvery: "90m",
	}))
	if err == nil || strings.Contains(err.Error(), "hunter2") || got.Edition != Community || got.Tokens.MaxTTL != 24*time.Hour || got.Tokens.Issuer != "" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{RedisURL, LogLevel, Stream, TokenMaxTTL, SigningKey, Issuer, EncryptionKey, SigningRotateEvery} {
		if strings.Count(err.Error(), name+": ") != 1 {
			t.Errorf("%s is not named once in %v", name, err)
		}
	}
}

// A value of the environment that another program reads changes nothing.
func TestReaders(t *testing.T) {
	t.Parallel()
	if _, err := ReadRunner(from(map[string]string{Stream: "x"}), nil); err != nil {
		t.Errorf("the runner reads what only functions do: %v", err)
	}
	if _, err := Read(from(variablesWith("--expire-every", "x"))); err != nil {
		t.Errorf("a function reads what only the runner does: %v", err)
	}
	got, err := ReadOnly(from(map[string]string{PatchDepth: "20", LogLevel: "x"}), nil, PatchDepth, PatchMemory)
	if err != nil || got.Patches.Depth != 20 || got.Patches.MemoryBytes != 64<<20 || got.LogLevel != slog.LevelInfo {
		t.Errorf("some alone: %+v, %v", got, err)
	}
}

// Errors of the runner name the flag or the variable that the operator wrote.
func TestCalled(t *testing.T) {
	t.Parallel()
	called := func(key string) string {
		if key == TokenMaxTTL {
			return "--token-max-ttl"
		}
		return key
	}
	got, err := ReadRunner(from(map[string]string{TokenMaxTTL: "90000h", PatchDepth: "9"}), called)
	const want = "--token-max-ttl: must be a duration from 1m to 8784h\nPLATFORM_PATCH_DEPTH: must be a number from 10 to 1000"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := got.Wrong(TokenMaxTTL, errors.New("is odd")); err.Error() != "--token-max-ttl: is odd" {
		t.Error(err)
	}
}

// A function on AWS Lambda serves one request at a time.
func TestPoolSize(t *testing.T) {
	t.Parallel()
	values := variablesWith("AWS_LAMBDA_FUNCTION_NAME", "f")
	if got, err := Read(from(values)); err != nil || got.Redis.PoolSize != LambdaPoolSize {
		t.Errorf("%+v, %v", got.Redis, err)
	}
	values[RedisPoolSize] = "9"
	if got, err := Read(from(values)); err != nil || got.Redis.PoolSize != 9 {
		t.Errorf("%+v, %v", got.Redis, err)
	}
}

// A secret comes from a variable, from a file, or is referred to; errors name where it came from.
func TestSources(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(" hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(from(map[string]string{RedisURLFile: file, EncryptionKeyFile: file}))
	if err != nil || got.Redis.URL != "hunter2" || got.Redis.URLFrom != RedisURLFile || got.Encryption.Keys != "hunter2" || got.Encryption.KeysFrom != EncryptionKeyFile {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = Read(from(map[string]string{RedisURLSecret: "a", EncryptionKeySecret: "b", "AWS_SESSION_TOKEN": "c", "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": "1"}))
	if err != nil || got.Redis.Secret != "a" || got.Encryption.Secret != "b" || got.Extension != (Extension{URL: "http://localhost:1", Token: "c"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Read(from(variablesWith(RedisURLFile, "/nowhere/at/all"))); err == nil || !strings.Contains(err.Error(), RedisURLFile+": ") || strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(from(map[string]string{RedisURL: "a", SigningKeyFile: file})); err == nil || !strings.Contains(err.Error(), SigningKeyFile+": ") {
		t.Errorf("a file without a key: %v", err)
	}
}

// A key that cannot sign is refused.
func TestSigningKey(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string) string { return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})) }
	if got, err := Read(from(variablesWith(SigningKey, block("PRIVATE KEY")))); err != nil || got.Tokens.SigningKeys == "" {
		t.Errorf("a good one: %v", err)
	}
	if _, err := Read(from(variablesWith(SigningKey, block("CERTIFICATE")))); err == nil || !strings.Contains(err.Error(), `is a "CERTIFICATE"; use PRIVATE KEY`) {
		t.Errorf("a certificate: %v", err)
	}
}

// Verifiers append paths to the issuer. Source: OpenID Connect Discovery 1.0, section 3.
func TestCheckIssuer(t *testing.T) {
	t.Parallel()
	for issuer, good := range map[string]bool{
		"https://a.example": true, "https://a.example:8443/b/c": true, "https://[::1]:1/x": true,
		"": false, "a.example": false, "http://a.example": false, "https://": false, "https:///b": false, "https://a.example/": false, "https://a/b/": false,
		"https://u:p@a.example": false, "https://a.example?b=c": false, "https://a.example?": false, "https://a.example#b": false, "https://a.example#": false,
	} {
		if err := checkIssuer(issuer); (err == nil) != good {
			t.Errorf("%q: %v", issuer, err)
		}
	}
}

// Plain HTTP is for this machine alone. Source: ADR-0006.
func TestCheckLoopback(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"127.0.0.1:8080": true, "127.255.255.254:8080": true, "127.0.0.1:0": true, "[::1]:8080": true, "[::ffff:127.0.0.1]:8080": true, "localhost:8080": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "[::ffff:0.0.0.0]:8080": false, "192.0.2.1:8080": false, "10.0.0.1:8080": false,
		"[fe80::1%eth0]:8080": false, "example.com:8080": false, "localhost.example.com:8080": false, "127.0.0.1.example.com:8080": false, "127.1:8080": false,
		"2130706433:8080": false, "127.0.0.1": false, "8080": false, "::1:8080": false, "http://127.0.0.1:8080": false, " 127.0.0.1:8080": false,
		"[127.0.0.1]:8080": false, "[::1:8080": false, "::1]:8080": false, "": false,
	} {
		if err := checkLoopback(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

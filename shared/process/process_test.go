package process

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
)

func from(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

const hush = "hunter2"

// Errors name all wrong settings at once, and never quote their values.
func TestRefused(t *testing.T) {
	t.Parallel()
	const good = "redis://127.0.0.1:6379"
	folder := t.TempDir()
	empty, broken, wrong := filepath.Join(folder, "empty"), filepath.Join(folder, "broken"), filepath.Join(folder, "wrong")
	for path, text := range map[string]string{empty: " \n", broken: "nope: [", wrong: "mysql://:" + hush + "@x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, row := range map[string]struct {
		variables map[string]string
		named     []string
	}{
		"no state":      {nil, []string{settings.RedisURL}},
		"two of them":   {map[string]string{settings.RedisURL: good, settings.RedisURLFile: "/" + hush}, []string{settings.RedisURL, settings.RedisURLFile}},
		"no such file":  {map[string]string{settings.RedisURLFile: "/nowhere/" + hush}, []string{settings.RedisURLFile}},
		"an empty file": {map[string]string{settings.RedisURLFile: empty}, []string{settings.RedisURLFile}},
		"a wrong file":  {map[string]string{settings.RedisURLFile: wrong}, []string{settings.RedisURLFile}},
		"a wrong URL":   {map[string]string{settings.RedisURL: "mysql://:" + hush + "@x"}, []string{settings.RedisURL}},
		"no such level": {map[string]string{settings.RedisURL: good, settings.LogLevel: hush}, []string{settings.LogLevel}},
		"URL and level": {map[string]string{settings.RedisURL: "mysql://:" + hush + "@x", settings.LogLevel: hush}, []string{settings.RedisURL, settings.LogLevel}},
		"several":       {map[string]string{settings.LogLevel: hush, settings.Stream: hush, settings.WatchWindow: hush}, []string{settings.RedisURL, settings.LogLevel, settings.Stream, settings.WatchWindow}},
		"no edition":    {map[string]string{settings.RedisURL: good, settings.Edition: hush}, []string{settings.Edition}},
		"no limits": {map[string]string{
			settings.RedisURL: good, settings.PatchExpressionTime: "0", settings.PatchObjectTime: "1h", settings.PatchMemory: "1Mi", settings.PatchResult: hush, settings.PatchDepth: "9", settings.PatchWorkers: "0", settings.PatchInProcess: hush,
		}, []string{settings.PatchExpressionTime, settings.PatchObjectTime, settings.PatchMemory, settings.PatchResult, settings.PatchDepth, settings.PatchWorkers, settings.PatchInProcess}},
		"no window":     {map[string]string{settings.RedisURL: good, settings.WatchWindow: "-1s"}, []string{settings.WatchWindow}},
		"no pool":       {map[string]string{settings.RedisURL: good, settings.RedisPoolSize: "0", settings.RedisReplicas: "-1"}, []string{settings.RedisPoolSize, settings.RedisReplicas}},
		"no numbers":    {map[string]string{settings.RedisURL: good, settings.RedisPoolSize: hush, settings.RedisReplicas: "99999"}, []string{settings.RedisPoolSize, settings.RedisReplicas}},
		"no time":       {map[string]string{settings.RedisURL: good, settings.RedisTimeout: "99ms"}, []string{settings.RedisTimeout}},
		"much time":     {map[string]string{settings.RedisURL: good, settings.RedisTimeout: "21s"}, []string{settings.RedisTimeout}},
		"no duration":   {map[string]string{settings.RedisURL: good, settings.RedisTimeout: hush}, []string{settings.RedisTimeout}},
		"two keys":      {map[string]string{settings.RedisURL: good, settings.EncryptionKey: hush, settings.EncryptionKeySecret: hush}, []string{settings.EncryptionKey, settings.EncryptionKeySecret}},
		"a wrong key":   {map[string]string{settings.RedisURL: good, settings.EncryptionKey: hush}, []string{settings.EncryptionKey}},
		"no key file":   {map[string]string{settings.RedisURL: good, settings.EncryptionKeyFile: empty}, []string{settings.EncryptionKeyFile}},
		"a bad key":     {map[string]string{settings.RedisURL: good, settings.EncryptionKeyFile: wrong}, []string{settings.EncryptionKeyFile}},
		"no issuer":     {map[string]string{settings.RedisURL: good, settings.Issuer: "http://" + hush}, []string{settings.Issuer}},
		"no algorithm":  {map[string]string{settings.RedisURL: good, settings.SigningAlgorithm: hush}, []string{settings.SigningAlgorithm}},
		"no life":       {map[string]string{settings.RedisURL: good, settings.TokenMaxTTL: "59s"}, []string{settings.TokenMaxTTL}},
		"a long life":   {map[string]string{settings.RedisURL: good, settings.TokenMaxTTL: "8785h"}, []string{settings.TokenMaxTTL}},
		"no rhythm":     {map[string]string{settings.RedisURL: good, settings.SigningRotateEvery: hush, settings.SigningPublishBefore: "9m"}, []string{settings.SigningRotateEvery, settings.SigningPublishBefore}},
		"a hasty one":   {map[string]string{settings.RedisURL: good, settings.SigningRotateEvery: "3h", settings.SigningPublishBefore: "2h"}, []string{settings.SigningRotateEvery, settings.SigningPublishBefore}},
		"two signers":   {map[string]string{settings.RedisURL: good, settings.SigningKey: hush, settings.SigningKeyFile: wrong}, []string{settings.SigningKey, settings.SigningKeyFile}},
		"no PEM":        {map[string]string{settings.RedisURL: good, settings.SigningKey: hush}, []string{settings.SigningKey}},
		"no PEM file":   {map[string]string{settings.RedisURL: good, settings.SigningKeyFile: empty}, []string{settings.SigningKeyFile}},
		"no config":     {map[string]string{settings.RedisURL: good, settings.Config: folder + "/none"}, []string{settings.Config}},
		"broken config": {map[string]string{settings.RedisURL: good, settings.Config: broken}, []string{settings.Config}},
	} {
		_, err := Open(from(row.variables), Shell{Log: io.Discard})
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		for _, name := range row.named {
			if !regexp.MustCompile(name + `\b`).MatchString(err.Error()) {
				t.Errorf("%s: %s is not in %q", what, name, err)
			}
			if strings.HasPrefix(name, settings.RedisURL) && strings.Count(err.Error(), name+":") > 1 {
				t.Errorf("%s: %s is in %q more than once", what, name, err)
			}
		}
		if strings.Contains(err.Error(), hush) {
			t.Errorf("%s: the value is in %q", what, err)
		}
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		given   string
		streams bool
		want    time.Duration
	}{{"", false, settings.WatchWindowWithoutStreams}, {"", true, 0}, {"280s", true, 280 * time.Second}, {"5s", false, 5 * time.Second}} {
		server, err := Open(from(map[string]string{settings.RedisURL: "redis://127.0.0.1:1", settings.WatchWindow: row.given}), Shell{Log: io.Discard, Streams: row.streams})
		if err != nil || server.Watch.Window != row.want {
			t.Errorf("%+v: %v, %v", row, server, err)
		}
	}
}

// Without a setting, patches have the limits of the engine. Source: ADR-0014.
func TestPatches(t *testing.T) {
	t.Parallel()
	server, err := Open(from(map[string]string{settings.RedisURL: "redis://127.0.0.1:1"}), Shell{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	limits := evaluation.Settings(server.Env.Patches).Limits
	limits.Trace = syncpatch.DefaultLimits().Trace
	if limits != syncpatch.DefaultLimits() || server.Env.Edition != settings.Enterprise || server.Env.Patches.Workers != 2 || server.Env.Patches.InProcess {
		t.Errorf("%+v, %q", server.Env.Patches, server.Env.Edition)
	}
	server, err = Open(from(map[string]string{
		settings.RedisURL: "redis://127.0.0.1:1", settings.Edition: "community", settings.PatchExpressionTime: "1s", settings.PatchObjectTime: "2s", settings.PatchMemory: "128Mi", settings.PatchResult: "2Mi",
		settings.PatchDepth: "50", settings.PatchWorkers: "3", settings.PatchInProcess: "true",
	}), Shell{Log: io.Discard})
	want := settings.Patches{
		ExpressionTime: time.Second, ObjectTime: 2 * time.Second, MemoryBytes: 128 << 20, ResultBytes: 2 << 20, Depth: 50, Workers: 3, InProcess: true,
	}
	if err != nil || server.Env.Patches != want || server.Env.Edition != settings.Community {
		t.Errorf("%+v, %v", server.Env, err)
	}
}

// Quotas reach the environment. Source: ADR-0020.
func TestQuota(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		given map[string]string
		want  store.Quota
	}{
		{map[string]string{}, store.Quota{Objects: 200_000, Bytes: 256 << 20}},
		{map[string]string{settings.QuotaObjects: "3", settings.QuotaBytes: "4Ki"}, store.Quota{Objects: 3, Bytes: 4 << 10}},
	} {
		row.given[settings.RedisURL] = "redis://127.0.0.1:1"
		server, err := Open(from(row.given), Shell{Log: io.Discard})
		if err != nil || server.Env.Quota != row.want {
			t.Errorf("%v: %+v, %v", row.given, server.Env.Quota, err)
		}
		stored := kinds.Open(server.Env)
		for kind, quota := range map[string]store.Quota{
			"access keys": stored.AccessKeys.Quota, "tokens": stored.IssuedTokens.Quota, "instances": stored.Instances.Quota,
		} {
			if quota != row.want {
				t.Errorf("%s have %+v", kind, quota)
			}
		}
	}
}

// Rates reach the server; that of callers is off unless it is set. Source: ADR-0020.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		given                        map[string]string
		callers, anonymous, failures int
	}{
		{map[string]string{}, 0, 100, 20},
		{map[string]string{settings.RateRequests: "1", settings.RateAnonymous: "0", settings.RateFailures: "2"}, 1, 0, 2},
	} {
		row.given[settings.RedisURL] = "redis://127.0.0.1:1"
		server, err := Open(from(row.given), Shell{Log: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		for what, rate := range map[string]struct {
			*fairness.Rate
			want int
		}{
			"callers": {server.Rates.Callers, row.callers}, "anonymous": {server.Rates.Anonymous, row.anonymous}, "failures": {server.Rates.Failures, row.failures},
		} {
			// More than a burst of the longest rate here.
			within, now := 0, time.Now()
			for within < 2000 && rate.Take("a", "a", now) == nil {
				within++
			}
			if want := rate.want * limits.RateBurst; within != want && (want != 0 || within != 2000) {
				t.Errorf("%v, %s: %d are within the rate, want %d", row.given, what, within, want)
			}
		}
	}
}

// A function for AWS Lambda serves one request at a time.
func TestPool(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		given          map[string]string
		pool, replicas int
		timeout        time.Duration
	}{
		{map[string]string{}, 64, 0, time.Second},
		{map[string]string{"AWS_LAMBDA_FUNCTION_NAME": "f"}, 4, 0, time.Second},
		{map[string]string{"AWS_LAMBDA_FUNCTION_NAME": "f", settings.RedisPoolSize: "9", settings.RedisReplicas: "2", settings.RedisTimeout: "3s"}, 9, 2, 3 * time.Second},
	} {
		row.given[settings.RedisURL] = "redis://127.0.0.1:1"
		got, err := settings.Read(from(row.given))
		if err != nil || got.Redis.PoolSize != row.pool || got.Redis.Replicas != row.replicas || got.Redis.Timeout != row.timeout {
			t.Errorf("%v: %+v, %v", row.given, got.Redis, err)
		}
	}
}

func TestURLFromFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(path, []byte(redistest.Embedded(t)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := Open(from(map[string]string{settings.RedisURLFile: path}), Shell{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	use(t, server.Env.Stores("things"))
}

func use(t *testing.T, state store.Store) {
	t.Helper()
	if _, err := state.Get(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("reading: %v", err)
	}
}

// A secret is fetched when the state is first needed, again after a failure, and never after a success.
func TestURLFromSecret(t *testing.T) {
	t.Parallel()
	requests, ready := 0, false
	url := redistest.Embedded(t)
	extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch {
		case r.Header.Get("X-Aws-Parameters-Secrets-Token") != "session" || r.URL.Path != "/secretsmanager/get" || r.URL.Query().Get("secretId") != "arn:aws:x/y":
			w.WriteHeader(http.StatusForbidden)
		case !ready:
			http.Error(w, "not ready to serve traffic, please wait: "+hush, http.StatusBadRequest)
		default:
			io.WriteString(w, `{"ARN":"arn:aws:x/y","SecretString":"`+url+`"}`)
		}
	}))
	defer extension.Close()
	variables := map[string]string{
		settings.RedisURLSecret: "arn:aws:x/y", "AWS_SESSION_TOKEN": "session",
		"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": extension.URL[strings.LastIndex(extension.URL, ":")+1:],
	}
	server, err := Open(from(variables), Shell{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	things, others := server.Env.Stores("things"), server.Env.Stores("others")
	if requests != 0 {
		t.Error("it was asked before there was a need")
	}
	if _, err := things.Get(t.Context(), "a"); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), settings.RedisURLSecret) || strings.Contains(err.Error(), hush) {
		t.Errorf("it is away: %v", err)
	}
	ready = true
	use(t, things)
	use(t, others)
	use(t, things)
	if requests != 2 {
		t.Errorf("it was asked %d times", requests)
	}
}

// The value of a placeholder is in a variable, or in the secret that another variable names. A secret is fetched when it is first needed,
// again after a failure, which is logged once, and never after a success. Source: ADR-0015.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	requests, ready := 0, false
	extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; !ready || r.URL.Query().Get("secretId") != "arn:aws:x/store" {
			http.Error(w, hush, http.StatusBadRequest)
			return
		}
		io.WriteString(w, `{"SecretString":"redis://:`+hush+`@a.example"}`)
	}))
	defer extension.Close()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "audit: {dataStoreEndpoint: '${PLATFORM_SECRET_STORE}'}\nauth: {oidc: {clientSecret: '${PLATFORM_SECRET_OIDC}'}, clustermanager: {bearerToken: '${PLATFORM_SECRET_NONE}'}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	server, err := Open(from(map[string]string{
		settings.RedisURL: "redis://127.0.0.1:1", settings.Config: path,
		"PLATFORM_SECRET_STORE_SECRET": "arn:aws:x/store", "PLATFORM_SECRET_OIDC": "here", "PLATFORM_SECRET_OIDC_SECRET": "arn:aws:x/other",
		"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": strings.TrimPrefix(extension.URL, "http://127.0.0.1:"),
	}), Shell{Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	current := platformconfig.Open(server.Env)
	for _, want := range []string{"${PLATFORM_SECRET_STORE}", "redis://:" + hush + "@a.example"} {
		for range 3 {
			now := current.Status()
			if got := now.Audit.DataStoreEndpoint.Reveal(); got != want || now.Auth.OIDC.ClientSecret != "here" || now.Auth.ClusterManager.BearerToken != "${PLATFORM_SECRET_NONE}" {
				t.Errorf("in effect are %q, %q and %q", got, now.Auth.OIDC.ClientSecret.Reveal(), now.Auth.ClusterManager.BearerToken.Reveal())
			}
			if err := current.Reload(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if !ready {
			ready = true
			if err := current.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			requests = 0
		}
	}
	if requests != 0 {
		t.Errorf("it was asked %d times for a secret that it had", requests)
	}
	if got := log.String(); strings.Count(got, "cannot be read") != 1 || !strings.Contains(got, "PLATFORM_SECRET_STORE_SECRET") || strings.Contains(got, hush) {
		t.Errorf("the log says %s", got)
	}
}

// A secret without a URL is treated as an unreachable state, and its text is not shown.
func TestWrongSecret(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{"SecretString":"mysql://:` + hush + `@x"}`, `{"SecretString":""}`, `{"SecretBinary":"x"}`, hush} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
		defer server.Close()
		stores, err := openStores(settings.Settings{Redis: settings.Redis{Secret: "x"}, Extension: settings.Extension{URL: server.URL}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stores("things").Get(context.Background(), "a"); !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), hush) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// The configuration is in a file or in the state. The state is not read before it is needed.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("platformHost: a.example\naudit: {dataStoreEndpoint: 'redis://:${PLATFORM_SECRET_A}${VAULT_B}@a.example'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := Open(from(map[string]string{settings.RedisURL: "redis://127.0.0.1:1", settings.Config: path, "PLATFORM_SECRET_A": "a", "VAULT_B": "b"}), Shell{Log: io.Discard})
	if err != nil || server.Env.Config().PlatformHost != "a.example" || server.Env.Config().Audit.DataStoreEndpoint != "redis://:a${VAULT_B}@a.example" || !platformconfig.Open(server.Env).FromFile() || platformconfig.Open(server.Env).Refresh(t.Context()) != nil {
		t.Errorf("from a file: %v, %v", server, err)
	}
	if server, err = Open(from(map[string]string{settings.RedisURL: "redis://127.0.0.1:1", settings.Config: path, settings.ConfigVariables: "VAULT_", "PLATFORM_SECRET_A": "a", "VAULT_B": "b"}), Shell{Log: io.Discard}); err != nil ||
		server.Env.Config().Audit.DataStoreEndpoint != "redis://:${PLATFORM_SECRET_A}b@a.example" {
		t.Errorf("with other variables: %v", err)
	}
	if server, err = Open(from(map[string]string{settings.RedisURL: redistest.Embedded(t)}), Shell{Log: io.Discard}); err != nil || platformconfig.Open(server.Env).FromFile() {
		t.Fatal(err)
	}
	if err := platformconfig.Open(server.Env).Refresh(t.Context()); err != nil || server.Env.Config().ProjectNamespacePrefix != model.DefaultProjectNamespacePrefix {
		t.Errorf("from the state: %v", err)
	}
	if server, err = Open(from(map[string]string{settings.RedisURL: "redis://127.0.0.1:1"}), Shell{Log: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if err := platformconfig.Open(server.Env).Refresh(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the state is away: %v", err)
	}
}

// All ways to set the encryption keys have the same result. Without any, there is no key.
func TestEncryptionKey(t *testing.T) {
	t.Parallel()
	key := encryption.Generate()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key.Reveal()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ready := false
	extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ready || r.URL.Query().Get("secretId") != "arn:aws:x/key" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		io.WriteString(w, `{"SecretString":"`+key.Reveal()+`"}`)
	}))
	defer extension.Close()
	want, err := encryption.Parse(key)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := want.Seal([]byte("x"), "a")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{settings.EncryptionKey: key.Reveal(), settings.EncryptionKeyFile: path, settings.EncryptionKeySecret: "arn:aws:x/key", settings.LogLevel: "info"} {
		ready = false
		server, err := Open(from(map[string]string{
			settings.RedisURL: "redis://127.0.0.1:1", name: value,
			"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": strings.TrimPrefix(extension.URL, "http://127.0.0.1:"),
		}), Shell{Log: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		ring, err := server.Env.Keyring(t.Context())
		if name == settings.EncryptionKeySecret {
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("before the extension is ready: %v", err)
			}
			ready = true
			ring, err = server.Env.Keyring(t.Context())
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		opened, err := ring.Open(sealed, "a")
		if name == settings.LogLevel {
			if !errors.Is(err, encryption.ErrNoKey) {
				t.Errorf("without a key: %q, %v", opened, err)
			}
		} else if err != nil || string(opened) != "x" {
			t.Errorf("%s: %q, %v", name, opened, err)
		}
	}
}

// signingKey returns a key that signs tokens.
func signingKey(t *testing.T) secret.String {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return secret.String(strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))))
}

// The settings of tokens, and their defaults.
func TestTokens(t *testing.T) {
	t.Parallel()
	key := signingKey(t)
	for about, row := range map[string]struct {
		variables map[string]string
		want      settings.Tokens
	}{
		"nothing": {nil, settings.Tokens{
			MaxTTL: 24 * time.Hour, Algorithm: "ES256", RotateEvery: 168 * time.Hour, PublishBefore: time.Hour,
		}},
		"all": {map[string]string{
			settings.Issuer: "https://a.example/b", settings.TokenAudiences: "x, y,", settings.TokenMaxTTL: "90m", settings.SigningAlgorithm: "RS256", settings.SigningRotateEvery: "2h", settings.SigningPublishBefore: "10m", settings.SigningKey: key.Reveal(),
		}, settings.Tokens{
			Issuer: "https://a.example/b", Audiences: []string{"x", "y"}, MaxTTL: 90 * time.Minute, Algorithm: "RS256",
			RotateEvery: 2 * time.Hour, PublishBefore: 10 * time.Minute, SigningKeys: key,
		}},
	} {
		variables := map[string]string{settings.RedisURL: "redis://127.0.0.1:1"}
		maps.Copy(variables, row.variables)
		server, err := Open(from(variables), Shell{Log: io.Discard})
		if err != nil || !reflect.DeepEqual(server.Env.Tokens, row.want) {
			t.Errorf("%s: %+v, %v", about, server, err)
		}
	}
}

// waits is an observer that counts the evaluations that wait.
type waits struct{ evaluations atomic.Int64 }

func (w *waits) Places(class string, _, waiting int) {
	if class == fairness.Evaluations.String() {
		w.evaluations.Add(int64(waiting))
	}
}

func (w *waits) Refused(string) {}

// Every signed-in person may evaluate patches. Somebody who keeps their workers busy with a full queue is refused with a time to wait,
// and the next person has a place at once. Source: ADR-0020, ADR-0056.
func TestShareOfEvaluations(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 4} {
		s := settings.Default()
		s.Patches.Workers = workers
		observer := &waits{}
		all := places(s, observer)
		ctx, cancel := context.WithCancel(t.Context())
		take := func(ctx context.Context, name string) error {
			_, err := all.Take(ctx, fairness.Evaluations, name, name)
			return err
		}
		for range max(1, workers-1) {
			if err := take(ctx, "user:mallory"); err != nil {
				t.Fatal(err)
			}
		}
		for range limits.WaitingLarge {
			go func() { _ = take(ctx, "user:mallory") }()
		}
		for observer.evaluations.Load() < limits.WaitingLarge {
			runtime.Gosched()
		}
		refusal := apierror.From(take(ctx, "user:mallory")).Status()
		if refusal.Code != http.StatusTooManyRequests || refusal.Details.RetryAfterSeconds < 1 {
			t.Errorf("%d workers: a full queue is answered with %+v", workers, refusal)
		}
		short, end := context.WithTimeout(t.Context(), time.Minute)
		if err := take(short, "user:ana"); err != nil {
			t.Errorf("%d workers: the next person has no place: %v", workers, err)
		}
		if waiting := observer.evaluations.Load(); waiting != limits.WaitingLarge {
			t.Errorf("%d workers: %d evaluations wait", workers, waiting)
		}
		end()
		cancel()
	}
}

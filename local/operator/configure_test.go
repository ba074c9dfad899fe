package operator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
)

// An operator can write the configuration even if its endpoint is disabled. An invalid configuration is not written.
func TestConfigure(t *testing.T) {
	t.Parallel()
	env, url := localtest.Environment(t)
	key := encryption.Generate()
	ring, err := encryption.Parse(key)
	if err != nil {
		t.Fatal(err)
	}
	platformconfig.Open(env).Keyring = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	file := filepath.Join(t.TempDir(), "config.yaml")
	configure := func(text string, key secret.String) error {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return (&Configure{Redis: secret.String(url), Encryption: key, File: file}).Run(t.Context())
	}
	for _, text := range []string{"disableConfigEndpoint: true\nauth: {oidc: {clientSecret: hunter2}}", "platformHost: a.example\nauth: {oidc: {clientSecret: hunter2}}"} {
		if err := configure(text, key); err != nil {
			t.Fatal(err)
		}
	}
	config, err := platformconfig.Open(env).Get(t.Context(), resource.GetInput{Name: "config", Reveal: true})
	if err != nil || config.Status.DisableConfigEndpoint || config.Status.PlatformHost != "a.example" || config.Status.Auth.OIDC.ClientSecret != "hunter2" {
		t.Errorf("%+v, %v", config, err)
	}
	for named, row := range map[string]struct {
		text string
		key  secret.String
	}{
		"platformHost":            {"platformHost: a/b", key},
		"--encryption-key":        {"platformHost: a.example", "hunter2"},
		"PLATFORM_ENCRYPTION_KEY": {"auth: {oidc: {clientSecret: hunter3}}", ""},
	} {
		if err := configure(row.text, row.key); err == nil || !strings.Contains(err.Error(), named) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", named, err)
		}
	}
	if again, err := platformconfig.Open(env).Get(t.Context(), resource.GetInput{Name: "config"}); err != nil || again.ResourceVersion != config.ResourceVersion {
		t.Errorf("what was refused changed it: %+v, %v", again, err)
	}
}

package operator

import (
	"strings"
	"testing"

	"management.platform.sh/local/flags"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
)

// The command never creates a state or an encryption key.
func TestSigningKeysNeedARunner(t *testing.T) {
	t.Parallel()
	signing, wrong := flags.Signing(), flags.Signing()
	wrong.Set(settings.TokenMaxTTL, "1s")
	for want, c := range map[string]SigningKeys{
		"--redis:":          {Data: t.TempDir(), Signing: signing, Encryption: encryption.Generate()},
		"--encryption-key:": {Data: t.TempDir(), Signing: signing, Redis: "redis://127.0.0.1:1"},
		"--token-max-ttl:":  {Data: t.TempDir(), Signing: wrong, Redis: "redis://127.0.0.1:1"},
		"--redis: ":         {Data: t.TempDir(), Signing: signing, Redis: "mysql://hunter2", Encryption: encryption.Generate()},
	} {
		if err := c.withKeys(t.Context(), "", nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

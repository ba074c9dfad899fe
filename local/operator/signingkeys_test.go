package operator

import (
	"strings"
	"testing"
	"time"

	"management.platform.sh/local/flags"
	"management.platform.sh/shared/state/encryption"
)

// The command makes neither a state nor an encryption key where there is none.
func TestSigningKeysNeedARunner(t *testing.T) {
	t.Parallel()
	flags := flags.Signing{TokenMaxTTL: time.Hour, Algorithm: "ES256", RotateEvery: time.Hour, PublishBefore: 10 * time.Minute}
	for want, c := range map[string]SigningKeys{
		"--redis:":          {Data: t.TempDir(), Signing: flags, Encryption: encryption.Generate()},
		"--encryption-key:": {Data: t.TempDir(), Signing: flags, Redis: "redis://127.0.0.1:1"},
		"--token-max-ttl:":  {Data: t.TempDir(), Redis: "redis://127.0.0.1:1"},
		"--redis: ":         {Data: t.TempDir(), Signing: flags, Redis: "mysql://hunter2", Encryption: encryption.Generate()},
	} {
		if err := c.with(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

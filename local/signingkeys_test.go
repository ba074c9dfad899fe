package main

import (
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/state/encryption"
)

// Whatever is wrong with the flags is named at once, and no key is quoted.
func TestTokenFlagsRefused(t *testing.T) {
	t.Parallel()
	good := signingFlags{TokenMaxTTL: time.Hour, Algorithm: "ES256", RotateEvery: time.Hour, PublishBefore: 10 * time.Minute}
	if err := (&serveCommand{Signing: good, Issuer: "https://a.example"}).checkTokens(); err != nil {
		t.Error(err)
	}
	bad := serveCommand{Issuer: "http://hunter2", SigningKey: "hunter2", Signing: signingFlags{
		TokenMaxTTL: time.Second, RotateEvery: time.Minute, PublishBefore: time.Minute,
	}}
	err := bad.checkTokens()
	for _, flag := range []string{"--token-max-ttl", "--signing-publish-before", "--signing-rotate-every", "--issuer", "--signing-key"} {
		if err == nil || !strings.Contains(err.Error(), flag+":") {
			t.Errorf("%s is not in %v", flag, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("quoted: %v", err)
	}
}

// The command makes neither a state nor an encryption key where there is none.
func TestSigningKeysNeedARunner(t *testing.T) {
	t.Parallel()
	flags := signingFlags{TokenMaxTTL: time.Hour, Algorithm: "ES256", RotateEvery: time.Hour, PublishBefore: 10 * time.Minute}
	for want, c := range map[string]signingKeysCommand{
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

package state

import (
	"os"
	"strings"
	"testing"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
)

func TestOpenKeyring(t *testing.T) {
	t.Parallel()
	s := redisSettings("", t.TempDir())
	file := KeyFile(s.Runner.Data)
	with := func(keys secret.String) settings.Settings {
		changed := s
		changed.Encryption.Keys, changed.Encryption.KeysFrom = keys, settings.EncryptionKey
		return changed
	}
	made, err := OpenKeyring(s)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := made.Seal([]byte("x"), "a")
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenKeyring(s)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := again.Open(sealed, "a"); err != nil || string(opened) != "x" {
		t.Errorf("the next start: %q, %v", opened, err)
	}
	if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", about, err)
	}
	changed, err := OpenKeyring(with(encryption.Generate()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changed.Open(sealed, "a"); err == nil {
		t.Error("the given key is not the one in the file")
	}
	if _, err := OpenKeyring(with("hunter2")); err == nil || !strings.Contains(err.Error(), settings.EncryptionKey+": ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad one: %v", err)
	}
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeyring(s); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad file: %v", err)
	}
}

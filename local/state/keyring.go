package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
)

// OpenKeyring returns the encryption keys in the settings, else the keys in the data folder, else a new key, which it
// writes to the data folder.
func OpenKeyring(s settings.Settings) (*encryption.Keyring, error) {
	if s.Encryption.Keys != "" {
		ring, err := encryption.Parse(s.Encryption.Keys)
		if err != nil {
			return nil, s.Wrong(s.Encryption.KeysFrom, err)
		}
		return ring, nil
	}
	file := KeyFile(s.Runner.Data)
	kept, err := os.ReadFile(file)
	key := secret.String(strings.TrimSpace(string(kept)))
	if errors.Is(err, fs.ErrNotExist) {
		key = encryption.Generate()
		err = atomicfile.Write(file, []byte(key.Reveal()+"\n"))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the encryption key: %w", err)
	}
	ring, err := encryption.Parse(key)
	if err != nil {
		return nil, fmt.Errorf("the encryption key in %s: %w", file, err)
	}
	return ring, nil
}

// KeyFile is the file in a data folder with the encryption keys.
func KeyFile(folder string) string { return filepath.Join(folder, "encryption.key") }

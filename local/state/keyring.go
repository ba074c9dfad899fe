package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
)

// OpenKeyring returns the given encryption keys, else those in the file, else a new one, which the file keeps.
func OpenKeyring(given secret.String, file string) (*encryption.Keyring, error) {
	if given != "" {
		ring, err := encryption.Parse(given)
		if err != nil {
			return nil, fmt.Errorf("--encryption-key: %w", err)
		}
		return ring, nil
	}
	kept, err := os.ReadFile(file)
	key := secret.String(strings.TrimSpace(string(kept)))
	if errors.Is(err, fs.ErrNotExist) {
		key = encryption.Generate()
		err = atomicfile.Write(file, []byte(key.Reveal()+"\n"))
	}
	if err != nil {
		return nil, fmt.Errorf("the encryption key: %w", err)
	}
	ring, err := encryption.Parse(key)
	if err != nil {
		return nil, fmt.Errorf("the encryption key in %s: %w", file, err)
	}
	return ring, nil
}

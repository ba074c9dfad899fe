package runner

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockFolder keeps a second process out of a data folder. Two processes would corrupt its append-only file.
func lockFolder(folder string) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--data: locking the folder: %w", err)
	}
	if err := lockFile(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another platform serve; choose another folder with --data", folder)
	}
	return func() { _ = file.Close() }, nil
}

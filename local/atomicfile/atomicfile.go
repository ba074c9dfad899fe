// Package atomicfile replaces files as a whole.
package atomicfile

import (
	"fmt"
	"os"
)

// Write replaces a file as a whole, readable by its owner alone.
func Write(file string, content []byte) error {
	temporary := file + ".new"
	// One that was left behind would keep its mode, or lead elsewhere.
	_ = os.Remove(temporary)
	err := os.WriteFile(temporary, content, 0o600) //nolint:gosec // the path is the operator's own --data
	if err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

// Package atomicfile replaces files as a whole: a reader sees the old content or the new one, never a part.
package atomicfile

import (
	"fmt"
	"os"
)

// Write replaces a file as a whole. The new file is readable by its owner only.
func Write(file string, content []byte) error {
	temporary := file + ".new"
	// A leftover file would keep its mode, and a leftover link would lead elsewhere.
	_ = os.Remove(temporary)
	err := os.WriteFile(temporary, content, 0o600)
	if err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

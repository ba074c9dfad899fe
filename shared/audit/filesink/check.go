package filesink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"management.platform.sh/shared/audit"
)

var _ audit.Checked = (*sink)(nil)

// Check tests whether files can be made in the directory or, if it does not exist, in the nearest folder above it, and
// whether the current file can be written. It does not take the lock of the directory.
func (s *sink) Check(context.Context) error {
	folder := s.directory
	info, err := os.Stat(folder)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(folder) != folder {
		folder = filepath.Dir(folder)
		info, err = os.Stat(folder)
	}
	if err != nil {
		return fmt.Errorf("opening the audit directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", folder)
	}
	probe, err := os.CreateTemp(folder, ".audit-check-*")
	if err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	current, err := os.OpenFile(s.path(), os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the current file: %w", err)
	}
	return current.Close()
}

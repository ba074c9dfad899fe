//go:build unix && !linux

package worker

import (
	"fmt"
	"os"
)

// newSpotFile returns a temporary file that is already removed from its folder.
func newSpotFile() (*os.File, error) {
	file, err := os.CreateTemp("", "spot-")
	if err != nil {
		return nil, fmt.Errorf("making shared memory: %w", err)
	}
	_ = os.Remove(file.Name())
	if err := file.Truncate(spotSize); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("making shared memory: %w", err)
	}
	return file, nil
}

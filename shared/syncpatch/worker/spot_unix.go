//go:build unix && !linux

package worker

import (
	"fmt"
	"os"
)

// newSpotFile is a file that is gone from its folder before anyone can open it a second time.
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

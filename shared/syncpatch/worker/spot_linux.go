package worker

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newSpotFile returns anonymous memory, which works where all folders are read-only.
func newSpotFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("spot", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making shared memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "spot")
	if err := file.Truncate(spotSize); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("making shared memory: %w", err)
	}
	return file, nil
}

//go:build unix

package runner

import (
	"os"
	"syscall"
)

// lockFile takes a lock that the system releases when the process ends.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

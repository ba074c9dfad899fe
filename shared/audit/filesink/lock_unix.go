//go:build unix

package filesink

import (
	"os"
	"syscall"
)

// lockFile takes a lock that ends with the process.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// isLocked reports whether a process holds the lock.
func isLocked(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

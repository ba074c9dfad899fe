//go:build unix

package state

import "syscall"

// keepPrivate makes files of this process and its children readable for its user alone, whatever mode they ask for.
func keepPrivate() { syscall.Umask(0o077) }

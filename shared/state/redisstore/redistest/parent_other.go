//go:build !linux

package redistest

import "syscall"

// endWithParent does nothing on this system: a child of a killed test process stays.
func endWithParent() *syscall.SysProcAttr { return nil }

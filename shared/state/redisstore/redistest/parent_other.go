//go:build !linux

package redistest

import "syscall"

// endWithParent can promise nothing here: a child of a killed test process stays.
func endWithParent() *syscall.SysProcAttr { return nil }

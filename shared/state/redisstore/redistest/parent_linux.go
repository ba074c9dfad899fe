package redistest

import "syscall"

// endWithParent makes the kernel end a child when the test process ends, even by SIGKILL.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

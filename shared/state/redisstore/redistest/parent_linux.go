package redistest

import "syscall"

// endWithParent has the kernel end a child when the test process is gone, even by SIGKILL.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

package script_test

import "syscall"

// endWithParent has the kernel end the runner when the test process is gone, even by SIGKILL.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

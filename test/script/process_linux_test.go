package script_test

import "syscall"

// endWithParent makes the kernel end the runner when the test process ends, even by SIGKILL.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

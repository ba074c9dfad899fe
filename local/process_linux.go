package main

import (
	"os/exec"
	"syscall"
)

// dieTogether ends the child when this process ends, however it ends. The kernel ties the child to the thread
// that starts it, so that the caller must stay on its thread until the child is gone.
func dieTogether(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}

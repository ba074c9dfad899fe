package state

import (
	"os/exec"
	"syscall"
)

// dieTogether ends the child when this process ends, however it ends. The kernel ties the child to the thread
// that starts it, so that the caller must stay on its thread until the child is gone. It is killed, which loses
// nothing since every write is on disk: one that ended in good order would remove the socket of its successor.
func dieTogether(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

package state

import (
	"os/exec"
	"syscall"
)

// dieTogether kills the child when this process ends for any reason. The kernel ties the child to the thread that starts
// it, so the caller must stay on its thread until the child has ended. Killing loses nothing, because every write is on
// disk. A child that shut down in good order would remove the socket of its successor.
func dieTogether(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

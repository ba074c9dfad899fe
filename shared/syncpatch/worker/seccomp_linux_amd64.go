package worker

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// allowedHere are calls that other architectures do not have.
var allowedHere = []uint32{unix.SYS_POLL}

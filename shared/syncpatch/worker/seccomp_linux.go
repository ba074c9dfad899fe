//go:build amd64 || arm64

package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowed are the system calls that the Go runtime, the C library below it and the exchange of frames use after the start.
// None of them opens a file or a socket, or starts a program.
var allowed = append([]uint32{
	// memory
	unix.SYS_BRK, unix.SYS_MADVISE, unix.SYS_MUNMAP, unix.SYS_MREMAP,
	// threads and time
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_FUTEX, unix.SYS_GETPID,
	unix.SYS_GETRANDOM, unix.SYS_GETTID, unix.SYS_NANOSLEEP, unix.SYS_RESTART_SYSCALL, unix.SYS_RSEQ, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_SCHED_YIELD, unix.SYS_SET_ROBUST_LIST,
	// signals
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	// the pipes, and the poller of the runtime
	unix.SYS_CLOSE, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_PPOLL, unix.SYS_READ, unix.SYS_WRITE,
}, allowedHere...)

// The kernel gives a filter the number of the call, the architecture, and six arguments of eight bytes from here on.
const (
	offsetNumber       = 0
	offsetArchitecture = 4
	offsetArguments    = 16
)

// confine takes from this process, permanently, everything that an evaluation does not need: new files, connections,
// programs and processes, executable memory, signals to other processes, and new privileges. Code that breaks out of
// the interpreter has only the pipes to the program and the memory of the worker. On a kernel or in a container without
// seccomp, confine changes nothing and returns no error. Source: ADR-0014.
func confine() error {
	// The poller of the runtime opens its files with the first timer.
	time.AfterFunc(time.Hour, func() {}).Stop()
	program, err := filter(os.Getpid())
	if err != nil {
		return fmt.Errorf("assembling the filter of system calls: %w", err)
	}
	// Both calls must come from one thread. The second call gives all threads the same filter.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return unlessMissing("giving up new privileges", err)
	}
	code := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	other, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&code))) //nolint:gosec // the kernel reads the program
	switch {
	case errno != 0:
		return unlessMissing("installing the filter of system calls", errno)
	case other != 0:
		return fmt.Errorf("installing the filter of system calls: thread %d has another one", other)
	}
	return nil
}

// unlessMissing returns no error if the kernel lacks seccomp, or a container forbids it.
func unlessMissing(what string, err error) error {
	for _, missing := range []error{unix.ENOSYS, unix.EINVAL, unix.EPERM, unix.EACCES} {
		if errors.Is(err, missing) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// filter returns the program that the kernel runs before each system call of this process, whose ID is pid.
func filter(pid int) ([]unix.SockFilter, error) {
	refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	steps := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArchitecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1},
		refuse,
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	for _, number := range allowed {
		steps = append(steps, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, allow)
	}
	// The lower half of an argument decides. All of these are ints to the kernel, or have no flag in the upper half.
	for _, call := range []struct {
		number   uint32
		argument uint32
		must     bpf.JumpTest
		value    uint32
	}{
		{unix.SYS_CLONE, 0, bpf.JumpBitsSet, unix.CLONE_THREAD},
		{unix.SYS_MMAP, 2, bpf.JumpBitsNotSet, unix.PROT_EXEC},
		{unix.SYS_MPROTECT, 2, bpf.JumpBitsNotSet, unix.PROT_EXEC},
		{unix.SYS_KILL, 0, bpf.JumpEqual, uint32(pid)},
		{unix.SYS_TGKILL, 0, bpf.JumpEqual, uint32(pid)},
	} {
		steps = append(steps,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call.number, SkipTrue: 4},
			bpf.LoadAbsolute{Off: offsetArguments + 8*call.argument, Size: 4},
			bpf.JumpIf{Cond: call.must, Val: call.value, SkipTrue: 1},
			refuse,
			allow,
		)
	}
	steps = append(steps,
		// The flags of clone3 are in memory, which a filter does not see. The C library then uses clone.
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		refuse,
	)
	raw, err := bpf.Assemble(steps)
	if err != nil {
		return nil, err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, step := range raw {
		program[i] = unix.SockFilter{Code: step.Op, Jt: step.Jt, Jf: step.Jf, K: step.K}
	}
	return program, nil
}

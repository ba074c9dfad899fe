//go:build amd64 || arm64

package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// escape is the variable that makes the test program confine itself as a worker does, and print what it can still do.
const escape = "WORKER_TEST_ESCAPE"

func init() {
	if os.Getenv(escape) == "" {
		return
	}
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = confine()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, attempt := range attempts(page) {
		fmt.Printf("%s: %v\n", attempt.name, attempt.do())
	}
	work()
	fmt.Println("done")
	os.Exit(0)
}

type attempt struct {
	name string
	do   func() error
}

// attempts are the calls that an attacker with code in a worker would try.
func attempts(page []byte) []attempt {
	parent := os.Getppid()
	call := func(number uintptr, arguments ...uintptr) error {
		var six [6]uintptr
		copy(six[:], arguments)
		result, _, errno := unix.RawSyscall6(number, six[0], six[1], six[2], six[3], six[4], six[5])
		if errno != 0 {
			return errno
		}
		if (number == unix.SYS_CLONE || number == unix.SYS_CLONE3) && result == 0 {
			os.Exit(0)
		}
		return nil
	}
	path, _ := unix.BytePtrFromString("/proc/self/environ")
	program, _ := unix.BytePtrFromString("/bin/true")
	folder, _ := unix.BytePtrFromString("/tmp")
	file, command, place := uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(program)), uintptr(unsafe.Pointer(folder))
	here := unix.AT_FDCWD
	list := []attempt{
		{"openat", func() error { return call(unix.SYS_OPENAT, uintptr(here), file, unix.O_RDONLY) }},
		{"openat2", func() error { return call(unix.SYS_OPENAT2, uintptr(here), file) }},
		{"open_by_handle_at", func() error { return call(unix.SYS_OPEN_BY_HANDLE_AT) }},
		{"memfd_create", func() error { return call(unix.SYS_MEMFD_CREATE, file) }},
		{"unlinkat", func() error { return call(unix.SYS_UNLINKAT, uintptr(here), file) }},
		{"statx", func() error { return call(unix.SYS_STATX, uintptr(here), file) }},
		{"chdir", func() error { return call(unix.SYS_CHDIR, place) }},
		{"socket of the internet", func() error { return call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM) }},
		{"socket of the machine", func() error { return call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM) }},
		{"connect", func() error { return call(unix.SYS_CONNECT) }},
		{"sendto", func() error { return call(unix.SYS_SENDTO, 1) }},
		{"execve", func() error { return call(unix.SYS_EXECVE, command) }},
		{"execveat", func() error { return call(unix.SYS_EXECVEAT, uintptr(here), command) }},
		{"clone of a process", func() error { return call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) }},
		{"clone3", func() error { return call(unix.SYS_CLONE3) }},
		{"kill", func() error { return call(unix.SYS_KILL, uintptr(parent)) }},
		{"kill of all", func() error { return call(unix.SYS_KILL, ^uintptr(0)) }},
		{"tgkill", func() error { return call(unix.SYS_TGKILL, uintptr(parent), uintptr(parent)) }},
		{"pidfd_open", func() error { return call(unix.SYS_PIDFD_OPEN, uintptr(parent)) }},
		{"ptrace", func() error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(parent)) }},
		{"process_vm_readv", func() error { return call(unix.SYS_PROCESS_VM_READV, uintptr(parent)) }},
		{"prlimit64", func() error { return call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_AS) }},
		{"mmap to execute", func() error {
			return call(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0))
		}},
		{"mprotect to execute", func() error {
			return call(unix.SYS_MPROTECT, uintptr(unsafe.Pointer(&page[0])), uintptr(len(page)), unix.PROT_READ|unix.PROT_EXEC)
		}},
		{"pkey_mprotect", func() error { return call(unix.SYS_PKEY_MPROTECT, uintptr(unsafe.Pointer(&page[0]))) }},
		{"setuid", func() error { return call(unix.SYS_SETUID) }},
		{"unshare", func() error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }},
		{"mount", func() error { return call(unix.SYS_MOUNT) }},
		{"prctl", func() error { return call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1) }},
		{"seccomp", func() error { return call(unix.SYS_SECCOMP) }},
		{"io_uring_setup", func() error { return call(unix.SYS_IO_URING_SETUP) }},
		{"bpf", func() error { return call(unix.SYS_BPF) }},
		{"userfaultfd", func() error { return call(unix.SYS_USERFAULTFD) }},
		{"perf_event_open", func() error { return call(unix.SYS_PERF_EVENT_OPEN) }},
	}
	if runtime.GOARCH == "amd64" {
		// The same numbers are other calls in the 32 bit world of x32.
		const x32 = 0x40000000
		list = append(list, attempt{"openat of x32", func() error { return call(x32+unix.SYS_OPENAT, uintptr(here), file) }})
	}
	return list
}

// work does what evaluations do: it uses memory, threads and timers.
func work() {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			runtime.LockOSThread()
			_ = make([]byte, 1<<20)
			runtime.GC()
		})
	}
	all.Wait()
}

// hasSeccomp skips where the kernel cannot filter.
func hasSeccomp(t *testing.T) {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		t.Skipf("the kernel does not filter system calls: %v", errno)
	}
}

// TestEscape: a process that is confined as a worker gets no file, no connection, no program, no other process.
func TestEscape(t *testing.T) {
	hasSeccomp(t)
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), escape+"=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	var want []string
	for _, attempt := range attempts(make([]byte, 1)) {
		refused := error(syscall.EPERM)
		if attempt.name == "clone3" {
			refused = syscall.ENOSYS
		}
		want = append(want, fmt.Sprintf("%s: %v", attempt.name, refused))
	}
	want = append(want, "done")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d:\n%s\nwant:\n%s", i+1, out, strings.Join(want, "\n"))
		}
	}
}

// TestConfined: every thread of a worker is confined, also after an evaluation.
func TestConfined(t *testing.T) {
	hasSeccomp(t)
	pool := newPool(t, Settings{Processes: 1})
	pids := pool.pids()
	if len(pids) != 1 {
		t.Fatalf("%d workers", len(pids))
	}
	for _, after := range []string{"the start", "an evaluation"} {
		if after == "an evaluation" {
			if _, err := pool.Evaluate(context.Background(), warmSpec()); err != nil {
				t.Fatal(err)
			}
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pids[0]))
		if err != nil || len(threads) == 0 {
			t.Fatalf("no threads: %v", err)
		}
		for _, thread := range threads {
			status, err := os.ReadFile(thread)
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				continue // the thread has ended
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n"} {
				if !strings.Contains(string(status), line) {
					t.Errorf("%s, after %s: no line %q in\n%s", thread, after, line, status)
				}
			}
		}
	}
}

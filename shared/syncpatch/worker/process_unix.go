//go:build unix

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/expression"
)

const supported = true

// process is a worker on the side of the program. It runs one evaluation at a time.
type process struct {
	settings *Settings
	command  *exec.Cmd
	in       io.WriteCloser
	frames   frames
	stderr   beginning
	spot     *spot
	end      sync.Once
	// status is how it ended, and patch and path are where it was then. They are set when kill has returned.
	status error
	patch  int
	path   string
}

// start starts a worker and waits until it is ready.
func start(settings *Settings) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	w := &process{settings: settings}
	page, err := newSpotFile()
	if err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	defer func() { _ = page.Close() }()
	if w.spot, err = mapSpot(page); err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	w.command = exec.Command(program)
	w.command.Dir = "/"
	w.command.Env = []string{
		marker + "=" + strconv.FormatInt(settings.Limits.Memory, 10), "GOMAXPROCS=2", "GOTRACEBACK=none",
	}
	w.command.ExtraFiles = []*os.File{page}
	w.command.Stderr = &w.stderr
	in, err := w.command.StdinPipe()
	if err == nil {
		w.in = in
		var out io.ReadCloser
		if out, err = w.command.StdoutPipe(); err == nil {
			w.frames = frames{in: bufio.NewReaderSize(out, 64<<10), out: in}
			err = w.command.Start()
		}
	}
	if err != nil {
		w.spot.close()
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	timer := time.AfterFunc(settings.StartTime, func() { _ = w.command.Process.Kill() })
	defer timer.Stop()
	if _, err := w.frames.receive(); err != nil {
		w.kill()
		return nil, fmt.Errorf("starting a worker: waiting until it is ready: %w: %w: %s", err, w.status, w.stderr.String())
	}
	return w, nil
}

// evaluate has the worker evaluate a request. An *endedError means that the worker ended.
func (w *process) evaluate(ctx context.Context, request *syncpatch.Request) (*syncpatch.Result, error) {
	frame, err := appendQuestion(w.frames.begin(), question{Request: request, Limits: w.settings.Limits})
	if err != nil {
		return nil, err
	}
	w.spot.set(-1, "")
	timeout, cancel := context.WithTimeout(ctx, w.settings.Limits.Object+w.settings.Grace)
	defer cancel()
	stop := context.AfterFunc(timeout, func() { _ = w.command.Process.Kill() })
	defer stop()
	a, err := w.ask(frame)
	switch {
	case err == nil && a.Error != "":
		return nil, fmt.Errorf("evaluating in a worker: %s", a.Error)
	case err == nil && a.Result != nil:
		if a.Result.Error != nil {
			a.Result.Object = request.Object
		}
		return a.Result, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	late := timeout.Err() != nil
	w.kill()
	return nil, &endedError{limit: w.why(late), patch: w.patch, path: w.path}
}

func (w *process) ask(frame []byte) (a answer, err error) {
	if err := w.frames.send(frame); err != nil {
		return a, err
	}
	text, err := w.frames.receive()
	if err != nil {
		return a, err
	}
	return readAnswer(text)
}

// why returns the limit that ended the worker, or "" if it was none.
func (w *process) why(late bool) expression.Limit {
	var exit *exec.ExitError
	if !errors.As(w.status, &exit) {
		return ""
	}
	text := w.stderr.String()
	signalled := false
	if status, ok := exit.Sys().(syscall.WaitStatus); ok {
		signalled = status.Signaled()
	}
	switch {
	case exit.ExitCode() == exitMemory:
		return syncpatch.LimitMemory
	case exit.ExitCode() == exitExpression:
		return expression.LimitTime
	case exit.ExitCode() == exitObject, late:
		return expression.LimitTotal
	case strings.Contains(text, "stack exceeds"), strings.Contains(text, "stack overflow"):
		return expression.LimitDepth
	case strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"),
		strings.Contains(text, "failed to allocate"), signalled:
		return syncpatch.LimitMemory
	default:
		return ""
	}
}

// kill ends the worker, whatever it is doing, waits until it has ended, and gives back the memory that it shared.
func (w *process) kill() {
	w.end.Do(func() {
		_ = w.command.Process.Kill()
		_ = w.in.Close()
		w.status = w.command.Wait()
		w.patch, w.path = w.spot.get()
		w.spot.close()
	})
}

// beginning keeps the first bytes of the standard error of a worker, where a Go program says why it crashes.
type beginning struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *beginning) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := 4096 - b.text.Len(); room > 0 {
		b.text.Write(text[:min(room, len(text))])
	}
	return len(text), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// headroom is how much address space a worker may take from the system after its start. Go takes it in pieces of 64 MiB.
// An ordinary evaluation stays far below; a single operation cannot exceed it.
func headroom(memory int64) uint64 { return uint64(memory)*2 + 192<<20 }

// limitMemory makes the kernel enforce headroom. It limits the address space, because RLIMIT_DATA does not count memory
// that Go reserves first and uses later, neither when it is reserved nor when it is used. A Go program starts with more
// than a GiB of address space, so the limit is relative to that. Where the system does not report it, only the watch
// limits the memory.
func limitMemory(memory int64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	pages, _, _ := strings.Cut(string(text), " ")
	size, err := strconv.ParseUint(pages, 10, 64)
	if err != nil {
		return
	}
	most := size*uint64(os.Getpagesize()) + headroom(memory)
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most})
}

// abandoned reports, in a worker, whether the program has closed its end of the pipe, as it does when it ends.
func abandoned() bool {
	input := []unix.PollFd{{Fd: 0}}
	n, err := unix.Poll(input, 0)
	return err == nil && n > 0 && input[0].Revents&unix.POLLHUP != 0
}

// spot is memory that a worker shares with the program: the patch and the path where the worker is. The program reads it
// after the worker has ended.
type spot struct{ page []byte }

const spotSize = 4096

func mapSpot(file *os.File) (*spot, error) {
	page, err := syscall.Mmap(int(file.Fd()), 0, spotSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping memory: %w", err)
	}
	return &spot{page}, nil
}

// openSpot returns the spot on the side of the worker.
func openSpot() *spot {
	file := os.NewFile(3, "spot")
	s, err := mapSpot(file)
	_ = file.Close()
	if err != nil {
		os.Exit(2)
	}
	return s
}

func (s *spot) set(patch int, path string) {
	n := copy(s.page[8:], path)
	binary.LittleEndian.PutUint32(s.page, uint32(patch+1))
	binary.LittleEndian.PutUint32(s.page[4:], uint32(n))
}

// get returns a copy of what set wrote last.
func (s *spot) get() (patch int, path string) {
	n := min(binary.LittleEndian.Uint32(s.page[4:]), spotSize-8)
	return int(binary.LittleEndian.Uint32(s.page)) - 1, string(s.page[8 : 8+n])
}

func (s *spot) close() { _ = syscall.Munmap(s.page) }

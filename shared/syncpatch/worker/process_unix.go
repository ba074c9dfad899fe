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
	// status is how the worker ended, and at is its place at that time, if it was working. They are set when kill has
	// returned.
	status  error
	at      syncpatch.Place
	working bool
}

// start starts a worker and waits until it is ready, unless ctx ends before.
func start(ctx context.Context, settings *Settings) (*process, error) {
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
	timeout, cancel := context.WithTimeout(ctx, settings.StartTime)
	defer cancel()
	stop := context.AfterFunc(timeout, func() { _ = w.command.Process.Kill() })
	defer stop()
	if _, err := w.frames.receive(); err != nil {
		w.kill()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("starting a worker: waiting until it is ready: %w: %w: %s", err, w.status, w.stderr.String())
	}
	return w, nil
}

// ask sends a question to the worker and returns its answer. begun is called with an answer that precedes the last one.
// An *endedError means that the worker ended.
func (w *process) ask(ctx context.Context, q question, begun func(answer)) (answer, error) {
	frame, err := appendCBOR(w.frames.begin(), q)
	if err != nil {
		return answer{}, err
	}
	w.spot.clear()
	timeout, cancel := context.WithTimeout(ctx, w.settings.Limits.Object+w.settings.Grace)
	defer cancel()
	stop := context.AfterFunc(timeout, func() { _ = w.command.Process.Kill() })
	defer stop()
	a, err := w.exchange(frame, begun)
	switch {
	case err == nil && a.Error != "":
		return answer{}, fmt.Errorf("evaluating in a worker: %s", a.Error)
	case err == nil:
		return a, nil
	case ctx.Err() != nil:
		return answer{}, context.Cause(ctx)
	}
	late := timeout.Err() != nil
	w.kill()
	ended := w.endReason(late)
	ended.at, ended.working = w.at, w.working
	return answer{}, ended
}

// exchange sends a question and receives the answers to it.
func (w *process) exchange(frame []byte, begun func(answer)) (answer, error) {
	if err := w.frames.send(frame); err != nil {
		return answer{}, err
	}
	for {
		frame, err := w.frames.receive()
		if err != nil {
			return answer{}, err
		}
		a, err := readAnswer(frame)
		if err != nil || !a.Begun {
			return a, err
		}
		begun(a)
	}
}

// endReason returns the reason why the worker ended: the limit that it exceeded, or else how it ended.
func (w *process) endReason(late bool) *endedError {
	var exit *exec.ExitError
	if !errors.As(w.status, &exit) {
		return &endedError{how: "without an error"}
	}
	text := w.stderr.String()
	status, _ := exit.Sys().(syscall.WaitStatus)
	switch {
	case exit.ExitCode() == exitMemory:
		return &endedError{limit: syncpatch.LimitMemory}
	case exit.ExitCode() == exitExpression:
		return &endedError{limit: expression.LimitTime}
	case exit.ExitCode() == exitObject, late:
		return &endedError{limit: expression.LimitTotal}
	case strings.Contains(text, "stack exceeds"), strings.Contains(text, "stack overflow"):
		return &endedError{limit: expression.LimitDepth}
	case strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"),
		strings.Contains(text, "failed to allocate"):
		return &endedError{limit: syncpatch.LimitMemory}
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		return &endedError{how: "because the system killed it, which it does when memory is short", log: text}
	case status.Signaled():
		return &endedError{how: "because of a signal", log: status.Signal().String() + ": " + text}
	default:
		return &endedError{how: fmt.Sprintf("with status %d", exit.ExitCode()), log: text}
	}
}

// kill ends the worker, whatever it is doing, waits until it has ended, and gives back the memory that it shared.
func (w *process) kill() {
	w.end.Do(func() {
		_ = w.command.Process.Kill()
		_ = w.in.Close()
		w.status = w.command.Wait()
		w.at, w.working = w.spot.get()
		w.spot.close()
	})
}

// beginning keeps the first bytes of the standard error of a worker, where a Go program prints why it crashes.
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

// headroom is how much address space a worker may take from the system after its start. Go takes it in pieces of 64
// MiB. An ordinary evaluation stays far below it; a single operation cannot exceed it.
func headroom(memory int64) uint64 { return uint64(memory)*2 + 192<<20 }

// limitMemory makes the kernel enforce headroom. It limits the address space, because RLIMIT_DATA never counts memory
// that Go reserves first and uses later. A Go program starts with more than a GiB of address space, so the limit is
// relative to that size. Where the system does not report the size, only the watch limits the memory.
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

// spot is memory that a worker shares with the program: the patch and the path that the worker evaluates. The program
// reads it after the worker has ended.
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

// The page begins with the activity of the worker, the number of the patch, and the length of the following text.
const (
	spotIdle = iota
	spotReads
	spotEvaluates
	spotHead = 12
)

// clear records that the worker has not begun.
func (s *spot) clear() { binary.LittleEndian.PutUint32(s.page, spotIdle) }

func (s *spot) set(place syncpatch.Place) {
	kind, text := uint32(spotEvaluates), place.Path
	if place.Reading != "" {
		kind, text = spotReads, place.Reading
	}
	n := copy(s.page[spotHead:], text)
	binary.LittleEndian.PutUint32(s.page[4:], uint32(place.Patch))
	binary.LittleEndian.PutUint32(s.page[8:], uint32(n))
	binary.LittleEndian.PutUint32(s.page, kind)
}

// get returns the place of the worker. If it has not begun, working is false.
func (s *spot) get() (at syncpatch.Place, working bool) {
	n := min(binary.LittleEndian.Uint32(s.page[8:]), spotSize-spotHead)
	text := strings.ToValidUTF8(string(s.page[spotHead:spotHead+n]), "")
	switch binary.LittleEndian.Uint32(s.page) {
	case spotReads:
		return syncpatch.Place{Reading: text}, true
	case spotEvaluates:
		return syncpatch.Place{Patch: int(binary.LittleEndian.Uint32(s.page[4:])), Path: text}, true
	default:
		return syncpatch.Place{}, false
	}
}

func (s *spot) close() { _ = syscall.Munmap(s.page) }

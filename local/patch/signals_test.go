//go:build unix

package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// program is the variable that makes the test program a patch command.
const program = "PATCH_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(program) == "" {
		os.Exit(m.Run())
	}
	// As in the program, the signal handlers are set before the command begins.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	all := New()
	parser := kong.Must(&all, kong.BindTo(ctx, (*context.Context)(nil)))
	parsed, err := parser.Parse(os.Args[1:])
	if err == nil {
		err = parsed.Run()
	}
	fmt.Println(err)
	os.Exit(9)
}

// A signal ends a command at once, also while a text is parsed that would take forever, and its worker ends with it.
func TestSignals(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"endless.yaml", "pod.yaml"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(patchFiles[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := "configuration: endless.yaml\ntests: [{name: a, spec: {object: pod.yaml}, expect: {}}]\n"
	if err := os.WriteFile(filepath.Join(folder, "tests.yaml"), []byte(tests), 0o600); err != nil {
		t.Fatal(err)
	}
	slow := []string{"--patch-expression-time=25s", "--patch-object-time=25s"}
	for _, line := range [][]string{{"check", "endless.yaml"}, {"eval", "-c", "endless.yaml", "pod.yaml"}, {"test", "tests.yaml"}} {
		for _, with := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			command := exec.Command(os.Args[0], append(append([]string{line[0]}, slow...), line[1:]...)...)
			command.Dir, command.Env = folder, append(os.Environ(), program+"=1")
			out := &strings.Builder{}
			command.Stdout = out
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			worker := workerOf(t, command.Process.Pid)
			if err := command.Process.Signal(with); err != nil {
				t.Fatal(err)
			}
			err := command.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != with {
				t.Errorf("%v ends %s with %v: %s", with, line[0], err, out)
			}
			deadline := time.Now().Add(20 * time.Second)
			for syscall.Kill(worker, 0) == nil && !zombie(worker) {
				if time.Now().After(deadline) {
					t.Fatalf("the worker of %s goes on", line[0])
				}
				time.Sleep(time.Millisecond) //nolint:forbidigo // another process tells nobody when it ends
			}
		}
	}
}

// workerOf waits until a process has a worker that is busy, and returns its id.
func workerOf(t *testing.T, pid int) int {
	t.Helper()
	if own, _ := filepath.Glob("/proc/self/task/*/children"); len(own) == 0 {
		t.Skip("there is no /proc that shows workers")
	}
	deadline := time.Now().Add(time.Minute)
	for ; time.Now().Before(deadline) && !zombie(pid); time.Sleep(time.Millisecond) { //nolint:forbidigo // another process tells nobody that it works
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			for _, child := range strings.Fields(string(text)) {
				worker, err := strconv.Atoi(child)
				if err != nil {
					t.Fatal(err)
				}
				stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", worker))
				_, rest, _ := strings.Cut(string(stat), ") ")
				var used int
				if fields := strings.Fields(rest); len(fields) > 11 {
					_, _ = fmt.Sscan(fields[11], &used)
				}
				// It has used 0.3 s of CPU time, which is more than it needs to start.
				if used >= 30 {
					return worker
				}
			}
		}
	}
	t.Fatalf("process %d has no busy worker; it has ended: %v", pid, zombie(pid))
	return 0
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/expression"
)

// parent is the variable that makes the test program start a worker, give it an endless expression, and wait to be
// killed.
const parent = "WORKER_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parent) != "" {
		pool := New(Settings{Processes: 1, Limits: syncpatch.Limits{Expression: time.Hour, Object: time.Hour}})
		pool.warming.Wait()
		fmt.Println(pool.idle[0].command.Process.Pid)
		checked, _ := attacked(os.Getenv(parent)).Check()
		_, _ = pool.Evaluate(context.Background(), checked)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newPool(t *testing.T, settings Settings) *Pool {
	t.Helper()
	if settings.Limits == (syncpatch.Limits{}) {
		settings.Limits = patient
	}
	pool := New(settings)
	t.Cleanup(pool.Close)
	return pool
}

// pids are the ids of the idle workers.
func (p *Pool) pids() []int {
	p.warming.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int
	for _, w := range p.idle {
		all = append(all, w.command.Process.Pid)
	}
	return all
}

// TestReuse: a worker is used again after a result and after an error of an expression, not after a limit.
func TestReuse(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1})
	before := pool.pids()
	for _, test := range []struct {
		expression string
		outcome    string
		same       bool
	}{
		{"value.length", "= 33", true}, {"value.nothing.more", "failed", true}, {"value +", "refused", true}, {"value.length", "= 33", true},
		{"(() => { for (;;); })()", "limit", false}, {"value.length", "= 33", true}, {"(f => f(f))(f => f(f))", "limit", false},
	} {
		if got, detail := outcome(t, pool, test.expression); got != test.outcome {
			t.Errorf("%s: %s (%s)", test.expression, got, detail)
		}
		after := pool.pids()
		if len(after) != 1 || reflect.DeepEqual(before, after) != test.same {
			t.Errorf("%s: worker %v became %v", test.expression, before, after)
		}
		before = after
	}
}

// TestMatchesProcess: a worker gives the same result as Evaluate.
func TestMatchesProcess(t *testing.T) {
	pool := newPool(t, Settings{})
	for _, expression := range []string{"value + '-'", "null", "value.x.y", "[1, 1.5, -1, 1e300, 2 ** 40, null, {a: []}]", "context.hostObject", "NaN"} {
		request := checked(t, expression, func(r *syncpatch.Request) {
			r.Object["deep"] = nested(1000)
			r.Checks = []string{model.CheckRoundTrip, model.CheckFixpoint}
		})
		want, err := syncpatch.Evaluate(t.Context(), request, patient)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pool.Evaluate(t.Context(), request)
		if err != nil || !reflect.DeepEqual(got.Object, want.Object) || text(t, got) != text(t, want) {
			t.Errorf("%s: %.200s, %v; want %.200s", expression, text(t, got), err, text(t, want))
		}
	}
}

// TestUncheckedRequest: a worker does not trust a request that comes through its pipe.
func TestUncheckedRequest(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1})
	pool.warming.Wait()
	w, err := pool.acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer w.kill()
	request := attacked("process.exit()")
	if result, err := w.evaluate(t.Context(), &request); err == nil || !strings.Contains(err.Error(), "spec.patches[1].expression") {
		t.Errorf("a worker evaluates it: %+v, %v", result, err)
	}
}

func text(t *testing.T, result *syncpatch.Result) string {
	t.Helper()
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func nested(depth int) any {
	var v any = int64(1)
	for i := range depth {
		if i%2 == 0 {
			v = []any{v, 0.5, true}
		} else {
			v = map[string]any{"a": v, "": nil}
		}
	}
	return v
}

// TestKilledWorker: a worker that ends between two evaluations causes at most one error, and never a wrong answer.
func TestKilledWorker(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1})
	for _, pid := range pool.pids() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if got, detail := outcome(t, pool, "value.length"); got != "= 33" {
		t.Errorf("%s (%s)", got, detail)
	}
}

// TestCancel: a caller that gives up gets its own error at once, and its worker ends.
func TestCancel(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1, Limits: syncpatch.Limits{Expression: time.Hour, Object: time.Hour}})
	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	var group sync.WaitGroup
	for range 2 {
		// One of them waits for the other's worker.
		group.Go(func() {
			if _, err := pool.Evaluate(ctx, checked(t, "(() => { for (;;); })()")); !errors.Is(err, mine) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	cancel(mine)
	group.Wait()
	if got, detail := outcome(t, pool, "value.length"); got != "= 33" {
		t.Errorf("%s (%s)", got, detail)
	}
}

func TestClose(t *testing.T) {
	pool := New(Settings{Processes: 2, Limits: patient})
	pids := pool.pids()
	pool.Close()
	pool.Close()
	if _, err := pool.Evaluate(t.Context(), checked(t, "value")); !errors.Is(err, ErrClosed) {
		t.Errorf("the error is %v", err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("worker %d is still there: %v", pid, err)
		}
	}
}

// TestSharedMemory: when workers have ended, nothing of the memory that they shared is mapped any more.
func TestSharedMemory(t *testing.T) {
	pool := newPool(t, Settings{Processes: 2})
	pool.pids()
	pool.Close()
	mapped, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("the system does not list the memory of a process: %v", err)
	}
	if count := strings.Count(string(mapped), "memfd:spot"); count > 0 {
		t.Errorf("%d pages are still mapped", count)
	}
}

// TestSecrets: a worker has neither the environment nor the open files of the program.
func TestSecrets(t *testing.T) {
	t.Setenv("PLATFORM_ENCRYPTION_KEY", "canary")
	secret, err := os.Create(filepath.Join(t.TempDir(), "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	pool := newPool(t, Settings{Processes: 1})
	for _, pid := range pool.pids() {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Skip("there is no /proc")
		}
		for _, variable := range strings.Split(strings.TrimRight(string(environment), "\x00"), "\x00") {
			if name, _, _ := strings.Cut(variable, "="); name != marker && name != "GOMAXPROCS" && name != "GOTRACEBACK" {
				t.Errorf("the worker knows %s", name)
			}
		}
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, file.Name()))
			if target == secret.Name() || strings.HasPrefix(target, "socket:") {
				t.Errorf("the worker has %s open", target)
			}
		}
	}
}

// TestInProcess: without workers, the limits hold between the operations of the interpreter.
func TestInProcess(t *testing.T) {
	pool := newPool(t, Settings{InProcess: true})
	for expression, want := range map[string]string{
		"value.length": "= 33", "(() => { for (;;); })()": "limit", "'x'.repeat(2 ** 40)": "limit", "(f => f(f))(f => f(f))": "limit", "/(?=a)/": "refused",
	} {
		if got, detail := outcome(t, pool, expression); got != want {
			t.Errorf("%s: %s (%s)", expression, got, detail)
		}
	}
	if len(pool.pids()) != 0 {
		t.Error("there are workers")
	}
}

// TestOrphans: a worker ends when its program is killed, even during an expression or a single operation.
func TestOrphans(t *testing.T) {
	for _, expression := range []string{"(() => { for (;;); })()", "(a => { a[4294967294] = 1; return a.indexOf(5) })([])"} {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), parent+"="+expression)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("there is no worker %d: %v", pid, err)
		}
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		deadline := time.After(30 * time.Second)
		for !gone(pid) {
			select {
			case <-ticker.C:
			case <-deadline:
				t.Fatalf("worker %d outlives its program", pid)
			}
		}
	}
}

// gone reports whether a process has ended. A process that nobody waited for is a zombie.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestNamedLimits: the error names the limit that was reached, whether the interpreter, the worker itself or the kernel
// stopped it. An evaluation below the limits is not stopped.
func TestNamedLimits(t *testing.T) {
	const short, long = 100 * time.Millisecond, time.Hour
	for _, test := range []struct {
		limits     syncpatch.Limits
		expression string
		limit      expression.Limit
	}{
		{syncpatch.Limits{Expression: short, Object: long}, "(() => { for (;;); })()", expression.LimitTime},
		{syncpatch.Limits{Expression: short, Object: long}, "(a => { a[4294967294] = 1; return a.indexOf(5) })([])", expression.LimitTime},
		{syncpatch.Limits{Expression: long, Object: short}, "(() => { for (;;); })()", expression.LimitTotal},
		{syncpatch.Limits{Expression: long, Object: short}, "(a => { a[4294967294] = 1; return a.indexOf(5) })([])", expression.LimitTotal},
		{syncpatch.Limits{Expression: long, Object: long}, "(() => { const a = []; for (;;) a.push('x'.repeat(1e6) + a.length) })()", syncpatch.LimitMemory},
		// The kernel would still allow this.
		{syncpatch.Limits{Expression: time.Minute, Object: long}, "(() => { const a = []; for (let i = 0; i < 1200; i++) a.push('x'.repeat(1e5) + i); for (;;); })()", syncpatch.LimitMemory},
		{syncpatch.Limits{Expression: long, Object: long}, "[1, 2, 3, 4, 5].reduce(a => a.split('').join(a), 'x'.repeat(36))", syncpatch.LimitMemory},
		{syncpatch.Limits{Expression: long, Object: long}, "Array.from({length: 4e9})", syncpatch.LimitMemory},
		{syncpatch.Limits{Expression: long, Object: long}, "JSON.stringify((() => { let x = 1; for (let i = 0; i < 1e5; i++) x = [x]; return x })())", expression.LimitDepth},
		{syncpatch.Limits{Expression: long, Object: long}, "Array.from({length: 1e5}, (x, i) => 'x'.repeat(100) + i).length", ""},
	} {
		t.Run(test.expression, func(t *testing.T) {
			pool := newPool(t, Settings{Processes: 1, Limits: test.limits})
			result, err := pool.Evaluate(t.Context(), checked(t, test.expression))
			switch {
			case err != nil:
				t.Error(err)
			case test.limit == "" && result.Error != nil:
				t.Errorf("the error is %+v", result.Error)
			case test.limit == expression.LimitDepth && pool.settings.Limits.Violated(result.Error):
				// Go's stack is memory too, and the race detector has less of it.
			case raced && test.limit == syncpatch.LimitMemory && result.Error != nil && result.Error.Index == 1:
				// It ended with a message of the race detector.
			case test.limit != "" && (result.Error == nil || result.Error.Message != test.limits.Exceeded(test.limit).Message || result.Error.Index != 1 || result.Error.Path != "spec.a"):
				t.Errorf("the error is %+v, want the limit of %s", result.Error, test.limit)
			}
		})
	}
}

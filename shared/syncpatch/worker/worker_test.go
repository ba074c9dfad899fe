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
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"management.platform.sh/shared/limits"
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
		_, _ = pool.Evaluate(context.Background(), attacked(os.Getenv(parent)))
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
		{"(f => f(f))(f => f(f))", "limit", false}, {"value.length", "= 33", true},
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
	pool = newPool(t, Settings{Processes: 1, Limits: strict})
	before = pool.pids()
	if got, detail := ends(t, pool, "(() => { for (;;); })()", "limit"); got != "limit" {
		t.Errorf("an endless expression: %s (%s)", got, detail)
	}
	if after := pool.pids(); len(after) != 1 || reflect.DeepEqual(before, after) {
		t.Errorf("an endless expression: worker %v became %v", before, after)
	}
}

// TestMatchesProcess: a worker gives the same result as EvaluateSpec, and as a pool without workers.
func TestMatchesProcess(t *testing.T) {
	pool, inProcess := newPool(t, Settings{}), newPool(t, Settings{InProcess: true})
	for _, expression := range []string{"value + '-'", "null", "value.x.y", "[1, 1.5, -1, 1e300, 2 ** 40, null, {a: []}]", "context.hostObject", "NaN", "value +", "x", "1e400", "/(?=a)/"} {
		spec := attacked(expression)
		spec.Checks = []string{model.CheckRoundTrip, model.CheckFixpoint}
		want, err := syncpatch.EvaluateSpec(t.Context(), spec, patient, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, pool := range []*Pool{pool, inProcess} {
			if got, err := pool.Evaluate(t.Context(), spec); err != nil || text(t, got) != text(t, want) {
				t.Errorf("%s: %.500s, %v; want %.500s", expression, text(t, got), err, text(t, want))
			}
		}
	}
}

// TestConfiguration: a worker finds the same in a configuration as ReadConfiguration, and names the field of a text that
// cannot be parsed in time.
func TestConfiguration(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1})
	for _, configuration := range []string{
		"sync: {toHost: {pods: {patches: [{path: a, expression: value +}]}}}", "sync: {toHost: {endpoints: {patches: [{path: 'a[*]', expression: '1'}]}, x: {}}}", "a: [", "",
	} {
		want := readConfiguration(t.Context(), []byte(configuration))
		if got, err := pool.ReadConfiguration(t.Context(), []byte(configuration)); err != nil || text(t, got) != text(t, want) {
			t.Errorf("%s: %s, %v; want %s", configuration, text(t, got), err, text(t, want))
		}
	}
	pool = newPool(t, Settings{Processes: 1, Limits: strict})
	endless := "sync: {toHost: {pods: {patches: [{path: a, expression: value}, {path: b, reverseExpression: '" + doubling(60) + "'}]}}}"
	for attempt := 1; ; attempt++ {
		got, err := pool.ReadConfiguration(t.Context(), []byte(endless))
		if err == nil && len(got.Problems) == 1 && got.Problems[0].Field == "sync.toHost.pods.patches[1].reverseExpression" &&
			strings.HasPrefix(got.Problems[0].Detail, "the limit of time per expression, 200ms, is exceeded") {
			break
		}
		// A busy machine may take the time of the expression before it, but not five times in a row.
		if attempt == 5 {
			t.Fatalf("%s, %v", text(t, got), err)
		}
	}
}

// doubling is an expression that takes the parser twice as long with each level.
func doubling(levels int) string {
	return strings.Repeat("(a=", levels) + "1" + strings.Repeat(")=>1", levels)
}

// TestParsing: a text that takes too long or too much memory to parse ends as an evaluation does. The answer names the
// field and the limit, and the next request is served.
func TestParsing(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1, Limits: strict})
	for name, expression := range map[string]string{
		"time": doubling(60), "time, in a template": "`${" + doubling(60) + "}`", "time, unfinished": strings.Repeat("(a=", 100),
	} {
		got, detail := ends(t, pool, expression, "limit")
		if named := strings.Contains(detail, "the limit of time per expression, 200ms, is exceeded"); name != "time, unfinished" && (got != "limit" || !named) ||
			got != "limit" && got != "refused" {
			t.Errorf("%s: %s (%s)", name, got, detail)
		}
	}
	if got, detail := ends(t, pool, "value.length", "= 33"); got != "= 33" {
		t.Errorf("%s (%s)", got, detail)
	}
}

// TestCancelParsing: a caller that gives up ends the parsing of its text.
func TestCancelParsing(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1, Limits: syncpatch.Limits{Expression: time.Hour, Object: time.Hour}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := pool.Evaluate(ctx, attacked(doubling(60))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if got, detail := outcome(t, pool, "value.length"); got != "= 33" {
		t.Errorf("%s (%s)", got, detail)
	}
}

// TestBounds: an evaluation beyond a bound is refused before a worker sees it.
func TestBounds(t *testing.T) {
	pool := New(Settings{Processes: 1, Limits: patient})
	pool.Close()
	for name, change := range map[string]func(*model.SyncPatchEvaluationSpec){
		"spec.patches": func(s *model.SyncPatchEvaluationSpec) { s.Patches = make([]model.SyncPatch, limits.Patches+1) },
		"spec.patches[0].expression": func(s *model.SyncPatchEvaluationSpec) {
			s.Patches[0].Expression = strings.Repeat("x", limits.ExpressionBytes+1)
		},
		"spec.patches[1].expression": func(s *model.SyncPatchEvaluationSpec) {
			s.Patches[1].Expression = strings.Repeat("(", limits.ExpressionDepth+1)
		},
		"spec.patches[15].expression": func(s *model.SyncPatchEvaluationSpec) { s.Patches = longPatches(17) },
	} {
		spec := attacked("value")
		change(spec)
		if got, err := pool.Evaluate(t.Context(), spec); err != nil || len(got.Problems) != 1 || got.Problems[0].Field != name && name != "spec.patches[15].expression" {
			t.Errorf("%s: %s, %v", name, text(t, got), err)
		}
	}
	if _, err := pool.Evaluate(t.Context(), &model.SyncPatchEvaluationSpec{Patches: longPatches(16)}); !errors.Is(err, ErrClosed) {
		t.Errorf("what is at the bound is refused: %v", err)
	}
}

// longPatches returns patches whose expressions have the greatest length.
func longPatches(n int) []model.SyncPatch {
	all := make([]model.SyncPatch, n)
	for i := range all {
		all[i].Expression = strings.Repeat("x", limits.ExpressionBytes)
	}
	return all
}

// TestNotCharged: the entries that earlier requests left in the cache of a worker do not count against the current one:
// they are dropped before the worker ends for want of memory.
func TestNotCharged(t *testing.T) {
	c := &child{sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	collected := func() uint64 {
		runtime.GC()
		return c.heap()
	}
	expression.Forget()
	c.baseline = collected()
	for i := range 50 {
		if _, err := expression.Compile(fmt.Sprintf("%d, ", i) + strings.Repeat("/[a-z]x/.test(value), ", 200) + "value"); err != nil {
			t.Fatal(err)
		}
	}
	cached := int64(collected()) - int64(c.baseline)
	if cached < 1<<18 {
		t.Fatalf("the cache has %d bytes: too few to tell", cached)
	}
	c.memory = cached / 2
	if !c.exceeds() {
		t.Error("the cache is not within the memory of the process")
	}
	if c.exceedsAfterCollection() {
		t.Errorf("%d bytes are charged, of %d in the cache", c.heap()-c.baseline, cached)
	}
}

// TestEndedWorker: if a worker ends for a reason that is no limit, the answer says where it was and that it ended.
func TestEndedWorker(t *testing.T) {
	long := syncpatch.Limits{Expression: time.Hour, Object: time.Hour}
	for expression, want := range map[string]string{
		"(() => { for (;;); })()": "spec.a", doubling(60): "spec.patches[1].expression",
	} {
		pool := newPool(t, Settings{Processes: 1, Limits: long})
		pid := pool.pids()[0]
		ctx := t.Context()
		go func() {
			// It is killed as soon as it works.
			for ctx.Err() == nil && !busy(pid) {
				time.Sleep(time.Millisecond) //nolint:forbidigo // there is nothing to wait for but the other process
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}()
		got, err := pool.Evaluate(ctx, attacked(expression))
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if len(got.Problems) > 0 {
			if p := got.Problems[0]; p.Field != want || !strings.Contains(p.Detail, "the worker that parsed this ended because the system killed it") {
				t.Errorf("%s: %v", expression, p)
			}
		} else if failed := got.Status.Error; failed == nil || failed.Index != 1 || failed.Path != want ||
			!strings.Contains(failed.Message, "the worker that evaluated the patch ended because the system killed it") {
			t.Errorf("%s: %+v", expression, failed)
		}
	}
}

// busy reports whether a process has used 50 ms of CPU time since its start.
func busy(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	return user >= 20
}

func text(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
	cause := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	var group sync.WaitGroup
	for range 2 {
		// One of them waits for the other's worker.
		group.Go(func() {
			if _, err := pool.Evaluate(ctx, attacked("(() => { for (;;); })()")); !errors.Is(err, cause) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	cancel(cause)
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
	if _, err := pool.Evaluate(t.Context(), attacked("value")); !errors.Is(err, ErrClosed) {
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
	pool := newPool(t, Settings{InProcess: true, Limits: strict})
	for expression, want := range map[string]string{
		"value.length": "= 33", "(() => { for (;;); })()": "limit", "'x'.repeat(2 ** 40)": "limit", "(f => f(f))(f => f(f))": "limit", "/(?=a)/": "refused",
	} {
		if got, detail := ends(t, pool, expression, want); got != want {
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

// gone reports whether a process has ended. A process that no parent has waited for is a zombie.
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
		{syncpatch.Limits{Expression: long, Object: long}, "JSON.stringify((() => { let x = 1; for (let i = 0; i < 4e4; i++) x = [x]; return x })())", expression.LimitDepth},
		{syncpatch.Limits{Expression: long, Object: long}, "Array.from({length: 1e5}, (x, i) => 'x'.repeat(100) + i).length", ""},
	} {
		t.Run(test.expression, func(t *testing.T) {
			pool := newPool(t, Settings{Processes: 1, Limits: test.limits})
			outcome, err := pool.Evaluate(t.Context(), attacked(test.expression))
			// A busy machine may take the time of another patch, but not five times in a row.
			for attempt := 1; attempt < 5 && err == nil && (outcome.Status == nil || outcome.Status.Error != nil && outcome.Status.Error.Index != 1); attempt++ {
				outcome, err = pool.Evaluate(t.Context(), attacked(test.expression))
			}
			result := outcome.Status
			switch {
			case err != nil || result == nil:
				t.Error(err, outcome.Problems)
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

package worker

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// payload is a line of testdata/payloads.txt.
type payload struct {
	line       int
	expected   string
	expression string
}

func payloads(t *testing.T) []payload {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "payloads.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []payload
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		expected, expression, _ := strings.Cut(line, " ")
		if expected == "=" {
			var result json.RawMessage
			rest := json.NewDecoder(strings.NewReader(expression))
			if err := rest.Decode(&result); err != nil {
				t.Fatalf("line %d: %v", n, err)
			}
			expected, expression = "= "+string(result), expression[rest.InputOffset():]
		}
		all = append(all, payload{n, expected, strings.TrimPrefix(expression, " ")})
	}
	if len(all) < 100 {
		t.Fatalf("%d payloads", len(all))
	}
	return all
}

// attacked is an object whose second patch is the payload. The first and the last patch show whether other patches still work.
func attacked(expression string) *model.SyncPatchEvaluationSpec {
	return &model.SyncPatchEvaluationSpec{
		Object: &model.JSON{Raw: []byte(`{"spec":{"a":"` + strings.Repeat("a", 32) + `!","n":3,"z":"z"}}`)},
		Patches: []model.SyncPatch{
			{Path: "spec.n", Expression: "value + 1"}, {Path: "spec.a", Expression: expression}, {Path: "spec.z", Expression: "value + 'z'"},
		},
		Context: model.SyncPatchContext{Tenant: model.SyncPatchTenant{Name: "tenant", Namespace: "host"}, HostObject: &model.JSON{Raw: []byte(`{"a":"b"}`)}},
	}
}

// strict are limits within which an endless expression ends soon.
var strict = syncpatch.Limits{Expression: 200 * time.Millisecond, Object: 5 * time.Second}

// patient are limits that a busy machine does not exceed by being slow.
var patient = syncpatch.Limits{Expression: time.Hour, Object: time.Hour}

// ends returns the outcome of an attack under strict limits. On a busy machine, an expression that ends by itself, or another
// patch, may run out of time, but not five times in a row.
func ends(t *testing.T, pool *Pool, expression, expected string) (what, detail string) {
	t.Helper()
	for range 5 {
		what, detail = outcome(t, pool, expression)
		if what == expected || what != "late" && (what != "limit" || !strings.Contains(detail, timed)) {
			break
		}
	}
	return what, detail
}

// timed begins the message of an error about time.
const timed = "the limit of time"

// outcome returns the outcome of an attack, in the words of the file, or late: the time was over at another patch.
func outcome(t *testing.T, pool *Pool, expression string) (what, detail string) {
	t.Helper()
	began := time.Now()
	got, err := pool.Evaluate(t.Context(), attacked(expression))
	took := time.Since(began).Round(time.Millisecond).String()
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return "error", err.Error()
	}
	if invalid := syncpatch.Errors(got.Problems); len(invalid) > 0 {
		if len(invalid) == 1 && invalid[0].Field != "spec.patches[1].expression" && strings.HasPrefix(invalid[0].Detail, timed) {
			return "late", took + " " + invalid[0].Detail
		}
		if len(invalid) != 1 || invalid[0].Field != "spec.patches[1].expression" {
			t.Errorf("%s is refused with %v", expression, invalid)
		}
		if got.Status != nil {
			t.Errorf("%s is refused, and evaluated to %+v", expression, got.Status)
		}
		if strings.HasPrefix(invalid[0].Detail, "the limit of ") {
			return "limit", took + " " + invalid[0].Detail
		}
		return "refused", invalid.ToAggregate().Error()
	}
	var object map[string]any
	if err := json.Unmarshal(got.Status.Object.Raw, &object); err != nil {
		t.Errorf("%s: the object is %q: %v", expression, got.Status.Object.Raw, err)
		return "error", err.Error()
	}
	if failed := got.Status.Error; failed != nil {
		if failed.Index != 1 && strings.HasPrefix(failed.Message, timed) {
			return "late", took + " " + failed.Message
		}
		if failed.Index != 1 || failed.Path != "spec.a" || got.Failed != "spec.patches[1].expression" {
			t.Errorf("%s: the error is at %+v, %s", expression, failed, got.Failed)
		}
		if object["spec"].(map[string]any)["n"] != 3.0 {
			t.Errorf("%s: the object of a failed evaluation is %v", expression, object)
		}
		if pool.settings.Limits.Violated(failed) {
			return "limit", took + " " + failed.Message
		}
		if strings.Contains(failed.Message, "interpreter") || strings.Contains(failed.Message, "worker") {
			t.Errorf("%s: %s", expression, failed.Message)
		}
		return "failed", failed.Message
	}
	spec := object["spec"].(map[string]any)
	if spec["n"] != 4.0 || spec["z"] != "zz" {
		t.Errorf("%s: the patches around it gave %v and %v", expression, spec["n"], spec["z"])
	}
	text, err := json.Marshal(spec["a"])
	if err != nil {
		t.Fatal(err)
	}
	return "= " + string(text), took
}

// TestPayloads sends every attack through a pool of eight at once. Each ends as the file says, the next evaluation gives
// the right answer, and the workers stay within their memory.
func TestPayloads(t *testing.T) {
	if raced {
		t.Skip("the race detector has limits of memory of its own")
	}
	const atOnce = 8
	pool := New(Settings{Processes: atOnce, Limits: strict})
	defer pool.Close()
	memory := watchMemory(t)
	queue := make(chan payload)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for p := range queue {
				got, detail := ends(t, pool, p.expression, p.expected)
				if p.expected != got && (p.expected != "ends" || got == "refused" || got == "error" || got == "late") {
					t.Errorf("line %d: %s: is %q (%s), want %q", p.line, p.expression, got, detail, p.expected)
				}
				t.Logf("%d %s %s: %.120s", p.line, p.expression, got, detail)
				if next, detail := ends(t, pool, "value.slice(-1) + context.path", `= "!spec.a"`); next != `= "!spec.a"` {
					t.Errorf("line %d: after %s the next evaluation is %q (%s)", p.line, p.expression, next, detail)
				}
			}
		})
	}
	for _, p := range payloads(t) {
		queue <- p
	}
	close(queue)
	group.Wait()
	largest, sum := memory()
	t.Logf("the largest worker had %d MiB, all together at most %d MiB", largest>>20, sum>>20)
	const program = 64 << 20
	if bound := int64(headroom(pool.settings.Limits.Memory)) + program; largest > bound {
		t.Errorf("a worker had %d bytes, the bound is %d", largest, bound)
	}
}

// watchMemory samples the resident memory of this process's children. The returned function stops
// the sampling, and returns the largest values of one child and of all; they are 0 where there is no /proc.
func watchMemory(t *testing.T) func() (largest, sum int64) {
	t.Helper()
	done, stopped := make(chan struct{}), make(chan struct{})
	var largest, sum int64
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				var now int64
				for _, pid := range children() {
					size := resident(pid)
					largest, now = max(largest, size), now+size
				}
				sum = max(sum, now)
			}
		}
	}()
	return func() (int64, int64) { close(done); <-stopped; return largest, sum }
}

func children() []string {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	var all []string
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

func resident(pid string) int64 {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

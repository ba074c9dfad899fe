package worker

import (
	"bufio"
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// marker is the variable that turns the program into a worker. Its value is Limits.Memory in bytes.
const marker = "PLATFORM_SYNCPATCH_WORKER"

// The exit status of a worker that ends itself says why.
const (
	exitAbandoned  = 80
	exitMemory     = 81
	exitExpression = 82
	exitObject     = 83
)

// isWorker says that this process is a worker.
var isWorker = os.Getenv(marker) != ""

func init() {
	if !isWorker {
		return
	}
	// The goroutine that runs init is locked to a thread, which would slow evaluations down.
	go serve()
	select {}
}

// child is this process as a worker.
type child struct {
	memory int64
	spot   *spot

	mu sync.Mutex
	// began is when the evaluation began, entered when it reached the current path.
	began, entered time.Time
	limits         syncpatch.Limits
	running        bool
	timer          *time.Timer
	baseline       uint64
	sample         []metrics.Sample
	entries        atomic.Uint64
}

// watchEvery is how often a running evaluation is checked. Most end before the first check.
const watchEvery = 2 * time.Millisecond

func serve() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	memory, err := strconv.ParseInt(os.Getenv(marker), 10, 64)
	if err != nil || memory <= 0 {
		os.Exit(2)
	}
	c := &child{memory: memory, spot: openSpot(), sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	debug.SetGCPercent(400)
	debug.SetMaxStack(int(memory / 4))

	warmUp()
	runtime.GC()
	c.baseline = c.heap()
	limitMemory(memory)
	debug.SetMemoryLimit(int64(c.baseline) + memory)
	f := &frames{in: bufio.NewReaderSize(os.Stdin, 64<<10), out: os.Stdout}
	for a := (answer{}); ; {
		frame, err := appendAnswer(f.begin(), a)
		if err == nil {
			err = f.send(frame)
		}
		var text string
		if err == nil {
			text, err = f.receive()
		}
		if err != nil {
			// The program has ended or no longer needs this worker.
			os.Exit(0)
		}
		a = c.evaluate(text)
	}
}

// warmUp evaluates once, so that the first request finds everything initialized.
func warmUp() {
	if checked, _ := warmRequest().Check(); checked != nil {
		_, _ = syncpatch.Evaluate(context.Background(), checked, syncpatch.Limits{})
	}
}

func (c *child) evaluate(text string) answer {
	q, err := readQuestion(text)
	if err != nil {
		return answer{Error: "decoding the request: " + err.Error()}
	}
	c.watch(q.Limits)
	defer c.unwatch()
	ctx := syncpatch.WithProgress(context.Background(), func(patch int, path string) {
		c.spot.set(patch, path)
		c.entries.Add(1)
	})
	// The worker does not trust the pipe: it checks what it decoded, and evaluates that.
	checked, problems := q.Request.Check()
	if checked == nil {
		return answer{Error: syncpatch.Errors(problems).ToAggregate().Error()}
	}
	result, err := syncpatch.EvaluateInPlace(ctx, checked, q.Limits)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Result: result}
}

func (c *child) watch(limits syncpatch.Limits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.began, c.entered, c.limits, c.running = now, now, limits, true
	entries := c.entries.Load()
	c.timer = time.AfterFunc(watchEvery, func() { c.look(entries) })
}

func (c *child) unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	c.timer.Stop()
}

// look ends the process if the evaluation has spent too long in one operation or uses too much memory, or if nobody
// waits for it any more.
func (c *child) look(entries uint64) {
	if status := c.verdict(entries); status != 0 {
		os.Exit(status)
	}
}

// verdict returns the status to exit with. If it is 0, verdict has scheduled the next look.
func (c *child) verdict(entries uint64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return 0
	}
	now := time.Now()
	at := c.entries.Load()
	if at != entries {
		c.entered = now
	}
	// late is the time that the interpreter has to react to an interrupt.
	const late = 50 * time.Millisecond
	switch {
	case abandoned():
		return exitAbandoned
	case now.Sub(c.began) > c.limits.Object+late:
		return exitObject
	case now.Sub(c.entered) > c.limits.Expression+late:
		return exitExpression
	case c.exceeds() && c.exceedsAfterCollection():
		return exitMemory
	}
	c.timer = time.AfterFunc(watchEvery, func() { c.look(at) })
	return 0
}

func (c *child) exceeds() bool { return c.heap() > c.baseline+uint64(c.memory) }

func (c *child) exceedsAfterCollection() bool {
	runtime.GC()
	return c.exceeds()
}

func (c *child) heap() uint64 {
	metrics.Read(c.sample)
	return c.sample[0].Value.Uint64()
}

// warmRequest uses what most requests use.
func warmRequest() syncpatch.Request {
	return syncpatch.Request{
		Object:  map[string]any{"spec": map[string]any{"items": []any{"a"}}},
		Patches: []model.SyncPatch{{Path: "spec.items[*]", Expression: "`${context.tenant.name}-${value.replace(/a/g, 'b')}`"}},
	}
}

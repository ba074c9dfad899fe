package worker

import (
	"bufio"
	"context"
	"fmt"
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
	"management.platform.sh/shared/syncpatch/expression"
)

// marker is the variable that turns the program into a worker. Its value is Limits.Memory in bytes.
const marker = "PLATFORM_SYNCPATCH_WORKER"

// The exit status of a worker that ends itself gives the reason.
const (
	exitAbandoned  = 80
	exitMemory     = 81
	exitExpression = 82
	exitObject     = 83
)

// isWorker reports whether this process is a worker.
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
	// data reports whether the time of an expression does not count now.
	data atomic.Bool
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
	if err := confine(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	debug.SetMemoryLimit(int64(c.baseline) + memory)
	f := &frames{in: bufio.NewReaderSize(os.Stdin, 64<<10), out: os.Stdout}
	for a := (answer{}); ; {
		frame, err := appendAnswer(f.begin(), a)
		if err == nil {
			err = f.send(frame)
		}
		var text []byte
		if err == nil {
			text, err = f.receive()
		}
		if err != nil {
			// The program has ended or no longer needs this worker.
			os.Exit(0)
		}
		a = c.serve(f, text)
	}
}

// warmUp evaluates once, so that everything is initialized before the first request.
func warmUp() {
	_, _ = syncpatch.EvaluateSpec(context.Background(), warmSpec(), syncpatch.Limits{}, nil)
}

// serve answers one question, within its limits.
func (c *child) serve(f *frames, frame []byte) answer {
	c.enter(syncpatch.Place{Reading: "spec", Data: true})
	q, err := readQuestion(frame)
	if err != nil {
		return answer{Error: "decoding the request: " + err.Error()}
	}
	c.watch(q.Limits)
	defer c.unwatch()
	ctx := syncpatch.WithProgress(context.Background(), c.enter)
	if q.Read {
		c.enter(syncpatch.Place{Reading: "<nil>", Data: true})
		reading := readConfiguration(ctx, q.Configuration)
		return answer{Problems: problemsOf(reading.Problems), Read: reading.Read, Resources: reading.Resources}
	}
	if q.Check {
		_, found := syncpatch.CheckSpec(ctx, q.Spec)
		return answer{Problems: problemsOf(found)}
	}
	// The worker does not trust the pipe: it checks and evaluates the decoded text.
	outcome, err := syncpatch.EvaluateSpec(ctx, q.Spec, q.Limits, func(outcome syncpatch.Outcome) {
		c.enter(syncpatch.Place{Reading: "spec", Data: true})
		a := answerOf(outcome)
		a.Begun = true
		frame, err := appendAnswer(f.begin(), a)
		if err == nil {
			err = f.send(frame)
		}
		if err != nil {
			os.Exit(0)
		}
	})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answerOf(outcome)
}

// enter records the place that the worker has reached.
func (c *child) enter(at syncpatch.Place) {
	c.spot.set(at)
	c.data.Store(at.Data)
	c.entries.Add(1)
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

// look ends the process if the evaluation has spent too long in one operation, uses too much memory, or has no reader
// any more.
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
	current := c.entries.Load()
	if current != entries {
		c.entered = now
	}
	// late is the time that the interpreter has to react to an interrupt.
	const late = 50 * time.Millisecond
	switch {
	case abandoned():
		return exitAbandoned
	case now.Sub(c.began) > c.limits.Object+late:
		return exitObject
	case !c.data.Load() && now.Sub(c.entered) > c.limits.Expression+late:
		return exitExpression
	case c.exceeds() && c.exceedsAfterCollection():
		return exitMemory
	}
	c.timer = time.AfterFunc(watchEvery, func() { c.look(current) })
	return 0
}

func (c *child) exceeds() bool { return c.heap() > c.baseline+uint64(c.memory) }

// exceedsAfterCollection reports whether the memory is exceeded without the caches for later requests, which it drops
// first.
func (c *child) exceedsAfterCollection() bool {
	expression.Forget()
	runtime.GC()
	return c.exceeds()
}

func (c *child) heap() uint64 {
	metrics.Read(c.sample)
	return c.sample[0].Value.Uint64()
}

// warmSpec uses the features that most requests use.
func warmSpec() *model.SyncPatchEvaluationSpec {
	return &model.SyncPatchEvaluationSpec{
		Object:  &model.JSON{Raw: []byte(`{"spec": {"items": ["a"]}}`)},
		Patches: []model.SyncPatch{{Path: "spec.items[*]", Expression: "`${context.tenant.name}-${value.replace(/a/g, 'b')}`"}},
	}
}

// Package worker evaluates sync patches in processes of their own, so that no expression can stall, kill or exhaust the
// program: the interpreter can interrupt a loop, but not a single operation that runs forever or allocates without end.
// A worker is a second process of the same program, started with one variable in its environment. The init function of
// this package sees the variable and never returns, so it works where the platform provides main, too. Workers have no
// setting, secret or open file of the program. A worker serves evaluations until one exceeds a limit, and ends when the
// program ends. Source: Spec 2.8; ADR-0014.
package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/expression"
)

// Settings configure a Pool. The zero value is usable.
type Settings struct {
	// Limits bound each evaluation. Source: ADR-0014.
	Limits syncpatch.Limits
	// Processes is the greatest number of workers; further evaluations wait. 0 means one per CPU.
	Processes int
	// InProcess evaluates without workers. Then Limits.Memory is not enforced, nor is any limit within a single operation
	// of the interpreter. Platforms other than Unix always evaluate this way.
	InProcess bool
	// Grace is how long after Limits.Object a worker that does not answer is killed. 0 means 250 ms.
	Grace time.Duration
	// StartTime is how long a worker may take to start. 0 means 10 s.
	StartTime time.Duration
}

// Pool holds workers. It is safe for concurrent use.
type Pool struct {
	settings Settings
	// slots bounds the number of concurrent evaluations.
	slots chan struct{}

	mu     sync.Mutex
	idle   []*process
	closed bool
	// warming counts the workers that are started in advance.
	warming sync.WaitGroup
}

// ErrClosed is the answer of a pool after Close.
var ErrClosed = errors.New("the pool of workers is closed")

// New returns a pool. It starts the first worker at once, and others when they are needed.
func New(settings Settings) *Pool {
	if isWorker {
		panic("worker: a worker cannot start workers")
	}
	settings.Limits = settings.Limits.WithDefaults()
	if settings.Processes <= 0 {
		settings.Processes = runtime.GOMAXPROCS(0)
	}
	if settings.Grace <= 0 {
		settings.Grace = 250 * time.Millisecond
	}
	if settings.StartTime <= 0 {
		settings.StartTime = 10 * time.Second
	}
	settings.InProcess = settings.InProcess || !supported
	p := &Pool{settings: settings, slots: make(chan struct{}, settings.Processes)}
	p.warm()
	return p
}

// warm starts a worker in the background for the next evaluation. If that fails, the evaluation reports it.
func (p *Pool) warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settings.InProcess || p.closed {
		return
	}
	p.warming.Go(func() {
		if w, err := start(&p.settings); err == nil {
			p.release(w)
		}
	})
}

// Evaluate is syncpatch.Evaluate in a worker. If an expression exceeds a limit, the result has an Error that names the
// limit, the patch and the path. An error of Evaluate itself is that of ctx or ErrClosed, or says that no
// worker could be started.
func (p *Pool) Evaluate(ctx context.Context, checked *syncpatch.Checked) (*syncpatch.Result, error) {
	if p.settings.InProcess {
		return syncpatch.Evaluate(ctx, checked, p.settings.Limits)
	}
	request := checked.Request()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	// If both were ready, the choice was random. A request that has ended starts no worker.
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for attempt := 1; ; attempt++ {
		w, err := p.acquire()
		if err != nil {
			return nil, err
		}
		result, err := w.evaluate(ctx, request)
		if err == nil && !p.settings.Limits.Violated(result.Error) {
			p.release(w)
			return result, nil
		}
		w.kill()
		var ended *endedError
		switch {
		case errors.As(err, &ended) && ended.patch < 0 && attempt == 1:
			// The worker had ended while it was idle.
			continue
		case errors.As(err, &ended) && ended.patch >= 0:
			result, err = lost(request, p.settings.Limits, ended), nil
		}
		p.warm()
		return result, err
	}
}

// acquire takes an idle worker or starts one.
func (p *Pool) acquire() (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if last := len(p.idle) - 1; last >= 0 {
		w := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return w, nil
	}
	p.mu.Unlock()
	return start(&p.settings)
}

// release keeps a worker for the next evaluation.
func (p *Pool) release(w *process) {
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < p.settings.Processes
	if keep {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if !keep {
		w.kill()
	}
}

// Close ends idle workers at once, and busy workers after their evaluations.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range idle {
		w.kill()
	}
	p.warming.Wait()
}

// endedError says that a worker ended during an evaluation.
type endedError struct {
	limit expression.Limit
	// patch and path are where the worker was. A patch of -1 means that it had not reached the first patch.
	patch int
	path  string
}

func (e *endedError) Error() string {
	return fmt.Sprintf("the worker ended at patch %d: %s", e.patch, e.limit)
}

// lost returns the result of an evaluation whose worker ended.
func lost(request *syncpatch.Request, limits syncpatch.Limits, ended *endedError) *syncpatch.Result {
	message := "the worker ended unexpectedly"
	if ended.limit != "" {
		message = limits.Exceeded(ended.limit).Error()
	}
	at := ended.patch
	result := &syncpatch.Result{
		Object: request.Object,
		Error:  &model.SyncPatchError{Index: int32(at), Path: ended.path, Message: message},
	}
	for i := range request.Patches {
		trace := model.SyncPatchTrace{Index: int32(i), Path: request.Patches[i].Path, Outcome: model.PatchSkipped}
		switch {
		case i == at:
			trace.Outcome, trace.Reason = model.PatchFailed, message
		case i < at:
			trace.Reason = fmt.Sprintf("the result of the patch is lost, because the evaluation ended at patch %d", at)
		default:
			trace.Reason = fmt.Sprintf("patch %d failed", at)
		}
		result.Patches = append(result.Patches, trace)
	}
	return result
}

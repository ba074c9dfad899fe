// Package worker evaluates sync patches in processes of their own, so that no expression can stall, kill or exhaust the
// program: the interpreter can interrupt a loop, but not a single operation that runs forever or allocates without end.
// A worker is a second process of the same program, started with one variable in its environment. The init function of
// this package reads the variable and never returns in a worker, so it also works where the platform provides main.
// Workers have no setting, secret or open file of the program. A worker serves evaluations until one exceeds a limit,
// and ends when the program ends. Source: Spec 2.8; ADR-0014.
package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/expression"
)

// Settings configure a Pool. The zero value is usable.
type Settings struct {
	// Limits bound each evaluation. Source: ADR-0014.
	Limits syncpatch.Limits
	// Processes is the maximum number of workers; further evaluations wait. 0 means one per CPU.
	Processes int
	// InProcess evaluates without workers. Limits.Memory is then not enforced, nor is any limit within a single
	// operation of the interpreter. Platforms other than Unix always evaluate this way.
	InProcess bool
	// Grace is the time after Limits.Object until a worker that does not answer is killed. 0 means 250 ms.
	Grace time.Duration
	// StartTime is the maximum time for the start of a worker. 0 means 10 s.
	StartTime time.Duration
}

// Pool has the workers. It is safe for concurrent use.
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

// ErrClosed is the error of a pool after Close.
var ErrClosed = errors.New("the pool of workers is closed")

// New returns a pool. It starts the first worker at once, and further workers when they are needed.
func New(settings Settings) *Pool {
	if isWorker {
		panic("worker: a worker cannot start workers")
	}
	settings.Limits = settings.Limits.WithDefaults()
	if settings.Processes <= 0 {
		settings.Processes = runtime.NumCPU()
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
		if w, err := start(context.Background(), &p.settings); err == nil {
			p.release(w)
		}
	})
}

// Evaluate runs syncpatch.EvaluateSpec in a worker. An evaluation beyond a bound that needs no parsing is refused
// before. If the worker exceeds a limit or ends, the Outcome names the place: while a text is parsed, its field is a
// problem; while a patch is evaluated, the status has an error that names the patch and the path. Evaluate itself
// returns the error of ctx, ErrClosed, or a fault of the platform: no worker could be started.
func (p *Pool) Evaluate(ctx context.Context, spec *model.SyncPatchEvaluationSpec) (syncpatch.Outcome, error) {
	if found := syncpatch.Scan(spec); len(found) > 0 {
		return syncpatch.Outcome{Problems: found}, nil
	}
	if p.settings.InProcess {
		return syncpatch.EvaluateSpec(ctx, spec, p.settings.Limits, nil)
	}
	var begun syncpatch.Outcome
	a, err := p.ask(ctx, question{Spec: spec, Limits: p.settings.Limits}, func(a answer) { begun = a.outcome() })
	var ended *endedError
	switch {
	case errors.As(err, &ended) && ended.at.Reading != "":
		return syncpatch.Outcome{Problems: []syncpatch.Problem{ended.problem(p.settings.Limits)}}, nil
	case errors.As(err, &ended):
		return endedOutcome(spec, begun, p.settings.Limits, ended), nil
	case err != nil:
		return syncpatch.Outcome{}, err
	}
	outcome := a.outcome()
	if outcome.Status != nil && outcome.Status.Error != nil {
		outcome.Status.Object = spec.Object
	}
	return outcome, nil
}

// Check is Evaluate without the evaluation: it returns the errors and warnings.
func (p *Pool) Check(ctx context.Context, spec *model.SyncPatchEvaluationSpec) ([]syncpatch.Problem, error) {
	if found := syncpatch.Scan(spec); len(found) > 0 {
		return found, nil
	}
	if p.settings.InProcess {
		_, found := syncpatch.CheckSpec(ctx, spec)
		return found, nil
	}
	a, err := p.ask(ctx, question{Spec: spec, Check: true, Limits: p.settings.Limits}, func(answer) {})
	var ended *endedError
	if errors.As(err, &ended) {
		return []syncpatch.Problem{ended.problem(p.settings.Limits)}, nil
	}
	return foundOf(a.Problems), err
}

// Reading is the result of reading a configuration.
type Reading struct {
	// Problems are the errors and warnings, as syncpatch.ReadConfiguration returns them.
	Problems []syncpatch.Problem
	// Read is false if the text is not YAML.
	Read bool
	// Resources are the resources that the configuration mentions.
	Resources []string
}

// ReadConfiguration is syncpatch.ReadConfiguration in a worker. If the worker exceeds a limit or ends, the field that
// it was parsing is a problem. It returns the errors of Evaluate.
func (p *Pool) ReadConfiguration(ctx context.Context, text []byte) (Reading, error) {
	if p.settings.InProcess {
		return readConfiguration(ctx, text), nil
	}
	a, err := p.ask(ctx, question{Configuration: text, Read: true, Limits: p.settings.Limits}, func(answer) {})
	var ended *endedError
	switch {
	case errors.As(err, &ended):
		return Reading{Problems: []syncpatch.Problem{ended.problem(p.settings.Limits)}}, nil
	case err != nil:
		return Reading{}, err
	}
	return Reading{Problems: foundOf(a.Problems), Read: a.Read, Resources: a.Resources}, nil
}

func readConfiguration(ctx context.Context, text []byte) Reading {
	configuration, found := syncpatch.ReadConfiguration(ctx, nil, text)
	reading := Reading{Problems: found, Read: configuration != nil}
	if configuration != nil {
		reading.Resources = configuration.Resources()
	}
	return reading
}

// ask sends a question to a worker, after the callers that came before, and returns its answer. An *endedError means
// that the worker had begun.
func (p *Pool) ask(ctx context.Context, q question, begun func(answer)) (answer, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	// If both channels were ready, the choice was random. A request that has ended starts no worker.
	if ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	for attempt := 1; ; attempt++ {
		w, err := p.acquire(ctx)
		if err != nil {
			return answer{}, err
		}
		a, err := w.ask(ctx, q, begun)
		if err == nil && (a.Status == nil || !p.settings.Limits.Violated(a.Status.Error)) {
			p.release(w)
			return a, nil
		}
		w.kill()
		var ended *endedError
		if errors.As(err, &ended) && !ended.working {
			// The worker had ended while it was idle.
			if attempt == 1 {
				continue
			}
			err = fmt.Errorf("evaluating in a worker: two workers ended before they began, the second one %s: %s", ended.reason(), ended.log)
		}
		p.warm()
		return a, err
	}
}

// acquire takes an idle worker or starts one.
func (p *Pool) acquire(ctx context.Context) (*process, error) {
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
	return start(ctx, &p.settings)
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

// endedError means that a worker ended during an evaluation.
type endedError struct {
	// limit is the limit that the worker exceeded. If it is empty, how says how the worker ended, and log is its
	// output.
	limit expression.Limit
	how   string
	log   string
	// at is the place of the worker. If working is false, it had not begun.
	at      syncpatch.Place
	working bool
}

func (e *endedError) Error() string { return "the worker ended " + e.reason() }

func (e *endedError) reason() string {
	if e.limit != "" {
		return "at the limit of " + string(e.limit)
	}
	return e.how
}

// message is the reason for a user why the worker ended.
func (e *endedError) message(limits syncpatch.Limits, what string) string {
	if e.limit != "" {
		return limits.Exceeded(e.limit).Error()
	}
	return "the worker that " + what + " ended " + e.how
}

// problem returns the problem of a field at which the worker ended.
func (e *endedError) problem(limits syncpatch.Limits) syncpatch.Problem {
	return syncpatch.Problem{Error: &field.Error{
		Type: field.ErrorTypeInvalid, Field: e.at.Reading, BadValue: field.OmitValueType{},
		Detail: e.message(limits, "parsed this") + " while it is read",
	}}
}

// endedOutcome returns the outcome of an evaluation whose worker ended.
func endedOutcome(spec *model.SyncPatchEvaluationSpec, begun syncpatch.Outcome, limits syncpatch.Limits, ended *endedError) syncpatch.Outcome {
	message := ended.message(limits, "evaluated the patch")
	number := ended.at.Patch
	if 0 <= number && number < len(begun.Fields) {
		begun.Failed = begun.Fields[number]
	}
	status := &model.SyncPatchEvaluationStatus{
		Object: spec.Object, Error: &model.SyncPatchError{Index: int32(number), Path: ended.at.Path, Message: message},
		Warnings: syncpatch.Warnings(begun.Problems),
	}
	for i, path := range begun.Paths {
		trace := model.SyncPatchTrace{Index: int32(i), Path: path, Outcome: model.PatchSkipped}
		switch {
		case i == number:
			trace.Outcome, trace.Reason = model.PatchFailed, message
		case i < number:
			trace.Reason = fmt.Sprintf("the result of the patch is lost, because the evaluation ended at patch %d", number)
		default:
			trace.Reason = fmt.Sprintf("patch %d failed", number)
		}
		status.Patches = append(status.Patches, trace)
	}
	begun.Status = status
	return begun
}

package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/secret"
)

// Limits of the spool. Source: ADR-0016.
const (
	// MaxSpoolEvents and MaxSpoolBytes bound what waits for one sink; what comes on top is lost, or refused.
	MaxSpoolEvents = 10_000
	MaxSpoolBytes  = 64 << 20
	// WaitAtMost is how long a request waits for its event to be kept, where it does.
	WaitAtMost = time.Second
	// maxBatch and maxBatchBytes bound what a sink is given at once.
	maxBatch      = 500
	maxBatchBytes = 4 << 20
	// writeWithin bounds one attempt of a sink.
	writeWithin = 5 * time.Second
	// firstPause and lastPause are those between attempts of a sink that fails.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Sink keeps records. One goroutine uses it. Opening costs nothing: what it needs it does at the first Write.
type Sink interface {
	// Write keeps all records, in order, or fails. Those of a failed attempt may come again, and a sink may then hold
	// them twice; AuditID and Stage tell. With durable it returns when they survive the end of the machine, as far as
	// the sink can say.
	Write(ctx context.Context, records []*Record, durable bool) error
	// Close ends the use of the sink.
	Close() error
}

// Opener makes a sink of a configuration, or nil where the configuration asks for none of its kind. An error means
// that the settings are wrong, and quotes no secret.
type Opener struct {
	// Name is the kind of the sink: its metric label.
	Name string
	Open func(*model.ConfigAudit) (Sink, error)
}

// Metrics counts what becomes of events. Implementations are safe for concurrent use.
type Metrics interface {
	// Audited counts an event by what became of it at a sink: recorded, lost, or refused with its request.
	Audited(sink string, level Level, outcome string)
	// Spool says how many events wait for a sink.
	Spool(sink string, depth int)
}

// Options are how a Trail works.
type Options struct {
	// Config is the platform configuration of this moment.
	Config func() *model.ConfigStatus
	// Openers are the kinds of sinks that this program has.
	Openers []Opener
	// Log takes what goes wrong with sinks.
	Log *slog.Logger
	// Metrics counts. nil: nobody does.
	Metrics Metrics
	// Flush makes every event wait until it is kept, up to WaitAtMost: for processes that are frozen between requests.
	Flush bool
}

// Trail is where events go: it holds the policy and sinks of the live configuration, and a spool before each sink. It
// is safe for concurrent use.
type Trail struct {
	options Options
	now     atomic.Pointer[version]

	mu       sync.Mutex
	closed   bool
	draining sync.WaitGroup
}

// version is one state of the configuration.
type version struct {
	config *model.ConfigAudit
	policy *Policy
	spools []*spool
	// err is why events cannot be recorded under this configuration.
	err error
}

// NewTrail makes a trail. Nothing is opened before an event needs it.
func NewTrail(options Options) *Trail {
	if options.Metrics == nil {
		options.Metrics = uncounted{}
	}
	return &Trail{options: options}
}

type uncounted struct{}

func (uncounted) Audited(string, Level, string) {}
func (uncounted) Spool(string, int)             {}

// Enabled tells whether requests are recorded at all at this moment.
func (t *Trail) Enabled() bool { return len(t.version().policy.rules) > 0 }

// Choose says how much of a request is recorded.
func (t *Trail) Choose(asked Asked) Choice { return t.version().policy.Choose(asked) }

// ErrNotRecorded says that an event could not be kept in time.
var ErrNotRecorded = errors.New("the audit event could not be recorded")

// Chosen is an event, and what the policy says of it.
type Chosen struct {
	Choice Choice
	Event  *Event
}

// Record takes events. Where a choice says Fail it returns when every sink has kept its event, or an error that is
// ErrNotRecorded after WaitAtMost, however many they are. Else it returns nil at once, and an event that the spool has
// no room for is counted as lost. No text of hidden is recorded.
func (t *Trail) Record(events []Chosen, hidden ...secret.String) error {
	v := t.version()
	var refused error
	var entries []waiting
	for _, one := range events {
		record, err := one.Event.record(hidden)
		if err == nil {
			err = v.err
		}
		if err == nil && len(v.spools) == 0 {
			err = errors.New("there is nowhere to record to")
		}
		if err != nil {
			t.options.Metrics.Audited("none", one.Choice.Level, outcome(one.Choice))
			refused = cmp.Or(refused, refusal(one.Choice, err))
			continue
		}
		waits := one.Choice.Fail || t.options.Flush
		for _, s := range v.spools {
			if e := s.put(record, one.Choice, waits); waits {
				entries = append(entries, waiting{s, e})
			}
		}
	}
	if len(entries) == 0 {
		return refused
	}
	timer := time.NewTimer(WaitAtMost)
	defer timer.Stop()
	for _, one := range entries {
		err := error(nil)
		select {
		case <-one.entry.done:
			err = one.entry.err
		case <-timer.C:
			// Those behind it are not waited for either.
			timer.Reset(0)
			err = one.spool.giveUp(one.entry)
		}
		refused = cmp.Or(refused, refusal(one.entry.choice, err))
	}
	return refused
}

// waiting is an entry that somebody waits for, and its spool.
type waiting struct {
	spool *spool
	entry *entry
}

func outcome(choice Choice) string {
	if choice.Fail {
		return "refused"
	}
	return "lost"
}

func refusal(choice Choice, err error) error {
	if err == nil || !choice.Fail {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotRecorded, err)
}

// version returns the state of the live configuration, and makes it where the configuration is another one.
func (t *Trail) version() *version {
	config := t.options.Config().Audit
	if v := t.now.Load(); v != nil && v.config == config {
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.now.Load()
	if before != nil && (before.config == config || t.closed) {
		return before
	}
	v := &version{config: config, policy: NewPolicy(config)}
	switch {
	case t.closed:
		v.err = errClosed
	case before != nil && sameSinks(before.config, config):
		v.spools, v.err = before.spools, before.err
	default:
		v.spools, v.err = t.open(config)
		if before != nil {
			for _, s := range before.spools {
				t.draining.Go(func() { s.drain(writeWithin) })
			}
		}
	}
	t.now.Store(v)
	return v
}

// sameSinks tells whether two configurations record to the same places.
func sameSinks(a, b *model.ConfigAudit) bool {
	if a == nil || b == nil || !a.Enabled || !b.Enabled {
		return false
	}
	return a.Path == b.Path && a.MaxAgeDays == b.MaxAgeDays && a.MaxBackups == b.MaxBackups && a.MaxSizeMegabytes == b.MaxSizeMegabytes &&
		a.Compress == b.Compress && a.DataStoreEndpoint == b.DataStoreEndpoint && a.DataStoreTTLHours == b.DataStoreTTLHours
}

func (t *Trail) open(config *model.ConfigAudit) ([]*spool, error) {
	if config == nil || !config.Enabled {
		return nil, nil
	}
	var spools []*spool
	var problems error
	places := 0
	for _, opener := range t.options.Openers {
		sink, err := opener.Open(config)
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("%s: %w", opener.Name, err))
		} else if sink != nil {
			spools = append(spools, newSpool(opener.Name, sink, t.options))
			places++
		}
	}
	asked := 0
	for _, given := range []bool{config.Path != "", config.DataStoreEndpoint != ""} {
		if given {
			asked++
		}
	}
	if problems == nil && places < asked {
		problems = errors.New("this program has no sink for audit.path or audit.dataStoreEndpoint as they are")
	}
	if problems != nil {
		t.options.Log.Error("audit events cannot be recorded", "error", problems.Error())
	}
	return spools, problems
}

var errClosed = errors.New("the process ends")

// Close lets the sinks keep what waits, until ctx ends, and closes them. What remains is counted as lost. Events that
// come later are not recorded.
func (t *Trail) Close(ctx context.Context) {
	t.mu.Lock()
	t.closed = true
	v := t.now.Load()
	if v == nil {
		v = &version{policy: &Policy{}}
	}
	t.now.Store(&version{config: v.config, policy: v.policy, err: errClosed})
	t.mu.Unlock()
	within := writeWithin
	if end, bounded := ctx.Deadline(); bounded {
		within = time.Until(end)
	}
	for _, s := range v.spools {
		t.draining.Go(func() { s.drain(within) })
	}
	t.draining.Wait()
}

// entry is a record that waits for a sink.
type entry struct {
	record *Record
	choice Choice
	// done is closed when its fate is known, where somebody waits for it. err is the fate.
	done chan struct{}
	err  error
	// settled tells that it is; given up ones leave the spool without being counted again.
	settled bool
}

// spool is the queue of one sink and the goroutine that empties it.
type spool struct {
	name    string
	sink    Sink
	log     *slog.Logger
	metrics Metrics

	mu      sync.Mutex
	waiting []*entry
	bytes   int
	ending  bool
	// full tells that the last record found no room, which was logged.
	full bool
	// wake is told of new entries, quit of the end; gone is closed when the goroutine has ended.
	wake chan struct{}
	quit chan struct{}
	gone chan struct{}
}

func newSpool(name string, sink Sink, options Options) *spool {
	s := &spool{
		name: name, sink: sink, log: options.Log, metrics: options.Metrics,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), gone: make(chan struct{}),
	}
	go s.run()
	return s
}

var errFull = errors.New("the spool is full")

// put adds a record where there is room.
func (s *spool) put(record *Record, choice Choice, waits bool) *entry {
	e := &entry{record: record, choice: choice}
	if waits {
		e.done = make(chan struct{})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ending:
		s.settle(e, errClosed)
	case len(s.waiting) >= MaxSpoolEvents || s.bytes+len(record.JSON) > MaxSpoolBytes:
		s.settle(e, errFull)
		if !s.full {
			s.full = true
			s.log.Error("audit events are lost or refused", "sink", s.name, "error", errFull.Error())
		}
	default:
		s.full = false
		s.waiting = append(s.waiting, e)
		s.bytes += len(record.JSON)
		s.metrics.Spool(s.name, len(s.waiting))
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return e
}

// settle tells whoever waits, and counts. The lock is held.
func (s *spool) settle(e *entry, err error) {
	if e.settled {
		return
	}
	e.settled, e.err = true, err
	what := "recorded"
	if err != nil {
		what = outcome(e.choice)
	}
	s.metrics.Audited(s.name, e.choice.Level, what)
	if e.done != nil {
		close(e.done)
	}
}

// giveUp ends the wait for an entry and returns its fate as far as it is known. One that refuses its request leaves the
// spool; others stay for later, and are counted when their fate is known.
func (s *spool) giveUp(e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.settled && e.choice.Fail {
		s.settle(e, fmt.Errorf("after %s: %w", WaitAtMost, context.DeadlineExceeded))
	}
	return e.err
}

// run empties the spool until it is told to end.
func (s *spool) run() {
	defer close(s.gone)
	pause := firstPause
	for {
		batch, durable := s.next()
		if len(batch) == 0 {
			select {
			case <-s.wake:
				continue
			case <-s.quit:
				return
			}
		}
		err := s.write(batch, durable)
		s.taken(batch, err)
		if err == nil {
			pause = firstPause
			continue
		}
		s.log.Error("audit events could not be recorded", "sink", s.name, "events", len(batch), "error", err.Error())
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.quit:
			timer.Stop()
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// next are the records to write next. Entries that were given up go.
func (s *spool) next() (batch []*entry, durable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.waiting[:0]
	for _, e := range s.waiting {
		if e.settled {
			s.bytes -= len(e.record.JSON)
			continue
		}
		kept = append(kept, e)
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
	size := 0
	for _, e := range s.waiting {
		if size += len(e.record.JSON); len(batch) == maxBatch || size > maxBatchBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, e)
		durable = durable || e.choice.Fail
	}
	s.metrics.Spool(s.name, len(s.waiting))
	return batch, durable
}

func (s *spool) write(batch []*entry, durable bool) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	records := make([]*Record, len(batch))
	for i, e := range batch {
		records[i] = e.record
	}
	return s.sink.Write(ctx, records, durable)
}

// taken notes what became of a batch. On failure those whose requests it refuses are told at once, and the rest waits
// for the next attempt.
func (s *spool) taken(batch []*entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range batch {
		if err == nil || e.choice.Fail {
			s.settle(e, err)
		}
	}
}

// drain empties the spool within a time and closes the sink.
func (s *spool) drain(within time.Duration) {
	s.mu.Lock()
	if s.ending {
		s.mu.Unlock()
		return
	}
	s.ending = true
	s.mu.Unlock()
	end := time.NewTimer(within)
	defer end.Stop()
	look := time.NewTicker(firstPause)
	defer look.Stop()
	for empty := false; !empty; {
		s.mu.Lock()
		empty = true
		for _, e := range s.waiting {
			empty = empty && e.settled
		}
		s.mu.Unlock()
		if empty {
			break
		}
		select {
		case <-look.C:
		case <-end.C:
			empty = true
		}
	}
	close(s.quit)
	<-s.gone
	s.mu.Lock()
	lost := 0
	for _, e := range s.waiting {
		if !e.settled {
			lost++
			s.settle(e, errClosed)
		}
	}
	s.waiting = nil
	s.metrics.Spool(s.name, 0)
	s.mu.Unlock()
	if lost > 0 {
		s.log.Error("audit events are lost", "sink", s.name, "events", lost)
	}
	if err := s.sink.Close(); err != nil {
		s.log.Error("closing an audit sink", "sink", s.name, "error", err.Error())
	}
}

package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// Limits of the spool. Source: ADR-0016.
const (
	// MaxSpoolEvents and MaxSpoolBytes bound the events that wait for one sink. Further events are lost or refused.
	MaxSpoolEvents = 10_000
	MaxSpoolBytes  = 64 << 20
	// WaitAtMost is the longest time that a request waits until its event is stored.
	WaitAtMost = time.Second
	// maxBatch and maxBatchBytes bound one batch for a sink.
	maxBatch      = 500
	maxBatchBytes = 4 << 20
	// writeWithin bounds one attempt of a sink.
	writeWithin = 5 * time.Second
	// firstPause and lastPause are the shortest and longest pause between attempts of a failing sink.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Sink stores records. One goroutine uses it. Opening is cheap: a sink connects or creates files at the first Write.
type Sink interface {
	// Write stores all records in order, or fails. Records of a failed attempt may be written again, and a sink may then
	// contain them twice; AuditID and Stage identify them. With durable, Write returns when the records survive a crash
	// of the machine, as far as the sink can tell.
	Write(ctx context.Context, records []*Record, durable bool) error
	// Close ends the use of the sink.
	Close() error
}

// Opener creates a sink from a configuration, or nil if the configuration does not use this kind of sink. An error
// means that the settings are wrong, and contains no secret.
type Opener struct {
	// Name is the kind of the sink: its metric label.
	Name string
	// Field is the field of the configuration that names the sink: path or dataStoreEndpoint.
	Field string
	Open  func(*model.ConfigAudit) (Sink, error)
	// Read creates a reader of the stored events, or nil if the configuration does not use this kind of sink. A nil
	// Read means that the sink cannot be read.
	Read func(*model.ConfigAudit) (Reader, error)
}

// Metrics counts events by outcome. Implementations are safe for concurrent use.
type Metrics interface {
	// Audited counts an event by its outcome at a sink: recorded, lost, or refused together with its request.
	Audited(sink string, level Level, outcome string)
	// Spool sets the number of events that wait for a sink.
	Spool(sink string, depth int)
}

// Options are how a Trail works.
type Options struct {
	// Config returns the current platform configuration.
	Config func() *model.ConfigStatus
	// Openers are the kinds of sinks that this program has.
	Openers []Opener
	// Log receives the errors of sinks.
	Log *slog.Logger
	// Metrics counts events. Nil means that they are not counted.
	Metrics Metrics
	// Flush makes every request wait until its event is stored, up to WaitAtMost. It is for processes that are frozen
	// between requests.
	Flush bool
	// Brief is for a process that adds events to an audit that other processes keep: its end does not end the audit.
	Brief bool
}

// Trail records events. It holds the policy and the sinks of the current configuration, and a spool in front of each
// sink. It is safe for concurrent use.
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
	// err is the reason why a sink of this configuration cannot be opened, so that it loses its events. The other sinks
	// get them.
	err error
}

// NewTrail returns a trail. Sinks are opened when the first event needs them.
func NewTrail(options Options) *Trail {
	if options.Metrics == nil {
		options.Metrics = uncounted{}
	}
	return &Trail{options: options}
}

type uncounted struct{}

func (uncounted) Audited(string, Level, string) {}
func (uncounted) Spool(string, int)             {}

// Enabled reports whether requests are currently recorded at all.
func (t *Trail) Enabled() bool { return len(t.version().policy.rules) > 0 }

// Evaluate returns the decision of the current policy about a request.
func (t *Trail) Evaluate(request Attributes) Decision { return t.version().policy.Evaluate(request) }

// ErrNotRecorded means that an event could not be stored in time.
var ErrNotRecorded = errors.New("the audit event could not be recorded")

// Entry is an event to record, and the decision of the policy about it.
type Entry struct {
	Decision Decision
	Event    *Event
}

// Record records events. If a decision has Fail, Record returns when every sink has stored its event, or with
// ErrNotRecorded after WaitAtMost, however many events there are. Otherwise it returns nil immediately, and an event
// for which the spool has no room is counted as lost. If a sink of the configuration cannot be opened, an event is
// counted as lost for it, or refused with ErrNotRecorded; the other sinks get it. None of the hidden texts is recorded.
func (t *Trail) Record(events []Entry, hidden ...secret.String) error {
	v := t.version()
	return t.record(v, v.spools, events, hidden)
}

// record records events in some of the spools of a version.
func (t *Trail) record(v *version, spools []*spool, events []Entry, hidden []secret.String) error {
	if v.err == nil && (v.config == nil || !v.config.Enabled) {
		// A decision without an audit belongs to a change of the configuration alone.
		events = slices.DeleteFunc(slices.Clone(events), func(e Entry) bool { return !e.Decision.Fail })
	}
	var refused error
	var pending []pendingRecord
	for _, entry := range events {
		record, err := entry.Event.record(hidden)
		unwritable := err != nil
		if !unwritable {
			err = v.err
		}
		if err == nil && len(spools) == 0 {
			err = errors.New("no sink is configured")
		}
		if err != nil {
			t.options.Metrics.Audited("none", entry.Decision.Level, outcome(entry.Decision))
			refused = cmp.Or(refused, refusal(entry.Decision, err))
		}
		if unwritable {
			continue
		}
		waits := entry.Decision.Fail || entry.Decision.waits || t.options.Flush
		for _, s := range spools {
			if e := s.enqueue(record, entry.Decision, waits); waits {
				pending = append(pending, pendingRecord{s, e})
			}
		}
	}
	if len(pending) == 0 {
		return refused
	}
	timer := time.NewTimer(WaitAtMost)
	defer timer.Stop()
	for _, entry := range pending {
		var err error
		select {
		case <-entry.queued.done:
			err = entry.queued.err
		case <-timer.C:
			// The remaining records get no time of their own.
			timer.Reset(0)
			err = entry.spool.giveUp(entry.queued)
		}
		refused = cmp.Or(refused, refusal(entry.queued.decision, err))
	}
	return refused
}

// pendingRecord is a queued record that a request waits for, and its spool.
type pendingRecord struct {
	spool  *spool
	queued *queuedRecord
}

func outcome(decision Decision) string {
	if decision.Fail {
		return "refused"
	}
	return "lost"
}

func refusal(decision Decision, err error) error {
	if err == nil || !decision.Fail {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotRecorded, err)
}

// version returns the state of the current configuration, and creates it if the configuration has changed.
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
		if !reflect.DeepEqual(before.config, config) {
			for _, s := range v.spools {
				s.note(NewMark(Changed, byConfiguration, config))
			}
		}
	default:
		v.spools, v.err = t.open(config)
		if before != nil {
			for _, s := range before.spools {
				t.draining.Go(func() {
					s.drain(writeWithin, func() *Record { return NewMark(Ended, byConfiguration, config) })
				})
			}
		}
	}
	t.now.Store(v)
	return v
}

// Held is the audit at the beginning of a change of the configuration. Its sinks stay open until the change is
// recorded.
type Held struct {
	trail   *Trail
	version *version
	spools  []*spool
}

// Hold returns the current audit, for a request that may change where events are recorded. The caller must call
// Release.
func (t *Trail) Hold() *Held {
	for {
		hold := &Held{trail: t, version: t.version()}
		for _, s := range hold.version.spools {
			if s.hold() {
				hold.spools = append(hold.spools, s)
			}
		}
		if len(hold.spools) == len(hold.version.spools) {
			return hold
		}
		// Another change ended a sink in the meantime.
		hold.Release()
	}
}

// Record records events where they were recorded before the change, and where they are recorded now. It releases the
// old sinks in between: the new ones may need their directory. It returns the errors of Trail.Record.
func (h *Held) Record(events []Entry, hidden ...secret.String) error {
	before := h.spools
	err := h.trail.record(h.version, before, events, hidden)
	h.Release()
	now := h.trail.version()
	if now == h.version {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(now.spools), func(s *spool) bool { return slices.Contains(before, s) })
	if len(rest) == 0 && len(now.spools) > 0 {
		return err
	}
	return cmp.Or(err, h.trail.record(now, rest, events, hidden))
}

// Release allows sinks that are no longer used to close. Further calls do nothing.
func (h *Held) Release() {
	for _, s := range h.spools {
		s.release()
	}
	h.spools = nil
}

// sameSinks reports whether two configurations record to the same sinks.
func sameSinks(a, b *model.ConfigAudit) bool {
	if a == nil || b == nil || !a.Enabled || !b.Enabled {
		return false
	}
	sinks := func(config model.ConfigAudit) model.ConfigAudit {
		config.Level, config.Policy, config.DisableAgentSyncBack = nil, nil, false
		return config
	}
	return sinks(*a) == sinks(*b)
}

func (t *Trail) open(config *model.ConfigAudit) ([]*spool, error) {
	if config == nil || !config.Enabled {
		return nil, nil
	}
	var spools []*spool
	var problems error
	for _, opener := range t.options.Openers {
		sink, err := opener.Open(config)
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("%s: %w", opener.Name, err))
		} else if sink != nil {
			spools = append(spools, newSpool(opener.Name, sink, t.options))
		}
	}
	number := 0
	for _, set := range []bool{config.Path != "", config.DataStoreEndpoint != ""} {
		if set {
			number++
		}
	}
	problems = errors.Join(problems, checkKnownURL(config))
	if problems == nil && len(spools) < number {
		problems = errors.New("this program has no sink for the configured audit.path or audit.dataStoreEndpoint")
	}
	if problems != nil {
		t.options.Log.Error("audit events cannot be recorded", "error", problems.Error())
	}
	return spools, problems
}

var errClosed = errors.New("the process is shutting down")

// Close lets the sinks store the waiting events until ctx ends, and closes them. Events that remain are counted as lost.
// Later events are not recorded.
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
	last := func() *Record { return NewMark(Ended, byProcess, nil) }
	if t.options.Brief {
		last = nil
	}
	for _, s := range v.spools {
		t.draining.Go(func() { s.drain(within, last) })
	}
	t.draining.Wait()
}

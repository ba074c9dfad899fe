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
	"management.platform.sh/shared/model/secret"
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
		var err error
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

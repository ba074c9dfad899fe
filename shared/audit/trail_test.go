package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// shelf is a sink in memory that can be made to fail and to hang.
type shelf struct {
	mu   sync.Mutex
	kept []string
	// marks are the events about the log itself.
	marks   []string
	durable int
	fails   error
	hangs   chan struct{}
	closed  bool
}

func (s *shelf) Write(ctx context.Context, records []*audit.Record, durable bool) error {
	s.mu.Lock()
	hangs := s.hangs
	s.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return s.fails
	}
	for _, r := range records {
		if what := markOf(r); what != "" {
			s.marks = append(s.marks, fmt.Sprintf("%s after %d", what, len(s.kept)))
			continue
		}
		s.kept = append(s.kept, r.AuditID)
	}
	if durable {
		s.durable++
	}
	return nil
}

func (s *shelf) Close() error { s.closed = true; return nil }

// markOf returns what a record says about the log itself: the empty string, or the event and its reason.
func markOf(r *audit.Record) string {
	var event audit.Event
	if err := json.Unmarshal(r.JSON, &event); err != nil || event.Annotations[audit.Log] == "" {
		return ""
	}
	return event.Annotations[audit.Log] + " by " + event.Annotations[audit.Reason]
}

func (s *shelf) ids() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.kept, " ")
}

func (s *shelf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// tally counts outcomes.
type tally struct {
	mu    sync.Mutex
	count map[string]int
	depth int
}

func (c *tally) Audited(_ string, _ audit.Level, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[outcome]++
}

func (c *tally) Spool(_ string, depth int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.depth = depth
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d recorded, %d lost, %d refused", c.count["recorded"], c.count["lost"], c.count["refused"])
}

type bench struct {
	log bytes.Buffer
	*audit.Trail
	shelf  *shelf
	tally  *tally
	config *model.ConfigStatus
}

func opener(s audit.Sink) audit.Opener {
	return audit.Opener{Name: "shelf", Open: func(*model.ConfigAudit) (audit.Sink, error) { return s, nil }}
}

func newBench(flush bool) *bench {
	b := &bench{shelf: &shelf{}, tally: &tally{count: map[string]int{}}}
	b.config = &model.ConfigStatus{Audit: enabled(model.AuditRule{Level: "Metadata"})}
	b.Trail = audit.NewTrail(audit.Options{
		Config: func() *model.ConfigStatus { return b.config }, Openers: []audit.Opener{opener(b.shelf)},
		Log: slog.New(slog.NewTextHandler(&b.log, nil)), Metrics: b.tally, Flush: flush,
	})
	return b
}

var (
	ignore = audit.Decision{Level: audit.Metadata}
	fail   = audit.Decision{Level: audit.Metadata, Fail: true}
)

func entryOf(decision audit.Decision, event *audit.Event) []audit.Entry {
	return []audit.Entry{{Decision: decision, Event: event}}
}

func event(id string) *audit.Event {
	return &audit.Event{Level: audit.Metadata, AuditID: id, Stage: audit.ResponseComplete}
}

func TestFailWaitsUntilKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(false)
		if err := b.Record(entryOf(fail, event("a"))); err != nil || b.shelf.ids() != "a" || b.shelf.durable != 1 {
			t.Errorf("%v, and kept is %q", err, b.shelf.ids())
		}
		b.shelf.set(func() { b.shelf.fails = errors.New("full") })
		begun := time.Now()
		if err := b.Record(entryOf(fail, event("b"))); !errors.Is(err, audit.ErrNotRecorded) || time.Since(begun) != 0 {
			t.Errorf("a sink that fails tells after %s: %v", time.Since(begun), err)
		}
		b.shelf.set(func() { b.shelf.fails = nil })
		if err := b.Record(entryOf(fail, event("c"))); err != nil || b.shelf.ids() != "a c" {
			t.Errorf("after it: %v, and kept is %q", err, b.shelf.ids())
		}
		b.Close(t.Context())
		if got := b.tally.String(); got != "2 recorded, 0 lost, 1 refused" {
			t.Error(got)
		}
	})
}

func TestASlowSinkHoldsNobodyLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(false)
		release := make(chan struct{})
		b.shelf.set(func() { b.shelf.hangs = release })
		begun := time.Now()
		if err := b.Record(entryOf(ignore, event("a"))); err != nil || time.Since(begun) != 0 {
			t.Errorf("Ignore waits %s: %v", time.Since(begun), err)
		}
		// The sink now has the first event.
		synctest.Wait()
		several := append(entryOf(fail, event("b")), append(entryOf(ignore, event("c")), entryOf(fail, event("d"))...)...)
		if err := b.Record(several); !errors.Is(err, audit.ErrNotRecorded) || time.Since(begun) != audit.WaitAtMost {
			t.Errorf("Fail waits %s: %v", time.Since(begun), err)
		}
		b.shelf.set(func() { b.shelf.hangs = nil })
		close(release)
		b.Close(t.Context())
		// Refused events are not written later. Events that may be ignored waited for the sink.
		if got := b.tally.String(); b.shelf.ids() != "a c" || got != "2 recorded, 0 lost, 2 refused" {
			t.Errorf("kept is %q: %s", b.shelf.ids(), got)
		}
	})
}

func TestIgnoreKeepsOrderThroughAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(false)
		b.shelf.set(func() { b.shelf.fails = errors.New("away") })
		for _, id := range []string{"a", "b", "c"} {
			_ = b.Record(entryOf(ignore, event(id)))
			synctest.Wait()
		}
		b.shelf.set(func() { b.shelf.fails = nil })
		b.Close(t.Context())
		if got := b.tally.String(); b.shelf.ids() != "a b c" || got != "3 recorded, 0 lost, 0 refused" || !b.shelf.closed {
			t.Errorf("kept is %q: %s", b.shelf.ids(), got)
		}
	})
}

// A few events also fill the spool if they are large.
func TestASpoolFullOfBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(false)
		b.shelf.set(func() { b.shelf.hangs = make(chan struct{}) })
		const part = 8
		large := event("a")
		large.RequestObject = bytes.Repeat([]byte("7"), audit.MaxSpoolBytes/part)
		for range part {
			if err := b.Record(entryOf(ignore, large)); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.tally.String(); got != "0 recorded, 1 lost, 0 refused" || b.tally.depth != part-1 {
			t.Errorf("%s, and %d wait", got, b.tally.depth)
		}
		b.Close(t.Context())
	})
}

func TestAFullSpool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(false)
		b.shelf.set(func() { b.shelf.hangs = make(chan struct{}) })
		for range audit.MaxSpoolEvents + 5 {
			if err := b.Record(entryOf(ignore, event("a"))); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		if err := b.Record(entryOf(fail, event("b"))); !errors.Is(err, audit.ErrNotRecorded) || time.Since(begun) != 0 {
			t.Errorf("a full spool is known at once: %v after %s", err, time.Since(begun))
		}
		if got := b.tally.String(); got != "0 recorded, 5 lost, 1 refused" || b.tally.depth != audit.MaxSpoolEvents {
			t.Errorf("%s, and %d wait", got, b.tally.depth)
		}
		if got := strings.Count(b.log.String(), "audit events are lost or refused"); got != 1 {
			t.Errorf("the log says so %d times", got)
		}
		b.Close(t.Context())
		if got := b.tally.String(); got != fmt.Sprintf("0 recorded, %d lost, 1 refused", audit.MaxSpoolEvents+5) || b.tally.depth != 0 {
			t.Errorf("at the end %s", got)
		}
	})
}

func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(true)
		if err := b.Record(entryOf(ignore, event("a"))); err != nil || b.shelf.ids() != "a" {
			t.Errorf("%v, and kept is %q when the request is answered", err, b.shelf.ids())
		}
		b.shelf.set(func() { b.shelf.hangs = make(chan struct{}) })
		begun := time.Now()
		if err := b.Record(entryOf(ignore, event("b"))); err != nil || time.Since(begun) != audit.WaitAtMost {
			t.Errorf("a slow sink: %v after %s", err, time.Since(begun))
		}
		b.shelf.set(func() { close(b.shelf.hangs); b.shelf.hangs = nil })
		b.Close(t.Context())
		if b.shelf.ids() != "a b" {
			t.Errorf("kept is %q", b.shelf.ids())
		}
	})
}

// A changed setting of a sink opens the sink again; a changed setting of the policy does not. Source: Spec 2.7.
func TestSettingsOfSinksAreLive(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*model.ConfigAudit)
		opened int
	}{
		"policy":            {func(c *model.ConfigAudit) { c.Policy.Rules[0].Level = "Request" }, 1},
		"path":              {func(c *model.ConfigAudit) { c.Path = "two" }, 2},
		"maxAge":            {func(c *model.ConfigAudit) { c.MaxAgeDays = 1 }, 2},
		"maxBackups":        {func(c *model.ConfigAudit) { c.MaxBackups = 1 }, 2},
		"maxSize":           {func(c *model.ConfigAudit) { c.MaxSizeMegabytes = 1 }, 2},
		"compress":          {func(c *model.ConfigAudit) { c.Compress = true }, 2},
		"dataStoreEndpoint": {func(c *model.ConfigAudit) { c.DataStoreEndpoint = "redis://two.example" }, 2},
		"dataStoreTTL":      {func(c *model.ConfigAudit) { c.DataStoreTTLHours = 1 }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := func() *model.ConfigAudit {
				audits := enabled(model.AuditRule{Level: "Metadata"})
				audits.Path, audits.DataStoreEndpoint = "one", "redis://one.example"
				return audits
			}
			config := &model.ConfigStatus{Audit: settings()}
			opened := 0
			opener := audit.Opener{Name: "shelf", Open: func(*model.ConfigAudit) (audit.Sink, error) {
				opened++
				return &shelf{}, nil
			}}
			trail := audit.NewTrail(audit.Options{
				Config: func() *model.ConfigStatus { return config }, Log: slog.New(slog.DiscardHandler), Openers: []audit.Opener{opener, opener},
			})
			defer trail.Close(t.Context())
			_ = trail.Record(entryOf(ignore, event("a")))
			changed := settings()
			row.change(changed)
			config = &model.ConfigStatus{Audit: changed}
			_ = trail.Record(entryOf(ignore, event("b")))
			if opened != 2*row.opened {
				t.Errorf("sinks were opened %d times", opened)
			}
		})
	}
}

func TestTheConfigurationIsLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := &shelf{}, &shelf{}
		config := &model.ConfigStatus{}
		trail := audit.NewTrail(audit.Options{
			Config: func() *model.ConfigStatus { return config }, Log: slog.New(slog.DiscardHandler),
			Openers: []audit.Opener{{Name: "shelf", Open: func(config *model.ConfigAudit) (audit.Sink, error) {
				switch config.Path {
				case "one":
					return first, nil
				case "two":
					return second, nil
				default:
					return nil, nil
				}
			}}},
		})
		if trail.Enabled() {
			t.Error("it records without a configuration")
		}
		set := func(path string) {
			audits := enabled(model.AuditRule{Level: "Metadata"})
			audits.Path = path
			config = &model.ConfigStatus{Audit: audits}
		}
		set("one")
		_ = trail.Record(entryOf(fail, event("a")))
		set("two")
		_ = trail.Record(entryOf(fail, event("b")))
		synctest.Wait()
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
		if first.ids() != "a" || second.ids() != "b" || !first.closed || second.closed {
			t.Errorf("%q closed %v, then %q closed %v", first.ids(), first.closed, second.ids(), second.closed)
		}
		set("nowhere")
		if err := trail.Record(entryOf(fail, event("c"))); !errors.Is(err, audit.ErrNotRecorded) {
			t.Errorf("a place without a sink: %v", err)
		}
		if err := trail.Record(entryOf(ignore, event("c"))); err != nil {
			t.Errorf("the same, ignored: %v", err)
		}
		trail.Close(t.Context())
		set("one")
		if err := trail.Record(entryOf(fail, event("d"))); !errors.Is(err, audit.ErrNotRecorded) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// The audit records its own end, and each change of what it records. Source: ADR-0016.
func TestMarks(t *testing.T) {
	t.Parallel()
	config := func() *model.ConfigAudit {
		audits := enabled(model.AuditRule{Level: "Metadata"})
		audits.Path = "one"
		return audits
	}
	for _, row := range []struct {
		name string
		// change returns the configuration after the first event.
		change       func() *model.ConfigAudit
		first, other string
	}{
		{"the audit is turned off", func() *model.ConfigAudit { return nil }, "ended by configuration after 1", ""},
		{"enabled: false", func() *model.ConfigAudit { return &model.ConfigAudit{Path: "one"} }, "ended by configuration after 1", ""},
		{"another path", func() *model.ConfigAudit { c := config(); c.Path = "two"; return c }, "ended by configuration after 1", "ended by process after 1"},
		{"another policy", func() *model.ConfigAudit { c := config(); c.Policy.Rules[0].Level = "None"; return c },
			"changed by configuration after 1, ended by process after 2", ""},
		{"the same again", config, "ended by process after 2", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sinks := map[string]*shelf{"one": {}, "two": {}}
				config := &model.ConfigStatus{Audit: config()}
				trail := audit.NewTrail(audit.Options{
					Config: func() *model.ConfigStatus { return config }, Log: slog.New(slog.DiscardHandler),
					Openers: []audit.Opener{{Name: "shelf", Open: func(config *model.ConfigAudit) (audit.Sink, error) { return sinks[config.Path], nil }}},
				})
				record := func(id string) {
					_ = trail.Record([]audit.Entry{{Decision: fail, Event: event(id)}})
				}
				record("a")
				config = &model.ConfigStatus{Audit: row.change()}
				record("b")
				synctest.Wait()
				trail.Close(t.Context())
				for name, want := range map[string]string{"one": row.first, "two": row.other} {
					if got := strings.Join(sinks[name].marks, ", "); got != want {
						t.Errorf("%s: %q instead of %q", name, got, want)
					}
				}
			})
		})
	}
}

// A change of the configuration is recorded where events were recorded before it and where they are recorded after it, and the
// end of the log comes after that. Source: ADR-0016.
func TestChangesAreRecordedBeforeAndAfter(t *testing.T) {
	t.Parallel()
	configWith := func(path string) *model.ConfigAudit {
		if path == "" {
			return nil
		}
		return &model.ConfigAudit{Enabled: true, Path: path, Policy: &model.AuditPolicy{Rules: []model.AuditRule{{Level: "None"}}}}
	}
	change := audit.Attributes{Verb: "update", Group: group, Resource: "configs", Name: "config"}
	for _, row := range []struct{ before, after, one, two string }{
		{"one", "", "x", ""}, {"one", "two", "x", "x"}, {"", "two", "", "x"}, {"one", "one", "x", ""}, {"", "", "", ""},
	} {
		t.Run(row.before+" to "+row.after, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sinks := map[string]*shelf{"one": {}, "two": {}}
				config := &model.ConfigStatus{Audit: configWith(row.before)}
				counted := &tally{count: map[string]int{}}
				trail := audit.NewTrail(audit.Options{
					Config: func() *model.ConfigStatus { return config }, Log: slog.New(slog.DiscardHandler), Metrics: counted,
					Openers: []audit.Opener{{Name: "shelf", Open: func(config *model.ConfigAudit) (audit.Sink, error) { return sinks[config.Path], nil }}},
				})
				hold := trail.Hold()
				defer hold.Release()
				decision := trail.Evaluate(change)
				if decision.Level != audit.Request || !decision.Records(audit.ResponseComplete) || !decision.Records(audit.Panic) {
					t.Errorf("a change is decided on with %+v", decision)
				}
				config = &model.ConfigStatus{Audit: configWith(row.after)}
				// Another request sees the change first.
				_ = trail.Enabled()
				synctest.Wait()
				if err := hold.Record([]audit.Entry{{Decision: decision, Event: event("x")}}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if row.before != row.after && row.before != "" && strings.Join(sinks["one"].marks, ", ") != "ended by configuration after 1" {
					t.Errorf("the log that ends has %q", sinks["one"].marks)
				}
				trail.Close(t.Context())
				if sinks["one"].ids() != row.one || sinks["two"].ids() != row.two || counted.count["lost"] > 0 {
					t.Errorf("%q before and %q after: %s", sinks["one"].ids(), sinks["two"].ids(), counted)
				}
			})
		})
	}
}

// A sink that fails does not refuse a change of the configuration, which may mend it. Source: ADR-0016.
func TestChangesAreNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(false)
		b.config.Audit.Policy.Rules[0].FailurePolicy = "Fail"
		b.shelf.set(func() { b.shelf.fails = errors.New("away") })
		decision := b.Evaluate(audit.Attributes{Verb: "patch", Group: group, Resource: "configs"})
		begun := time.Now()
		if err := b.Record(entryOf(decision, event("a"))); err != nil || time.Since(begun) != audit.WaitAtMost {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		b.shelf.set(func() { b.shelf.fails = nil })
		b.Close(t.Context())
		if b.shelf.ids() != "a" {
			t.Errorf("kept is %q once the sink is back", b.shelf.ids())
		}
	})
}

// A sink that cannot be opened does not take the events from the other sinks: its events are lost or refused, and the
// log names the reason. A store whose URL is not known in this process is such a sink. Source: ADR-0016.
func TestASinkThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for endpoint, why := range map[string]string{
		secret.Mark:                      "audit.dataStoreEndpoint is not known here: it is sealed",
		"${PLATFORM_SECRET_AUDIT_STORE}": "audit.dataStoreEndpoint is not known here: give every function, or the runner, the variable PLATFORM_SECRET_AUDIT_STORE",
		"redis://wrong.example":          "store: wrong",
		"mysql://a.example":              "this program has no sink",
	} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(false)
				b.config.Audit.Path, b.config.Audit.DataStoreEndpoint = "-", secret.String(endpoint)
				openers := []audit.Opener{opener(b.shelf), {Name: "store", Open: func(config *model.ConfigAudit) (audit.Sink, error) {
					if strings.HasPrefix(config.DataStoreEndpoint.Reveal(), "redis:") {
						return nil, errors.New("wrong")
					}
					return nil, nil
				}}}
				trail := audit.NewTrail(audit.Options{
					Config: func() *model.ConfigStatus { return b.config }, Openers: openers, Log: slog.New(slog.NewTextHandler(&b.log, nil)), Metrics: b.tally,
				})
				if err := trail.Record(entryOf(ignore, event("a"))); err != nil {
					t.Errorf("Ignore: %v", err)
				}
				if err := trail.Record(entryOf(fail, event("b"))); !errors.Is(err, audit.ErrNotRecorded) {
					t.Errorf("Fail: %v", err)
				}
				synctest.Wait()
				if got := trail.Backlogs(); len(got) != 2 || !got[0].Unusable {
					t.Errorf("the backlogs are %+v", got)
				}
				trail.Close(t.Context())
				if got := b.tally.String(); b.shelf.ids() != "a b" || got != "2 recorded, 1 lost, 1 refused" {
					t.Errorf("kept is %q: %s", b.shelf.ids(), got)
				}
				if log := b.log.String(); strings.Count(log, "audit events cannot be recorded") != 1 || !strings.Contains(log, why) || strings.Contains(log, ".example") {
					t.Errorf("the log says %s", log)
				}
			})
		})
	}
}

func TestSecretsElsewhereInAnEvent(t *testing.T) {
	t.Parallel()
	var stored []byte
	keeps := sinkFunc(func(records []*audit.Record) {
		if markOf(records[0]) == "" {
			stored = records[0].JSON
		}
	})
	trail := audit.NewTrail(audit.Options{
		Config:  func() *model.ConfigStatus { return &model.ConfigStatus{Audit: enabledOnce} },
		Openers: []audit.Opener{opener(keeps)}, Log: slog.New(slog.DiscardHandler),
	})
	const made = "pak_0123456789abcdefghijABCDEFGHIJ0123456789abcdef"
	quoted := secret.String(`quoted "<secret>" \ of a client's own`)
	e := event("a")
	e.UserAgent, e.RequestURI = "curl "+canary, "/p/"+made
	e.RequestObject, _ = json.Marshal(map[string]string{"description": "it is " + quoted.Reveal()})
	e.Annotate("a", "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl")
	if err := trail.Record(entryOf(fail, e), canary, quoted, "short"); err != nil {
		t.Fatal(err)
	}
	trail.Close(t.Context())
	var back audit.Event
	if err := json.Unmarshal(stored, &back); err != nil {
		t.Fatalf("%v: %s", err, stored)
	}
	for _, word := range []string{canary, made, "client", "eyJ"} {
		if strings.Contains(string(stored), word) {
			t.Errorf("%s is in %s", word, stored)
		}
	}
	if string(back.RequestObject) != `{"description":"it is ***"}` || back.UserAgent != "curl ***" {
		t.Errorf("%s", stored)
	}
}

var enabledOnce = enabled(model.AuditRule{Level: "Metadata"})

type sinkFunc func([]*audit.Record)

func (f sinkFunc) Write(_ context.Context, records []*audit.Record, _ bool) error {
	f(records)
	return nil
}
func (sinkFunc) Close() error { return nil }

// A trail says how many events wait for each sink, since when a sink fails, and how many events it did not get.
func TestBacklogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(false)
		if got := b.Backlogs(); len(got) != 1 || got[0] != (audit.Backlog{Sink: got[0].Sink}) {
			t.Errorf("before the first event: %+v", got)
		}
		b.shelf.set(func() { b.shelf.fails = errors.New("full") })
		begun := time.Now().UTC()
		for i := range 3 {
			_ = b.Record(entryOf(ignore, event(fmt.Sprint(i))))
		}
		synctest.Wait()
		if got := b.Backlogs(); got[0].Waiting != 3 || !got[0].Failing.Equal(begun) || got[0].Lost != 0 {
			t.Errorf("while the sink fails: %+v", got)
		}
		if err := b.Record(entryOf(fail, event("refused"))); err == nil {
			t.Error("an event that is not stored is acknowledged")
		}
		if got := b.Backlogs(); got[0].Waiting != 3 || got[0].Lost != 1 {
			t.Errorf("after a refusal: %+v", got)
		}
		b.shelf.set(func() { b.shelf.fails = nil })
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if got := b.Backlogs(); got[0].Waiting != 0 || !got[0].Failing.IsZero() || got[0].Lost != 1 {
			t.Errorf("after the sink was mended: %+v", got)
		}
		b.Close(t.Context())
	})
}

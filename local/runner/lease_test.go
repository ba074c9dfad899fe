package runner

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"management.platform.sh/shared/state/store"
)

// leaseStore is a state with the record of a lease alone.
type leaseStore struct {
	store.Store
	mu       sync.Mutex
	record   *store.Record
	revision int64
}

func (s *leaseStore) Get(context.Context, string) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return store.Record{}, store.ErrNotFound
	}
	return *s.record, nil
}

func (s *leaseStore) Create(_ context.Context, record store.Record) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record != nil {
		return 0, store.ErrExists
	}
	return s.write(record), nil
}

func (s *leaseStore) Update(_ context.Context, record store.Record) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil || s.record.Revision != record.Revision {
		return 0, store.ErrConflict
	}
	return s.write(record), nil
}

func (s *leaseStore) write(record store.Record) int64 {
	s.revision++
	record.Revision = s.revision
	s.record = &record
	return s.revision
}

func (s *leaseStore) Delete(_ context.Context, _ string, revision int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil || s.record.Revision != revision {
		return 0, store.ErrConflict
	}
	s.revision, s.record = s.revision+1, nil
	return s.revision, nil
}

func (s *leaseStore) Trim(context.Context, time.Time) error { return nil }

// awayStore is a state that a process does not reach any more once away is closed.
type awayStore struct {
	*leaseStore
	away chan struct{}
}

func (s awayStore) Get(ctx context.Context, name string) (store.Record, error) {
	select {
	case <-s.away:
		return store.Record{}, store.ErrUnavailable
	default:
		return s.leaseStore.Get(ctx, name)
	}
}

// leaseWorld are processes with the same state.
type leaseWorld struct {
	state *leaseStore
	mu    sync.Mutex
	// runs are the names of the processes that run the schedules now.
	runs []string
	// overlap reports whether two of them ever ran at the same time.
	overlap bool
}

// start starts a process. Stop ends it, and cut takes its state away.
func (w *leaseWorld) start(t *testing.T, name string) (stop, cut func()) {
	away := make(chan struct{})
	held := &lease{records: awayStore{w.state, away}, holder: name, time: leaseTime, log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	go held.hold(ctx, func(ctx context.Context) {
		w.mu.Lock()
		w.runs = append(w.runs, name)
		w.overlap = w.overlap || len(w.runs) > 1
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		w.runs = slices.DeleteFunc(w.runs, func(each string) bool { return each == name })
		w.mu.Unlock()
	})
	return cancel, func() { close(away) }
}

// running returns the process that runs the schedules; empty: none.
func (w *leaseWorld) running() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.runs)
}

// One of several processes runs the schedules. When it ends, another one takes over at the next look; when it loses the state, it stops
// before another one begins. Source: ADR-0050.
func TestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := &leaseWorld{state: &leaseStore{}}
		expect := func(about, want string) {
			t.Helper()
			if got := world.running(); got != want {
				t.Errorf("%s: %s run the schedules, want %s", about, got, want)
			}
		}
		stopFirst, _ := world.start(t, "first")
		expect("alone", "[first]")
		passTime(time.Second)
		stopSecond, cutSecond := world.start(t, "second")
		passTime(time.Hour)
		expect("beside another process", "[first]")
		stopFirst()
		expect("after its end", "[]")
		passTime(leaseTime / 3)
		expect("at the next look", "[second]")
		stopThird, _ := world.start(t, "third")
		// The state goes away between two looks.
		passTime(time.Minute + time.Second)
		cutSecond()
		passTime(leaseTime / 3)
		expect("for a moment without the state", "[second]")
		passTime(leaseTime / 3)
		expect("without the state", "[]")
		passTime(leaseTime)
		expect("after the time of the lease", "[third]")
		if world.overlap {
			t.Error("two processes ran the schedules at the same time")
		}
		stopSecond()
		stopThird()
		synctest.Wait()
		if world.state.record != nil {
			t.Errorf("the lease was not given back: %s", world.state.record.Object)
		}
	})
}

// A process that was killed does not give its lease back: another process takes it after the time of the lease.
func TestLeaseOfKilledProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := &leaseWorld{state: &leaseStore{}}
		if _, err := world.state.Create(t.Context(), store.Record{Name: scheduleLease, Object: []byte(`{"holder":"killed"}`)}); err != nil {
			t.Fatal(err)
		}
		stop, _ := world.start(t, "next")
		passTime(leaseTime - time.Second)
		if got := world.running(); got != "[]" {
			t.Errorf("before the time of the lease, %s run the schedules", got)
		}
		passTime(time.Second)
		if got := world.running(); got != "[next]" {
			t.Errorf("after the time of the lease, %s run the schedules", got)
		}
		stop()
	})
}

// passTime waits on the clock of a synctest bubble, which costs nothing.
func passTime(duration time.Duration) { <-time.After(duration) }

package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// start is the revision of an empty store.
const start = store.Beginning

// commands counts the commands that a Redis received.
type commands struct {
	mu    sync.Mutex
	count map[string]int
}

func countCommands(embedded *miniredis.Miniredis) *commands {
	c := &commands{count: map[string]int{}}
	embedded.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.count[strings.ToUpper(command)]++
		return false
	})
	return c
}

func (c *commands) callsOf(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[name]
}

// follow reads events up to a revision and returns their revisions. It reports its progress to the others, if any.
func follow(t *testing.T, s store.Store, revision, until int64, progress ...chan<- int64) []int64 {
	var revisions []int64
	for _, each := range progress {
		defer close(each)
	}
	for revision < until {
		events, err := s.Events(t.Context(), revision, 10, 30*time.Second)
		if err != nil || len(events) == 0 {
			t.Errorf("after %d: %d events, %v", revision, len(events), err)
			return revisions
		}
		for _, event := range events {
			revisions = append(revisions, event.Revision)
			revision = event.Revision
		}
		for _, each := range progress {
			each <- revision
		}
	}
	return revisions
}

// TestEventsAreReadOnce: events for which a hundred watchers of one process wait are read from Redis once.
func TestEventsAreReadOnce(t *testing.T) {
	embedded := miniredis.RunT(t)
	s := open(t, "redis://"+embedded.Addr(), patient).Resource("things")
	const watchers, changes = 100, 60
	counter := countCommands(embedded)
	var group sync.WaitGroup
	var startup sync.WaitGroup
	for range watchers {
		startup.Add(1)
		group.Go(func() {
			startup.Done()
			if seen := follow(t, s, start, start+changes); len(seen) != changes || !slices.IsSorted(seen) {
				t.Errorf("saw %v", seen)
			}
		})
	}
	startup.Wait()
	for i := range changes {
		if _, err := s.Create(t.Context(), thing(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	// Each watcher reads a few times until the window covers its position, and not once for each change.
	if reads := counter.callsOf("XRANGE"); reads > 5*watchers {
		t.Errorf("%d watchers of %d changes asked Redis %d times", watchers, changes, reads)
	}
	if reads := counter.callsOf("XREAD"); reads > changes+20 {
		t.Errorf("the feed asked Redis %d times for %d changes", reads, changes)
	}
}

// TestFeedEnds: without waiting callers, the feed stops reading from Redis.
func TestFeedEnds(t *testing.T) {
	t.Parallel()
	embedded := miniredis.RunT(t)
	s := open(t, "redis://"+embedded.Addr(), redisstore.Options{Timeout: 200 * time.Millisecond}).Resource("things")
	counter := countCommands(embedded)
	// On a busy machine the timeout may be too short for a call.
	eventually(t, "waiting", func() error {
		events, err := s.Events(t.Context(), start, 1, 50*time.Millisecond)
		if len(events) != 0 {
			t.Errorf("%d events", len(events))
		}
		return err
	})
	quiet := func() bool {
		before := counter.callsOf("XREAD")
		<-time.After(500 * time.Millisecond)
		return counter.callsOf("XREAD") == before
	}
	for end := time.Now().Add(20 * time.Second); !quiet(); {
		if time.Now().After(end) {
			t.Fatal("the feed still reads")
		}
	}
	// A new feed begins with an empty window.
	eventually(t, "writing", func() error { return exists(t.Context(), s, "one") })
	eventually(t, "reading", func() error {
		events, err := s.Events(t.Context(), start, 10, time.Second)
		if err == nil && len(events) != 1 {
			t.Errorf("saw %v", events)
		}
		return err
	})
}

// TestFeedAfterAFailover: if the store has gone back, its window is dropped. Watchers that are ahead get an error, and
// watchers that begin again see only the new history.
func TestFeedAfterAFailover(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, url string) {
		// A feed compares revisions after half of the timeout.
		s := open(t, url, busy).Resource("things")
		r := raw(t, url)
		waiting := make(chan []int64, 1)
		go func() { waiting <- follow(t, s, start, start+5) }()
		for i := range 5 {
			_, err := s.Create(t.Context(), thing(fmt.Sprint("old-", i)))
			must(t, err)
		}
		if seen := <-waiting; len(seen) != 5 {
			t.Fatalf("saw %v", seen)
		}
		results := make(chan error, 20)
		for range cap(results) {
			go func() {
				_, err := s.Events(t.Context(), start+5, 1, 30*time.Second)
				results <- err
			}()
		}
		// The replica had missed everything after the second change.
		must(t, r.Del(t.Context(), "p1:{things}:log").Err())
		must(t, r.Set(t.Context(), "p1:{things}:rev", start+2, 0).Err())
		for range cap(results) {
			if err := <-results; !errors.Is(err, store.ErrGone) {
				t.Errorf("waiting ahead of a store that went back: %v", err)
			}
		}
		_, err := s.Create(t.Context(), thing("new"))
		must(t, err)
		events, err := s.Events(t.Context(), start+2, 10, 30*time.Second)
		if err != nil || len(events) != 1 || events[0].Record.Name != "new" {
			t.Errorf("after the failover: %+v, %v", events, err)
		}
	})
}

// TestFeedFallsBehind: a burst longer than the log is a gap for the waiting watchers; later reads work.
func TestFeedFallsBehind(t *testing.T) {
	embedded := miniredis.RunT(t)
	url := "redis://" + embedded.Addr()
	s := open(t, url, redisstore.Options{LogLength: 10}).Resource("things")
	var blocked atomic.Bool
	release := make(chan struct{})
	embedded.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		if strings.EqualFold(command, "XREAD") && blocked.Load() {
			<-release
		}
		return false
	})
	blocked.Store(true)
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Events(t.Context(), start, 1, 30*time.Second)
		waiting <- err
	}()
	for i := range 200 {
		_, err := s.Create(t.Context(), thing(fmt.Sprint(i)))
		must(t, err)
	}
	blocked.Store(false)
	close(release)
	if err := <-waiting; !errors.Is(err, store.ErrGone) && err != nil {
		t.Errorf("waiting through a burst: %v", err)
	}
	if seen := follow(t, s, start+195, start+200); len(seen) != 5 {
		t.Errorf("then saw %v", seen)
	}
}

// TestWindowIsBounded: the events that a slow reader has received do not change, however far the window has moved on.
func TestWindowIsBounded(t *testing.T) {
	s := open(t, redistest.Embedded(t), patient).Resource("things")
	record := thing("one")
	var err error
	record.Revision, err = s.Create(t.Context(), record)
	must(t, err)
	const changes = 1500
	revisions := make(chan []int64, 1)
	progress := make(chan int64, changes)
	first, last := record.Revision, record.Revision+changes
	go func() { revisions <- follow(t, s, first, last, progress) }()
	var window []store.Event
	for reached, going := first, true; record.Revision < last; {
		// Not further ahead than the log is long.
		for going && reached < record.Revision-50 {
			reached, going = <-progress
		}
		record.Object = fmt.Appendf(nil, `{"at":%d}`, record.Revision)
		record.Revision, err = s.Update(t.Context(), record)
		must(t, err)
		if record.Revision == 50 {
			window, err = s.Events(t.Context(), 40, 10, 30*time.Second)
			must(t, err)
		}
	}
	if seen := <-revisions; len(seen) != changes {
		t.Errorf("saw %d changes, want %d", len(seen), changes)
	}
	for i, event := range window {
		if event.Revision != 41+int64(i) || string(event.Record.Object) != fmt.Sprintf(`{"at":%d}`, event.Revision-1) {
			t.Errorf("event %d is now %d with %s", 41+i, event.Revision, event.Record.Object)
		}
	}
	if _, err := s.Events(t.Context(), 10, 1, 30*time.Second); !errors.Is(err, store.ErrGone) {
		t.Errorf("events that neither the window nor the log has: %v", err)
	}
}

package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// Limits of a feed. Source: ADR-0007.
const (
	// windowEvents and windowBytes bound what a feed keeps. The newest event is kept however large it is.
	windowEvents = 1024
	windowBytes  = 16 << 20
	// feedBatch is the number of events that a blocking read returns, because it has no bound in bytes. If it returns
	// that many, there may be more, which are then read page by page.
	feedBatch = 2
	// linger is how long a feed goes on without a waiting caller: callers that have received events soon wait again.
	linger = time.Second
)

// feed reads the events of a resource once for all callers in this process that wait for them. However many callers
// there are, only one connection blocks in Redis: with a thousand blocking connections, each write would have to wake
// them all. A feed runs while a caller waits, and keeps the last events. Source: ADR-0007.
type feed struct {
	client *Client
	keys   keys

	mu      sync.Mutex
	waiting int
	// lastUse is when a caller last read the window or stopped waiting.
	lastUse time.Time
	running bool
	news    *news
	// window holds the last events, whose revisions have no gap. The last event has the revision in lastRevision. Events are
	// only appended and cut off at the front, so that slices returned earlier do not change.
	window       []store.Event
	size         int
	lastRevision int64
}

// news is one announcement. err is set before arrived is closed.
type news struct {
	arrived chan struct{}
	err     error
}

func newFeed(client *Client, keys keys) *feed {
	return &feed{client: client, keys: keys, news: &news{arrived: make(chan struct{})}}
}

// look returns the window's events after a revision, up to limit, and the next announcement. reached reports whether
// the window holds every event after the revision; there may be none.
func (f *feed) look(revision int64, limit int) (events []store.Event, next *news, reached bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.lastRevision - int64(len(f.window))
	if !f.running || revision < first || revision > f.lastRevision {
		return nil, f.news, false
	}
	f.lastUse = time.Now()
	rest := f.window[revision-first:]
	n := min(limit, len(rest))
	return rest[:n:n], f.news, true
}

// watch ensures that every event after a revision is announced until leave is called.
func (f *feed) watch(revision int64) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	if !f.running {
		f.running = true
		f.begin(revision)
		go f.follow()
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiting--
		f.lastUse = time.Now()
	}
}

// begin empties the window, which then collects the events after a revision.
func (f *feed) begin(after int64) {
	f.window, f.size, f.lastRevision = nil, 0, after
}

// add appends events to the window, and removes the oldest ones that exceed its bounds.
func (f *feed) add(events []store.Event) {
	for _, event := range events {
		if event.Revision != f.lastRevision+1 {
			f.begin(event.Revision - 1) // the first write at another server
		}
		f.size += eventSize(event)
		f.window = append(f.window, event)
		f.lastRevision = event.Revision
	}
	cut := 0
	for len(f.window)-cut > windowEvents || f.size > windowBytes && len(f.window)-cut > 1 {
		f.size -= eventSize(f.window[cut])
		cut++
	}
	f.window = f.window[cut:]
}

func eventSize(event store.Event) int {
	size := len(event.Record.Object)
	if event.Previous != nil {
		size += len(event.Previous.Object)
	}
	return size
}

// announce changes the window and wakes the waiting callers. An error ends the feed.
func (f *feed) announce(change func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.news.err = err
	close(f.news.arrived)
	f.news = &news{arrived: make(chan struct{})}
	if err != nil {
		f.end()
	}
}

func (f *feed) end() {
	f.running = false
	f.begin(0)
}

// endIfIdle ends the feed if no caller has waited for longer than linger. It reports whether the feed has ended.
func (f *feed) endIfIdle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 && time.Since(f.lastUse) > linger {
		f.end()
	}
	return !f.running
}

// follow blocks in Redis for half a timeout at a time. This lets it tell a server that hangs from a server that has no
// events.
func (f *feed) follow() {
	// mayHaveMore reports whether there may be events that were written before the last events arrived.
	mayHaveMore := false
	for !f.endIfIdle() {
		next := f.await
		if mayHaveMore {
			next = f.catchUp
		}
		events, revision, err := next(f.lastRevision)
		mayHaveMore = len(events) >= feedBatch
		switch {
		case err != nil:
			f.announce(func() {}, err)
			return
		case len(events) > 0:
			f.announce(func() { f.add(events) }, nil)
		case revision != f.lastRevision:
			// The revision is lower if a replica that had missed writes took over, and higher if the log has been
			// trimmed past the last event read. The waiting callers must then read the log themselves.
			f.announce(func() { f.begin(revision) }, nil)
		}
	}
}

// catchUp returns a page of the events after a revision, and the store's current revision. It does not wait.
func (f *feed) catchUp(seen int64) ([]store.Event, int64, error) {
	return f.client.readLog(context.Background(), "following events", f.keys, seen, limits.PageObjects)
}

// await waits for the first event after a revision and returns the events. If there is none within the time of the
// block, or if there is a gap, it returns the store's current revision.
func (f *feed) await(lastRevision int64) ([]store.Event, int64, error) {
	block := f.client.options.Timeout / 2
	ctx, cancel := context.WithTimeout(context.Background(), block+f.client.options.Timeout)
	defer cancel()
	streams, err := f.client.redis.XRead(ctx, &redis.XReadArgs{
		Streams: []string{f.keys.log, strconv.FormatInt(lastRevision, 10) + "-0"},
		Count:   feedBatch,
		Block:   max(block, time.Millisecond), // 0 would block forever
	}).Result()
	if ignoreAbsence(err) != nil {
		return nil, 0, err
	}
	var events []store.Event
	if len(streams) > 0 {
		if events, err = decodeEvents(streams[0].Messages, lastRevision); err != nil || len(events) > 0 {
			return events, 0, err
		}
	}
	revision, err := revisionOf(f.client.redis.Get(ctx, f.keys.revision))
	if err != nil {
		return nil, 0, err
	}
	if revision == lastRevision && len(streams) > 0 {
		// Otherwise XREAD would return at once every time.
		return nil, 0, fmt.Errorf("%w: the event log is ahead of revision %d", errCorrupt, revision)
	}
	return nil, revision, nil
}

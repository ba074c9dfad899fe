package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/store"
)

func (r *resource) Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]store.Event, error) {
	doing := fmt.Sprintf("reading events after %d", after)
	if after < 0 {
		return nil, fmt.Errorf("%s: %w", doing, store.ErrGone)
	}
	if limit < 1 {
		return nil, nil
	}
	patience := time.NewTimer(max(wait, 0))
	defer patience.Stop()
	for {
		// Taken before reading, so that no event falls between the two.
		news := r.feed.next()
		events, err := r.read(ctx, doing, after, limit)
		if err != nil || len(events) > 0 || wait <= 0 {
			return events, err
		}
		leave := r.feed.watch(after)
		select {
		case <-news.arrived:
			leave()
			if news.err != nil {
				return nil, r.client.translate(ctx, doing, news.err)
			}
		case <-patience.C:
			leave()
			return nil, nil
		case <-ctx.Done():
			leave()
			return nil, fmt.Errorf("%s: %w", doing, ctx.Err())
		}
	}
}

// read returns what the log holds after a revision, in one round trip. Every revision has exactly one
// event, so what is missing is visible: the first entry must be that of the next revision.
func (r *resource) read(ctx context.Context, doing string, after int64, limit int) ([]store.Event, error) {
	var current *redis.StringCmd
	var entries *redis.XMessageSliceCmd
	err := r.client.run(ctx, doing, func(ctx context.Context) error {
		_, err := r.client.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			// The revision first: a write between the two can then only add to the entries.
			current = pipe.Get(ctx, r.keys.revision)
			entries = pipe.XRangeN(ctx, r.keys.log, fmt.Sprintf("(%d-0", after), "+", int64(limit))
			return nil
		})
		return present(err)
	})
	if err != nil {
		return nil, err
	}
	revision := int64(0)
	if text := current.Val(); text != "" {
		if revision, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w: revision %q", doing, errCorrupt, text)
		}
	}
	messages := entries.Val()
	if after > revision || len(messages) == 0 && after < revision {
		return nil, fmt.Errorf("%s: %w", doing, store.ErrGone)
	}
	events := make([]store.Event, 0, len(messages))
	for i, message := range messages {
		event, err := decodeEvent(message)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		if event.Revision != after+1+int64(i) {
			if i > 0 {
				return events, nil
			}
			return nil, fmt.Errorf("%s: %w", doing, store.ErrGone)
		}
		events = append(events, event)
	}
	return events, nil
}

func decodeEvent(message redis.XMessage) (store.Event, error) {
	field := func(name string) string {
		text, _ := message.Values[name].(string)
		return text
	}
	id, _, _ := strings.Cut(message.ID, "-")
	revision, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return store.Event{}, fmt.Errorf("%w: event id %q", errCorrupt, message.ID)
	}
	event := store.Event{Type: store.EventType(field("type")), Revision: revision}
	name, activity := field("name"), field("activity")
	if event.Type == store.Updated || event.Type == store.Deleted {
		previous, err := decode(name, field("previous"), activity)
		if err != nil {
			return store.Event{}, err
		}
		event.Previous = &previous
	}
	switch event.Type {
	case store.Created, store.Updated:
		event.Record, err = decode(name, field("record"), activity)
	case store.Deleted:
		event.Record, err = decode(name, field("previous"), activity)
		event.Record.Revision = revision
	default:
		err = fmt.Errorf("reading event %d: %w: type %q", revision, store.ErrFormat, event.Type)
	}
	return event, err
}

// feed tells those who wait in Events that something happened. However many wait in this process, one
// connection per resource blocks in Redis: with a thousand of them there, each write would pay for waking
// a thousand connections.
type feed struct {
	client *Client
	keys   keys

	mu      sync.Mutex
	waiting int
	running bool
	news    *news
}

// news is one announcement. err is set before arrived is closed.
type news struct {
	arrived chan struct{}
	err     error
}

func newFeed(client *Client, keys keys) *feed {
	return &feed{client: client, keys: keys, news: &news{arrived: make(chan struct{})}}
}

// next returns the announcement to come.
func (f *feed) next() *news {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.news
}

// watch makes sure that every event after a revision will be announced, until leave is called.
func (f *feed) watch(after int64) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	if !f.running {
		f.running = true
		go f.follow(after)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiting--
	}
}

func (f *feed) announce(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.news.err = err
	close(f.news.arrived)
	f.news = &news{arrived: make(chan struct{})}
	if err != nil {
		f.running = false
	}
}

// idle ends the feed when nobody waits.
func (f *feed) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 {
		f.running = false
	}
	return !f.running
}

// follow blocks in Redis for half a timeout at a time, so that a server that hangs is noticed while one
// that is merely quiet is not disturbed.
func (f *feed) follow(seen int64) {
	for !f.idle() {
		revision, err := f.await(seen)
		if err != nil {
			f.announce(err)
			return
		}
		if revision != seen {
			// Also when it is lower: a replica that had missed writes took over, and those who wait for
			// revisions that are no more have to hear of it.
			f.announce(nil)
			seen = revision
		}
	}
}

// await returns the current revision, after the next event or when the block is over.
func (f *feed) await(seen int64) (int64, error) {
	block := f.client.timeout / 2
	ctx, cancel := context.WithTimeout(context.Background(), block+f.client.timeout)
	defer cancel()
	entries, err := f.client.redis.XRead(ctx, &redis.XReadArgs{
		Streams: []string{f.keys.log, strconv.FormatInt(seen, 10) + "-0"},
		Count:   1,
		Block:   max(block, time.Millisecond), // 0 would be forever
	}).Result()
	if present(err) != nil {
		return 0, err
	}
	revision, err := f.client.redis.Get(ctx, f.keys.revision).Int64()
	if present(err) != nil {
		return 0, err
	}
	if revision == seen && len(entries) > 0 {
		// It would never block again.
		return 0, fmt.Errorf("%w: the event log is ahead of revision %d", errCorrupt, revision)
	}
	return revision, nil
}

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/store"
)

func (r *resource) Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]store.Event, error) {
	// A thousand watchers may call this at once, so the text is formatted only for an error.
	doing := func() string { return fmt.Sprintf("reading events after %d", after) }
	if after < 0 {
		return nil, fmt.Errorf("%s: %w", doing(), store.ErrGone)
	}
	if limit < 1 {
		return nil, nil
	}
	if wait <= 0 {
		return r.read(ctx, doing(), after, limit)
	}
	patience := time.NewTimer(wait)
	defer patience.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", doing(), err)
		}
		// The announcement is taken before the read, so that no event is missed between the two.
		events, news, reached := r.feed.look(after, limit)
		if !reached {
			var err error
			if events, err = r.read(ctx, doing(), after, limit); err != nil {
				return nil, err
			}
		}
		if len(events) > 0 {
			return events, nil
		}
		leave := r.feed.watch(after)
		select {
		case <-news.arrived:
			leave()
			if news.err != nil {
				return nil, r.client.translate(ctx, doing(), news.err)
			}
		case <-patience.C:
			leave()
			return nil, nil
		case <-ctx.Done():
			leave()
			return nil, fmt.Errorf("%s: %w", doing(), ctx.Err())
		}
	}
}

// read returns the log's events after a revision, in one round trip. Every revision has exactly one
// event, so a gap is visible: the first entry must be that of the next revision.
func (r *resource) read(ctx context.Context, doing string, after int64, limit int) ([]store.Event, error) {
	var current *redis.StringCmd
	var entries *redis.XMessageSliceCmd
	err := r.client.run(ctx, doing, func(ctx context.Context) error {
		_, err := r.client.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			// The revision is read first: a write between the two commands can then only add entries.
			current = pipe.Get(ctx, r.keys.revision)
			entries = pipe.XRangeN(ctx, r.keys.log, fmt.Sprintf("(%d-0", after), "+", int64(limit))
			return nil
		})
		return present(err)
	})
	if err != nil {
		return nil, err
	}
	revision, err := revisionOf(current)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	messages := entries.Val()
	if after > revision || len(messages) == 0 && after < revision {
		return nil, fmt.Errorf("%s: %w", doing, store.ErrGone)
	}
	events, err := decodeEvents(messages, after)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", doing, err)
	case len(events) == 0 && len(messages) > 0:
		return nil, fmt.Errorf("%s: %w", doing, store.ErrGone)
	default:
		return events, nil
	}
}

// revisionOf reads the current revision of a resource: store.Beginning before the first write.
func revisionOf(current *redis.StringCmd) (int64, error) {
	if errors.Is(current.Err(), redis.Nil) {
		return store.Beginning, nil
	}
	revision, err := current.Int64()
	if _, corrupt := errors.AsType[*strconv.NumError](err); corrupt {
		return 0, fmt.Errorf("%w: revision %q", errCorrupt, current.Val())
	}
	return revision, err
}

// decodeEvents reads log entries that follow a revision, up to the first gap or the first entry that cannot be read.
// It returns an error only if the first entry cannot be read.
func decodeEvents(messages []redis.XMessage, after int64) ([]store.Event, error) {
	events := make([]store.Event, 0, len(messages))
	for i, message := range messages {
		event, err := decodeEvent(message)
		if err != nil && i > 0 {
			return events, nil // the next call begins with this entry and returns the error
		}
		if err != nil {
			return nil, err
		}
		if event.Revision != after+1+int64(i) {
			break
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
	// An older build wrote no time.
	if at := field("at"); at != "" {
		if event.At, err = parseTime(at); err != nil {
			return store.Event{}, fmt.Errorf("%w: time of event %d", errCorrupt, revision)
		}
	}
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

// trimAtOnce is how many events one run of the script reads: Redis does nothing else while a script runs.
const trimAtOnce = 100

func (r *resource) Trim(ctx context.Context, olderThan time.Time) error {
	for {
		var more int
		err := r.client.run(ctx, "trimming events", func(ctx context.Context) error {
			var err error
			more, err = trimScript().Run(ctx, r.client.redis, []string{r.keys.log}, milliseconds(olderThan), trimAtOnce).Int()
			return err
		})
		if err != nil || more == 0 {
			return err
		}
	}
}

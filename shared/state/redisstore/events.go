package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/limits"
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
		// The announcement is taken before the read, so that no event between the two is missed.
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

// read returns the log's events after a revision, in one round trip. It returns ErrGone if the log does not hold the
// first of these events.
func (r *resource) read(ctx context.Context, doing string, after int64, limit int) ([]store.Event, error) {
	events, revision, err := r.client.readLog(ctx, doing, r.keys, after, limit)
	if err == nil && len(events) == 0 && after != revision {
		return nil, fmt.Errorf("%s: %w", doing, store.ErrGone)
	}
	return events, err
}

// readLog returns a page of a log's events after a revision, and the current revision. Every revision has exactly one
// event, so a gap is visible: each entry must follow the previous one. It returns no events after a gap. If the counter
// of revisions fell behind the log, the current revision is the revision of the entry after the gap.
func (c *Client) readLog(ctx context.Context, doing string, k keys, after int64, limit int) (events []store.Event, revision int64, err error) {
	var parts []any
	if err := c.run(ctx, doing, func(ctx context.Context) error {
		var err error
		keys := []string{k.revision, k.log}
		parts, err = eventsScript().Run(ctx, c.redis, keys, after, pageLimit(limit), limits.PageBytes).Slice()
		return err
	}); err != nil {
		return nil, 0, err
	}
	if len(parts) != 2 {
		return nil, 0, fmt.Errorf("%s: %w: %d parts of a log", doing, errCorrupt, len(parts))
	}
	if revision, err = strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64); err != nil {
		return nil, 0, fmt.Errorf("%s: %w: revision %q", doing, errCorrupt, parts[0])
	}
	messages, err := streamMessages(parts[1])
	if err == nil {
		events, err = decodeEvents(messages, after)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", doing, err)
	}
	if len(events) == 0 && len(messages) > 0 && revision == after {
		revision, err = strconv.ParseInt(strings.TrimSuffix(messages[0].ID, "-0"), 10, 64)
	}
	return events, revision, err
}

// streamMessages reads the entries of a log from the reply of a script.
func streamMessages(reply any) ([]redis.XMessage, error) {
	entries, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: reply %T instead of entries", errCorrupt, reply)
	}
	messages := make([]redis.XMessage, 0, len(entries))
	for _, entry := range entries {
		pair, ok := entry.([]any)
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("%w: reply %T instead of an entry", errCorrupt, entry)
		}
		fields, err := stringList(pair[1])
		if err != nil {
			return nil, err
		}
		message := redis.XMessage{ID: fmt.Sprint(pair[0]), Values: make(map[string]any, len(fields)/2)}
		for i := 0; i+1 < len(fields); i += 2 {
			message.Values[fields[i]] = fields[i+1]
		}
		messages = append(messages, message)
	}
	return messages, nil
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
		if event.Revision != after+1 && event.Follows != after {
			break
		}
		events, after = append(events, event), event.Revision
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
	event := store.Event{Type: store.EventType(field("type")), Revision: revision, Follows: revision - 1}
	if follows := field("follows"); follows != "" {
		if event.Follows, err = strconv.ParseInt(follows, 10, 64); err != nil {
			return store.Event{}, fmt.Errorf("%w: event %d follows %q", errCorrupt, revision, follows)
		}
	}
	// Earlier builds wrote no time.
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
		// The objects of the two records do not share their memory.
		event.Record, err = decode(name, strings.Clone(field("previous")), activity)
		event.Record.Revision = revision
	default:
		err = fmt.Errorf("reading event %d: %w: type %q", revision, store.ErrFormat, event.Type)
	}
	return event, err
}

// trimAtOnce is how many events one run of the script reads, unless their size exceeds the bytes of a page.
const trimAtOnce = 100

func (r *resource) Trim(ctx context.Context, olderThan time.Time) error {
	for {
		var more int
		err := r.client.run(ctx, "trimming events", func(ctx context.Context) error {
			var err error
			more, err = trimScript().Run(ctx, r.client.redis, []string{r.keys.log}, milliseconds(olderThan), trimAtOnce, limits.PageBytes).Int()
			return err
		})
		if err != nil || more == 0 {
			return err
		}
	}
}

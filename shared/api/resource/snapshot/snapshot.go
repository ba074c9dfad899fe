// Package snapshot reads a consistent snapshot of the records of a store page by page, while others write. Source: ADR-0020.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// Reader reads the records that a query selects, page by page. All pages show the state at the revision of the first page: writes
// since then are undone with the previous records of the event log. The reader keeps the names that were written since then, and
// at most a page of their records. It is not safe for concurrent use.
//
// A use of an object is not a write: a record may have a later activity.
type Reader struct {
	// Query selects the records. Its After is the name up to which they have been returned. Its Limit may be changed between pages.
	Query store.Query
	// Latest reports whether each page shows the state at its own revision instead.
	Latest bool
	// Revision is the revision of the first page. 0: no page has been read.
	Revision int64
	// Remaining is the number of records after the last page, when that was read.
	Remaining int64
	// Done reports whether the last page has been returned.
	Done bool

	state store.Store
	// seen is the revision up to which events have been read.
	seen int64
	// written are the names after Query.After that were written since the first page and that the query selects now or
	// selected then.
	written map[string]written
	// kept is the size of the records in written.
	kept int
}

// written is what a name held at the revision of the first page.
type written struct {
	// event is the revision of the event whose previous record it is. 0: nothing that the query selects.
	event int64
	// record is that record, unless the walk keeps too many of them.
	record *store.Record
}

// New returns a reader of the records that a query selects. It reads nothing yet.
func New(state store.Store, query store.Query) *Reader {
	return &Reader{state: state, Query: query, written: map[string]written{}}
}

// Next returns the next page, which may be empty. Errors: ErrGone if the event log does not reach back to the first page, and
// the errors of the store.
func (r *Reader) Next(ctx context.Context) ([]store.Record, error) {
	page, err := r.state.List(ctx, r.Query)
	if errors.Is(err, store.ErrUnavailable) && r.Revision != 0 && ctx.Err() == nil {
		// One slow read must not be the end of a long list.
		page, err = r.state.List(ctx, r.Query)
	}
	if err != nil {
		return nil, err
	}
	if r.Revision == 0 {
		r.Revision, r.seen = page.Revision, page.Revision
	}
	if !r.Latest {
		if err := r.follow(ctx, page.Revision); err != nil {
			return nil, err
		}
	}
	records := page.Records
	r.Remaining, r.Done = page.Remaining, page.Remaining == 0 || len(records) == 0
	last := ""
	if !r.Done {
		last = records[len(records)-1].Name
	}
	if len(r.written) > 0 {
		if records, last, err = r.undo(ctx, records, last); err != nil {
			return nil, err
		}
	}
	r.Query.After = last
	return records, nil
}

// follow notes the events up to a revision. It may note later ones, which are undone as well.
func (r *Reader) follow(ctx context.Context, revision int64) error {
	if revision < r.seen {
		return fmt.Errorf("revision %d after %d: %w", revision, r.seen, store.ErrGone)
	}
	for r.seen < revision {
		events, err := r.state.Events(ctx, r.seen, limits.PageObjects, 0)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("no events after %d of %d: %w", r.seen, revision, store.ErrGone)
		}
		for _, event := range events {
			r.note(event)
			r.seen = event.Revision
		}
	}
	return nil
}

// note notes the first event of a name. Names that the query selects neither before nor after an event do not matter: an
// event by which they enter the selection follows.
func (r *Reader) note(event store.Event) {
	name := event.Record.Name
	if _, known := r.written[name]; known || name <= r.Query.After {
		return
	}
	switch {
	case event.Previous != nil && r.selects(*event.Previous):
		then := written{event: event.Revision}
		if size := len(event.Previous.Object); r.kept+size <= limits.PageBytes {
			then.record = event.Previous
			r.kept += size
		}
		r.written[name] = then
	case event.Type != store.Deleted && r.selects(event.Record):
		r.written[name] = written{}
	}
}

// selects reports whether the query selects a record.
func (r *Reader) selects(record store.Record) bool {
	return strings.HasPrefix(record.Name, r.Query.Prefix) && (r.Query.Owners == nil || slices.Contains(r.Query.Owners, record.Owner))
}

// undo returns the records of a page as they were at the revision of the first one. Last is the name with which the page
// ends; empty for the last page. The page that it returns may end earlier, because the records that were removed or replaced
// meanwhile have a size as well.
func (r *Reader) undo(ctx context.Context, page []store.Record, last string) ([]store.Record, string, error) {
	var names []string
	for name := range r.written {
		if last == "" || name <= last {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	records := make([]store.Record, 0, len(page))
	size := 0
	// add reports whether there was room.
	add := func(record store.Record) bool {
		size += len(record.Object)
		if size > limits.PageBytes && len(records) > 0 {
			last, r.Done = records[len(records)-1].Name, false
			r.Remaining += int64(len(page)) + 1
			return false
		}
		records = append(records, record)
		return true
	}
	room := true
	for _, name := range names {
		for room && len(page) > 0 && page[0].Name < name {
			room, page = add(page[0]), page[1:]
		}
		if len(page) > 0 && page[0].Name == name {
			page = page[1:]
		}
		then := r.written[name]
		if room && then.event != 0 {
			record, err := r.before(ctx, then)
			if err != nil {
				return nil, "", err
			}
			room = add(record)
		}
		if !room {
			break
		}
	}
	for room && len(page) > 0 {
		room, page = add(page[0]), page[1:]
	}
	for _, name := range names {
		if !r.Done && name > last {
			break
		}
		if record := r.written[name].record; record != nil {
			r.kept -= len(record.Object)
		}
		delete(r.written, name)
	}
	return records, last, nil
}

// before returns the record that a name held.
func (r *Reader) before(ctx context.Context, then written) (store.Record, error) {
	if then.record != nil {
		return *then.record, nil
	}
	events, err := r.state.Events(ctx, then.event-1, 1, 0)
	if err != nil {
		return store.Record{}, err
	}
	if len(events) == 0 || events[0].Previous == nil {
		return store.Record{}, fmt.Errorf("no event %d: %w", then.event, store.ErrGone)
	}
	return *events[0].Previous, nil
}

package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// walk reads the records that a query selects, page by page. All pages show the state at the revision of the first one: what
// was written meanwhile is undone with the previous records of the event log. It keeps the names that were written
// meanwhile, and at most a page of their records. Source: ADR-0020.
//
// A use of an object is not a write: a record may be newer in this respect.
type walk struct {
	state store.Store
	// query selects the records. Its After is the name up to which they have been returned.
	query store.Query
	// present tells that each page shows the state at its own revision.
	present bool
	// revision is that of the first page. 0: no page has been read.
	revision int64
	// remaining is the number of records after the last page, when that was read.
	remaining int64
	// done tells that the last page has been returned.
	done bool

	// seen is the revision up to which events have been read.
	seen int64
	// written are the names after query.After that were written since the first page and that the query selects now or
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

func newWalk(state store.Store, query store.Query) *walk {
	return &walk{state: state, query: query, written: map[string]written{}}
}

// next returns the next page, which may be empty. Errors: ErrGone if the event log does not reach back to the first page, and
// those of the store.
func (w *walk) next(ctx context.Context) ([]store.Record, error) {
	page, err := w.state.List(ctx, w.query)
	if errors.Is(err, store.ErrUnavailable) && w.revision != 0 && ctx.Err() == nil {
		// One slow read must not be the end of a long list.
		page, err = w.state.List(ctx, w.query)
	}
	if err != nil {
		return nil, err
	}
	if w.revision == 0 {
		w.revision, w.seen = page.Revision, page.Revision
	}
	if !w.present {
		if err := w.follow(ctx, page.Revision); err != nil {
			return nil, err
		}
	}
	records := page.Records
	w.remaining, w.done = page.Remaining, page.Remaining == 0 || len(records) == 0
	last := ""
	if !w.done {
		last = records[len(records)-1].Name
	}
	if len(w.written) > 0 {
		if records, last, err = w.undo(ctx, records, last); err != nil {
			return nil, err
		}
	}
	w.query.After = last
	return records, nil
}

// follow notes the events up to a revision. It may note later ones, which are undone as well.
func (w *walk) follow(ctx context.Context, revision int64) error {
	if revision < w.seen {
		return fmt.Errorf("revision %d after %d: %w", revision, w.seen, store.ErrGone)
	}
	for w.seen < revision {
		events, err := w.state.Events(ctx, w.seen, limits.PageObjects, 0)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("no events after %d of %d: %w", w.seen, revision, store.ErrGone)
		}
		for _, event := range events {
			w.note(event)
			w.seen = event.Revision
		}
	}
	return nil
}

// note notes the first event of a name. Names that the query selects neither before nor after an event do not matter: an
// event by which they enter the selection follows.
func (w *walk) note(event store.Event) {
	name := event.Record.Name
	if _, known := w.written[name]; known || name <= w.query.After {
		return
	}
	switch {
	case event.Previous != nil && w.selects(*event.Previous):
		then := written{event: event.Revision}
		if size := len(event.Previous.Object); w.kept+size <= limits.PageBytes {
			then.record = event.Previous
			w.kept += size
		}
		w.written[name] = then
	case event.Type != store.Deleted && w.selects(event.Record):
		w.written[name] = written{}
	}
}

// selects reports whether the query selects a record.
func (w *walk) selects(record store.Record) bool {
	return strings.HasPrefix(record.Name, w.query.Prefix) && (w.query.Owners == nil || slices.Contains(w.query.Owners, record.Owner))
}

// undo returns the records of a page as they were at the revision of the first one. Last is the name with which the page
// ends; empty for the last page. The page that it returns may end earlier, because the records that were removed or replaced
// meanwhile have a size as well.
func (w *walk) undo(ctx context.Context, page []store.Record, last string) ([]store.Record, string, error) {
	var names []string
	for name := range w.written {
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
			last, w.done = records[len(records)-1].Name, false
			w.remaining += int64(len(page)) + 1
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
		then := w.written[name]
		if room && then.event != 0 {
			record, err := w.before(ctx, then)
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
		if !w.done && name > last {
			break
		}
		if record := w.written[name].record; record != nil {
			w.kept -= len(record.Object)
		}
		delete(w.written, name)
	}
	return records, last, nil
}

// before returns the record that a name held.
func (w *walk) before(ctx context.Context, then written) (store.Record, error) {
	if then.record != nil {
		return *then.record, nil
	}
	events, err := w.state.Events(ctx, then.event-1, 1, 0)
	if err != nil {
		return store.Record{}, err
	}
	if len(events) == 0 || events[0].Previous == nil {
		return store.Record{}, fmt.Errorf("no event %d: %w", then.event, store.ErrGone)
	}
	return *events[0].Previous, nil
}

package platformconfig

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

// The history has the last minRevisions writes of the configuration and the writes that are younger than keepRevisions, up
// to maxRevisions. It does not have writes that change only metadata. Source: ADR-0024.
const (
	minRevisions  = 20
	maxRevisions  = 200
	keepRevisions = 30 * 24 * time.Hour
	// maxReason is the length at which a shown reason is cut, in bytes.
	maxReason = 500
	// eventsAtOnce bounds how many events one read returns. MaxEvents bounds how many events are read for one history.
	eventsAtOnce = 50
	maxEvents    = 2000
)

// History returns the latest revisions, each with its author, its time and its changes, and the configuration before the
// oldest of them. Errors: NotFound for another name, ServiceUnavailable. Source: ADR-0015.
func (c *Current) History(ctx context.Context, in resource.GetInput) (*model.ConfigHistory, error) {
	if in.Name != Name {
		return nil, apierror.NotFound(Definition.GroupResource(), in.Name)
	}
	history := &model.ConfigHistory{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	history.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigHistory"))
	if c.FromFile() {
		return history, nil
	}
	revisions, err := c.revisions(ctx)
	if err != nil {
		return nil, err
	}
	for _, revision := range revisions {
		history.Status.Revisions = append(history.Status.Revisions, model.ConfigRevision{
			Revision: strconv.FormatInt(revision.number, 10), Author: revision.document.Author, Time: revision.document.Time,
			RolledBackTo: revision.document.RolledBackTo, Reason: revision.reason(), Changes: revision.changes,
		})
	}
	return history, nil
}

// revision is one write: the document that it stored, and the previous document.
type revision struct {
	number             int64
	document, previous *document
	changes            []model.ConfigChange
}

// changesStatus reports whether a write changed more than metadata.
func (r *revision) changesStatus() bool {
	return slices.ContainsFunc(r.changes, func(change model.ConfigChange) bool { return strings.HasPrefix(change.Path, "status.") })
}

// reason returns the reason that the author gave for the write. Empty: the author gave none. An annotation with the same
// text is left from an earlier write.
func (r *revision) reason() string {
	cause := r.document.Metadata.Annotations[model.ChangeCauseAnnotation]
	if cause == r.previous.Metadata.Annotations[model.ChangeCauseAnnotation] {
		return ""
	}
	return strings.ToValidUTF8(cause[:min(len(cause), maxReason)], "")
}

// revisions returns the latest writes, newest first, and at the end the configuration before the oldest write, if it is
// known. It reads them from the event log: each write is one event, which includes the previous record.
func (c *Current) revisions(ctx context.Context) ([]revision, error) {
	record, err := c.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, translateError(err)
	}
	var list []revision
	oldest := c.Now().Add(-keepRevisions)
	var replaced *store.Record
	for end, eventCount := record.Revision, 0; end > store.Beginning && eventCount < maxEvents; {
		events, err := c.eventsUntil(ctx, end)
		if err != nil {
			return nil, translateError(err)
		}
		if len(events) == 0 {
			break
		}
		for _, event := range slices.Backward(events) {
			revision, err := revisionOf(event)
			if err != nil {
				return nil, err
			}
			if len(list) >= minRevisions && (len(list) >= maxRevisions || revision.document.Time.Time.Before(oldest)) {
				return appendReplaced(list, replaced)
			}
			if revision.changesStatus() {
				list = append(list, revision)
				replaced = event.Previous
				if event.Type == store.Created {
					replaced = new(initialRecord())
				}
			}
		}
		eventCount += len(events)
		end = events[0].Follows
	}
	if len(list) == 0 {
		// The log no longer has the last write that changed the status.
		latest, err := revisionOf(store.Event{Revision: record.Revision, Record: record})
		if err != nil {
			return nil, err
		}
		list = append(list, latest)
	}
	return appendReplaced(list, replaced)
}

// appendReplaced appends the record that the oldest revision replaced. Nil: it is not known.
func appendReplaced(list []revision, replaced *store.Record) ([]revision, error) {
	if replaced == nil {
		return list, nil
	}
	original, err := decodeRecord(*replaced)
	if err != nil {
		return nil, err
	}
	return append(list, revision{number: replaced.Revision, document: original, previous: original}), nil
}

// eventsUntil returns the last events up to a revision, at most eventsAtOnce, oldest first. It returns none if the log does
// not reach back to that revision.
func (c *Current) eventsUntil(ctx context.Context, end int64) ([]store.Event, error) {
	after := max(store.Beginning, end-eventsAtOnce)
	read := func(after int64, limit int64) ([]store.Event, error) {
		return c.Store.Events(ctx, after, int(limit), 0)
	}
	events, err := read(after, end-after)
	// The log is shorter: its first event is between gone and after.
	for gone := after; errors.Is(err, store.ErrGone) && gone < end; {
		after = end
		for after-gone > 1 {
			middle := gone + (after-gone)/2
			if _, err = read(middle, 1); errors.Is(err, store.ErrGone) {
				gone = middle
			} else if err != nil {
				return nil, err
			} else {
				after = middle
			}
		}
		// The first event moves if the log is trimmed meanwhile.
		gone = after
		events, err = read(after, end-after)
	}
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	// A page may have fewer events than the limit.
	for err == nil && len(events) > 0 && events[len(events)-1].Revision < end {
		last := events[len(events)-1].Revision
		var more []store.Event
		if more, err = read(last, end-last); len(more) == 0 {
			break
		}
		events = append(events, more...)
	}
	return events, err
}

// revisionOf returns the write that an event reports.
func revisionOf(event store.Event) (revision, error) {
	result := revision{number: event.Revision}
	var err error
	if result.document, err = decodeRecord(event.Record); err != nil {
		return result, err
	}
	switch {
	case event.Type == store.Created:
		result.previous = &document{}
	case event.Previous == nil:
		result.previous = result.document // the earlier record is no longer known
	default:
		if result.previous, err = decodeRecord(*event.Previous); err != nil {
			return result, err
		}
	}
	result.changes, err = difference(result.previous, result.document)
	return result, err
}

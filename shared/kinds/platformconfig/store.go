package platformconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

const (
	// maxDocument is the maximum size of a stored configuration, in bytes. Every function reads the configuration.
	maxDocument = 256 << 10
	// fileEvery is the time between two checks of a file while a watch waits.
	fileEvery = time.Second
)

// records is the store of the one Config: the state, or a file, which is read-only. The Config exists before the first
// write. A process that reads a new version here puts it into effect.
type records struct {
	store.Store
	current *Current
}

// Get implements store.Store.
func (r records) Get(ctx context.Context, name string) (store.Record, error) {
	if name != Name {
		return store.Record{}, store.ErrNotFound
	}
	r.current.mu.Lock()
	defer r.current.mu.Unlock()
	return r.read(ctx)
}

// read checks for a new version and returns the record to show. A version that was refused is shown, so that it can be
// corrected, unless it cannot be decoded. The caller holds mu of Current.
func (r records) read(ctx context.Context) (store.Record, error) {
	record, err := r.current.check(ctx)
	now := r.current.version.Load()
	switch invalid := (*refusal)(nil); {
	case now != nil && (r.current.FromFile() || err == nil && r.current.refusal != nil && r.current.refusal.undecodable):
		return now.record, nil
	case errors.As(err, &invalid) && !r.current.FromFile():
		return record, nil
	default:
		return record, err
	}
}

// List implements store.Store.
func (r records) List(ctx context.Context, query store.Query) (store.Page, error) {
	r.current.mu.Lock()
	defer r.current.mu.Unlock()
	record, err := r.read(ctx)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{Revision: record.Revision}
	if record.Revision == store.Beginning {
		if page, err = r.Store.List(ctx, store.Query{Limit: 1}); err != nil {
			return store.Page{}, err
		}
	}
	if query.After < Name {
		page.Records = []store.Record{record}
	}
	return page, nil
}

// Events implements store.Store. The first write is an update, because the Config exists before it.
func (r records) Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]store.Event, error) {
	if r.current.FromFile() {
		return r.fileEvents(ctx, after, wait)
	}
	events, err := r.Store.Events(ctx, after, limit, wait)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	events = slices.Clone(events)
	for i := range events {
		if events[i].Type == store.Created {
			before := initialRecord()
			events[i].Type, events[i].Previous = store.Updated, &before
		}
	}
	if last := events[len(events)-1]; last.Type == store.Updated {
		r.current.installRecord(ctx, last.Record)
	}
	return events, nil
}

// fileEvents returns the changes of a file. It knows only the latest change.
func (r records) fileEvents(ctx context.Context, after int64, wait time.Duration) ([]store.Event, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		if err := r.current.Refresh(ctx); err != nil {
			return nil, err
		}
		now := r.current.version.Load()
		switch after {
		case now.revision:
		case now.previous.Revision:
			return []store.Event{{Type: store.Updated, Revision: now.revision, Record: now.record, Previous: &now.previous}}, nil
		default:
			return nil, store.ErrGone
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end.C:
			return nil, nil
		case <-time.After(fileEvery):
		}
	}
}

// Update implements store.Store. The first update creates the record.
func (r records) Update(ctx context.Context, changed store.Record) (revision int64, err error) {
	if changed.Revision == store.Beginning {
		revision, err = r.Create(ctx, changed)
		if errors.Is(err, store.ErrExists) {
			err = store.ErrConflict
		}
	} else {
		revision, err = r.Store.Update(ctx, changed)
	}
	if err == nil {
		changed.Revision = revision
		r.current.installRecord(ctx, changed)
	}
	return revision, err
}

// writeStore is the store of one write: it checks how the write affects callers, records the author, and seals secrets again
// that an older key has sealed. In a dry run, it does everything except the write.
type writeStore struct {
	records
	writer *Writer
	*write
	// base is the record on which the write is based.
	base store.Record
}

// Get implements store.Store.
func (s *writeStore) Get(ctx context.Context, name string) (store.Record, error) {
	record, err := s.records.Get(ctx, name)
	s.base, s.warnings = record, nil
	return record, err
}

// Update implements store.Store. Errors: the errors of the state; RequestEntityTooLarge; the errors of checkImpact.
func (s *writeStore) Update(ctx context.Context, changed store.Record) (int64, error) {
	var fields map[string]json.RawMessage
	var newContent content
	if err := errors.Join(json.Unmarshal(changed.Object, &fields), json.Unmarshal(changed.Object, &newContent)); err != nil {
		return 0, fmt.Errorf("encoding the configuration: %w", err)
	}
	for path, sealed := range newContent.Sealed {
		if !s.ring.Stale(sealed) {
			continue
		}
		if plain, err := s.ring.Open(sealed, sealContext(path)); err == nil {
			if newContent.Sealed[path], err = s.ring.Seal(plain, sealContext(path)); err != nil {
				return 0, err
			}
		}
	}
	base, err := decodeRecord(s.base)
	if err != nil {
		return 0, err
	}
	next, err := s.checkImpact(ctx, base, &newContent)
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"rolledBackTo", "limits", "trial"} {
		delete(fields, name)
	}
	for name, value := range map[string]any{
		"sealed": newContent.Sealed, "author": s.caller.Owner.String(), "time": metav1.NewTime(s.current.Now().UTC().Truncate(time.Second)), "rolledBackTo": s.rolledBackTo,
		"limits": next.limits, "trial": next.trial,
	} {
		text, err := json.Marshal(value)
		if err != nil {
			return 0, fmt.Errorf("encoding the configuration: %w", err)
		}
		if string(text) != "null" && string(text) != `""` && string(text) != "{}" {
			fields[name] = text
		}
	}
	if changed.Object, err = json.Marshal(fields); err != nil {
		return 0, fmt.Errorf("encoding the configuration: %w", err)
	}
	if len(changed.Object) > maxDocument {
		return 0, apierror.TooLarge(fmt.Sprintf("the configuration is larger than %d bytes", maxDocument))
	}
	if s.dryRun {
		return changed.Revision, nil
	}
	return s.records.Update(ctx, changed)
}

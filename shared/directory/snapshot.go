package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// snapshots has all objects of a resource at the latest revision that the process has read. T is the decoded form of an
// object, and V is computed from all of them and never changed.
type snapshots[T, V any] struct {
	store store.Store
	// resource names the objects in errors.
	resource string
	view     func(byName map[string]*T) *V
	current  atomic.Pointer[snapshot[T, V]]
	// mu is held while a newer snapshot is read.
	mu sync.Mutex
}

// snapshot has all objects at a revision.
type snapshot[T, V any] struct {
	revision int64
	byName   map[string]*T
	view     *V
}

func (s *snapshots[T, V]) newSnapshot(revision int64, byName map[string]*T) *snapshot[T, V] {
	return &snapshot[T, V]{revision: revision, byName: byName, view: s.view(byName)}
}

// latest returns the objects that the process has read last; nil: none.
func (s *snapshots[T, V]) latest() *V {
	if now := s.current.Load(); now != nil {
		return now.view
	}
	return nil
}

// readRevision returns the objects at a revision or a later one; 0 accepts any revision. One request reads the newer objects, and
// the others wait for it.
func (s *snapshots[T, V]) readRevision(ctx context.Context, revision int64) (*V, error) {
	switch now := s.current.Load(); {
	case now == nil || now.revision < revision:
	case now.revision == revision || revision == 0:
		return now.view, nil
	default:
		// The request is older than the last write, or the state has lost that write. Source: ADR-0041.
		if _, err := s.store.Events(ctx, now.revision, 1, 0); !errors.Is(err, store.ErrGone) {
			return now.view, err
		}
		s.current.CompareAndSwap(now, nil)
	}
	if revision == store.Beginning {
		// No object was ever written.
		s.current.CompareAndSwap(nil, s.newSnapshot(revision, nil))
		return s.current.Load().view, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.current.Load()
	if now != nil && now.revision >= revision {
		return now.view, nil
	}
	next, err := s.read(ctx, now, revision)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", s.resource, err)
	}
	s.current.Store(next)
	return next.view, nil
}

// read returns the objects that were written since the last read, or all objects if the process has none.
func (s *snapshots[T, V]) read(ctx context.Context, now *snapshot[T, V], revision int64) (*snapshot[T, V], error) {
	if now != nil {
		next, err := s.follow(ctx, now, revision)
		if !errors.Is(err, store.ErrGone) {
			return next, err
		}
	}
	byName, query, first := map[string]*T{}, store.Query{}, int64(0)
	for {
		page, err := s.store.List(ctx, query)
		if err != nil {
			return nil, err
		}
		if first == 0 {
			first = page.Revision
		}
		for _, record := range page.Records {
			query.After = record.Name
			if byName[record.Name], err = decode[T](record); err != nil {
				return nil, err
			}
		}
		if page.Remaining > 0 && len(page.Records) > 0 {
			continue
		}
		listed := s.newSnapshot(first, byName)
		if page.Revision == first {
			return listed, nil
		}
		// Objects were written while the pages were read.
		return s.follow(ctx, listed, page.Revision)
	}
}

// follow returns the objects with all changes up to a revision at least.
func (s *snapshots[T, V]) follow(ctx context.Context, now *snapshot[T, V], revision int64) (*snapshot[T, V], error) {
	byName, reached := maps.Clone(now.byName), now.revision
	if byName == nil {
		byName = map[string]*T{}
	}
	for reached < revision {
		events, err := s.store.Events(ctx, reached, limits.PageObjects, 0)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("no event after revision %d, but revision %d: %w", reached, revision, store.ErrGone)
		}
		for _, event := range events {
			reached = event.Revision
			if event.Type == store.Deleted {
				delete(byName, event.Record.Name)
				continue
			}
			if byName[event.Record.Name], err = decode[T](event.Record); err != nil {
				return nil, err
			}
		}
	}
	return s.newSnapshot(reached, byName), nil
}

// decode returns the decoded form of the object of a record.
func decode[T any](record store.Record) (*T, error) {
	found := new(T)
	if err := json.Unmarshal(record.Object, found); err != nil {
		return nil, fmt.Errorf("reading %q: %w", record.Name, err)
	}
	return found, nil
}

package resource

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"management.platform.sh/shared/state/store"
)

// WatchEvent is one change as a caller of a watch sees it, or a bookmark.
type WatchEvent[T Object] struct {
	// Type is ADDED, MODIFIED, DELETED or BOOKMARK.
	Type  watch.EventType
	shown *shown[T]
}

// Object returns the object as the API shows it; the object of a bookmark has only a resource version. It is shared by all
// watchers of this process and never changed.
func (e WatchEvent[T]) Object() (T, error) { return e.shown.get() }

// Encoded returns the object as encode encodes it. Watchers that request the same form at about the same time share the
// text, which is never changed: for one form, encode must return the same text to all of them.
func (e WatchEvent[T]) Encoded(form string, encode func(T) ([]byte, error)) ([]byte, error) {
	return e.shown.encoded(form, encode)
}

// maxShown is the number of records that watchers share, and maxShownBytes their size: an object and its texts take a few
// times the memory of its record. encodedFor is how long they share the text of a record, which may
// depend on the clock and on the configuration. Source: ADR-0007.
const (
	maxShown      = 512
	maxShownBytes = 4 << 20
	encodedFor    = time.Second
)

// shown is a record on its way to watchers: decoded once, and encoded once for each form.
type shown[T Object] struct {
	registry *Registry[T]
	record   store.Record

	mu      sync.Mutex
	decoded bool
	object  T
	err     error
	texts   map[string]encodedText
	// known are the records that the status depends on, and read is when they were.
	known map[string]store.Record
	read  time.Time
}

type encodedText struct {
	text []byte
	made time.Time
}

func newShown[T Object](r *Registry[T], record store.Record) *shown[T] {
	return &shown[T]{registry: r, record: record}
}

func (s *shown[T]) get() (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.getLocked()
}

func (s *shown[T]) getLocked() (T, error) {
	if !s.decoded {
		s.object, s.err = s.registry.Decode(s.record)
		if rules, ok := s.related(); ok && s.err == nil && s.known != nil {
			rules.Relate(s.object, s.known)
		}
		s.decoded = true
	}
	return s.object, s.err
}

// related returns the rules of a kind whose status depends on other objects.
func (s *shown[T]) related() (Relations[T], bool) {
	if s.registry == nil {
		return nil, false
	}
	return s.registry.Relations, s.registry.Relations != nil
}

// relate reads what the status of the objects of some events depends on, of all of them together, unless that was read a
// moment ago for another watcher.
func (w *Watcher[T]) relate(ctx context.Context, events []WatchEvent[T]) error {
	now := w.registry.Now()
	var names []string
	var affected []*shown[T]
	for _, event := range events {
		rules, ok := event.shown.related()
		if !ok {
			return nil
		}
		if read := event.shown.readAt(); !read.IsZero() && now.Sub(read) < encodedFor {
			continue
		}
		object, err := event.Object()
		if err != nil {
			return err
		}
		if needs := rules.Related(object); len(needs) > 0 {
			affected = append(affected, event.shown)
			for _, name := range needs {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	known, err := w.registry.related(ctx, names, nil)
	if err != nil {
		return w.translate(err)
	}
	for _, each := range affected {
		each.setKnown(known, now)
	}
	return nil
}

func (s *shown[T]) readAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// setKnown decodes the object anew: the one that was decoded may be in use.
func (s *shown[T]) setKnown(known map[string]store.Record, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.read, s.decoded, s.texts = known, now, false, nil
}

func (s *shown[T]) encoded(form string, encode func(T) ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var now time.Time
	if s.registry != nil {
		now = s.registry.Now()
	}
	if known, found := s.texts[form]; found {
		if now.Sub(known.made) < encodedFor {
			return known.text, nil
		}
		// The fields that Rules.Observe fills in may have changed.
		s.decoded = false
	}
	object, err := s.getLocked()
	if err != nil {
		return nil, err
	}
	text, err := encode(object)
	if err != nil {
		return nil, err
	}
	if s.texts == nil {
		s.texts = map[string]encodedText{}
	}
	s.texts[form] = encodedText{text: text, made: now}
	return text, nil
}

// shownKey is the key of a record of an event. It contains the address of the text of the event, which all its watchers
// share: a store that was reset may use a revision twice, but the address of a text that is still known here is not reused.
type shownKey struct {
	object   *byte
	revision int64
}

// shownRecord returns the record of an event in the form that its watchers share.
func (r *Registry[T]) shownRecord(record store.Record) *shown[T] {
	if len(record.Object) == 0 {
		return newShown(r, record)
	}
	key := shownKey{object: &record.Object[0], revision: record.Revision}
	return r.cache().shown.getOrAdd(key, newShown(r, record), len(record.Object))
}

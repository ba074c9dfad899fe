package resource

import (
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

// Object returns the object as the API shows it; that of a bookmark has only a resource version. It is shared by all
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
		s.decoded = true
	}
	return s.object, s.err
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
		// What the rules observe may have changed.
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

// watched are the records of the latest events. The key contains the address of the text of an event, which all its watchers
// share: a store that was reset may use a revision twice, but the address of a text that is still known here is not reused.
type watched[T Object] struct {
	once  sync.Once
	shown *bounded[shownKey, *shown[T]]
}

type shownKey struct {
	object   *byte
	revision int64
}

func (w *watched[T]) of(r *Registry[T], record store.Record) *shown[T] {
	if len(record.Object) == 0 {
		return newShown(r, record)
	}
	w.once.Do(func() { w.shown = newBounded[shownKey, *shown[T]](maxShown, maxShownBytes) })
	key := shownKey{object: &record.Object[0], revision: record.Revision}
	return w.shown.getOrAdd(key, newShown(r, record), len(record.Object))
}

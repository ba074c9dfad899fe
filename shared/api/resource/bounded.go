package resource

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// bounded keeps the values that were used last, up to a number of them and to a number of bytes. It is safe for concurrent
// use.
type bounded[K comparable, V any] struct {
	bytes int

	mu    sync.Mutex
	cache *simplelru.LRU[K, sized[V]]
	used  int
}

type sized[V any] struct {
	value V
	size  int
}

func newBounded[K comparable, V any](count, bytes int) *bounded[K, V] {
	b := &bounded[K, V]{bytes: bytes}
	// Only a size below one is an error.
	b.cache, _ = simplelru.NewLRU(count, func(_ K, old sized[V]) { b.used -= old.size })
	return b
}

func (b *bounded[K, V]) get(key K) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.cache.Get(key)
	return found.value, ok
}

// add keeps a value of a size in bytes, in place of the one with that key. It does not keep a value that is larger than all
// values may be together.
func (b *bounded[K, V]) add(key K, value V, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(key, value, size)
}

// getOrAdd returns the value with that key, or adds one.
func (b *bounded[K, V]) getOrAdd(key K, value V, size int) V {
	b.mu.Lock()
	defer b.mu.Unlock()
	if found, ok := b.cache.Get(key); ok {
		return found.value
	}
	b.put(key, value, size)
	return value
}

func (b *bounded[K, V]) put(key K, value V, size int) {
	b.cache.Remove(key)
	if size > b.bytes {
		return
	}
	b.used += size
	b.cache.Add(key, sized[V]{value, size})
	for b.used > b.bytes {
		b.cache.RemoveOldest()
	}
}

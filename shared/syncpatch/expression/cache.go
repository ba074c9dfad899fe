package expression

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxCompiled bounds the memory of the cache of compiled expressions, in bytes. Source: ADR-0014.
const maxCompiled = 8 << 20

type compilation struct {
	expression *Expression
	err        error
}

// bytes returns an upper bound on the memory of a compilation: at most 200 bytes for each byte of the text, which is a
// number or a name with an operator, and 200 for each step of a regular expression.
func (c compilation) bytes(text string) int {
	const own, each = 4 << 10, 200
	if c.expression == nil {
		return own + len(text)
	}
	return own + each*(len(text)+c.expression.steps)
}

// cache keeps the entries that were used last, up to a number of bytes. It is safe for concurrent use.
type cache struct {
	most int

	mu   sync.Mutex
	size int
	kept *simplelru.LRU[string, compilation]
}

func newCache(most int) *cache {
	c := &cache{most: most}
	// The bound on bytes also bounds the number of entries: each has at least 4 KiB.
	kept, err := simplelru.NewLRU(most/(4<<10)+1, func(text string, old compilation) { c.size -= old.bytes(text) })
	if err != nil {
		panic(err)
	}
	c.kept = kept
	return c
}

func (c *cache) get(text string) (compilation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.Get(text)
}

func (c *cache) add(text string, result compilation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept.Contains(text) || result.bytes(text) > c.most {
		return
	}
	c.size += result.bytes(text)
	c.kept.Add(text, result)
	for c.size > c.most {
		c.kept.RemoveOldest()
	}
}

func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Purge()
}

// compiled keeps the results of Compile by text.
var compiled = newCache(maxCompiled)

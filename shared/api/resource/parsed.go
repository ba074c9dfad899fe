package resource

import (
	"bytes"
	"encoding/json"
	"fmt"

	"management.platform.sh/shared/state/store"
)

// maxParsed and maxParsedBytes bound the objects that are kept in parsed form, by their number and by their texts: room for
// some large pages, at a few KiB each. An object takes a few times the memory of its text.
const (
	maxParsed      = 2048
	maxParsedBytes = 8 << 20
)

// parsed is a text with the object in it.
type parsed[T Object] struct {
	text   []byte
	object T
}

// Parse returns the object as it is stored. It is shared: copy it before you change it. A text that was parsed before is not parsed
// again. That cannot make an answer stale: every request reads its records from the state, and a text that differs by a byte is
// parsed anew.
func (r *Registry[T]) Parse(record store.Record) (T, error) {
	cache := r.cache().parsed
	if known, ok := cache.get(record.Name); ok && bytes.Equal(known.text, record.Object) {
		return known.object, nil
	}
	object, err := r.restore(record.Object)
	if err != nil {
		var none T
		return none, fmt.Errorf("decoding the stored %s %q: %w", r.Definition.GroupResource(), record.Name, err)
	}
	cache.add(record.Name, parsed[T]{text: record.Object, object: object}, len(record.Object))
	return object, nil
}

func (r *Registry[T]) restore(text []byte) (T, error) {
	if r.Format != nil {
		return r.Format.DecodeStored(text)
	}
	object := r.Definition.New()
	return object, json.Unmarshal(text, object)
}

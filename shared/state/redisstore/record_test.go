package redisstore

import (
	"errors"
	"testing"

	"management.platform.sh/shared/state/store"
)

// A header with all of its fields is read, and one that lacks some is refused, in both formats.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for header, owner := range map[string]string{
		"1 5 1000 - - - ":           "",
		"1 5 1000 2000 d u1,u2 a b": "a b",
	} {
		if record, err := decode("one", header+"\n{}", ""); err != nil || record.Owner != owner || record.Revision != 5 || string(record.Object) != "{}" {
			t.Errorf("%q is read as %+v, %v", header, record, err)
		}
	}
	for _, header := range []string{
		"", "1", "1 ", "2 5 1000 - - - ana", "1 5 1000 -", "1 5 1000 - -", "1 5 1000 - - -",
		"1 x 1000 - - - ana", "1 5 x - - - ana", "1 5 1000 x - - ana",
	} {
		if record, err := decode("one", header+"\n{}", ""); !errors.Is(err, store.ErrFormat) {
			t.Errorf("%q is read as %+v, %v", header, record, err)
		}
	}
}

// Queries of different pages have different keys, whatever is in their texts.
func TestKeyOfPage(t *testing.T) {
	t.Parallel()
	seen := map[pageKey]int{}
	for i, ranges := range [][]any{
		nil, {""}, {"", ""}, {"a b"}, {"a", "b"}, {"a b", 1}, {"a", "b 1"}, {"a", "b", 1}, {"1:a"}, {"a 1:b"}, {"a", 1, "b"}, {"[o\x00", "(o\x01", 2}, {"[o\x00", "(o\x01 1:2"},
	} {
		for _, key := range []pageKey{keyOfPage("names", []any{5}, ranges), keyOfPage("names", []any{50}, ranges), keyOfPage("owners", []any{5}, ranges)} {
			if other, known := seen[key]; known {
				t.Errorf("%q has the key of row %d", ranges, other)
			}
			seen[key] = i
		}
	}
}

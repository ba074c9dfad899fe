package redisstore_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// TestOlderState: this build reads and continues the state of another build, whose events have no time and have a field
// that this build does not know. Do not change the file: it is the layout on which builds have to agree.
func TestOlderState(t *testing.T) {
	kept, err := os.ReadFile("testdata/older.json")
	must(t, err)
	onBothServers(t, func(t *testing.T, url string) {
		ctx := t.Context()
		r := raw(t, url)
		for line := range strings.Lines(string(kept)) {
			var command []any
			must(t, json.Unmarshal([]byte(line), &command))
			must(t, r.Do(ctx, command...).Err())
		}
		s := open(t, url, redisstore.Options{}).Resource("things")
		const object = `{"kind":"Thing","later":{"n":1.50},"spec":{}}`
		a, err := s.GetByDigest(ctx, "-d")
		must(t, err)
		if a.Name != "a" || a.Revision != 5 || string(a.Object) != object || a.Owner != "team:x y" || len(a.References) != 2 ||
			!a.Expires.Equal(time.UnixMilli(2000)) || !a.Activity.Equal(time.UnixMilli(1500)) {
			t.Errorf("read %+v", a)
		}
		events, err := s.Events(ctx, 5, 10, 0)
		must(t, err)
		if len(events) != 2 || events[0].Type != store.Deleted || events[1].Record.Name != "b" || !events[1].At.IsZero() {
			t.Errorf("events %+v", events)
		}
		if _, err := s.Events(ctx, 4, 10, 0); !errors.Is(err, store.ErrGone) {
			t.Errorf("events that are trimmed: %v", err)
		}

		must(t, s.Touch(ctx, a, time.UnixMilli(1600), time.UnixMilli(3000)))
		if got := r.HGet(ctx, "p1:{things}:objects", "a").Val(); got != "1 5 1000 3000 --d u2,-u1 team:x y\n"+object {
			t.Errorf("touched to %q", got)
		}
		a.Expires, a.Object = time.UnixMilli(4000), []byte(strings.Replace(object, `"spec":{}`, `"spec":{"a":1}`, 1))
		revision, err := s.Update(ctx, a)
		must(t, err)
		if revision != 8 {
			t.Errorf("updated at revision %d", revision)
		}
		if got := r.HGet(ctx, "p1:{things}:objects", "a").Val(); got != "1 8 1000 4000 --d u2,-u1 team:x y\n"+string(a.Object) {
			t.Errorf("updated to %q", got)
		}
		for name, at := range map[string]int64{"a": 8, "b": 7} {
			_, err := s.Delete(ctx, name, at)
			must(t, err)
		}
		if keys := keysOf(t, r); len(keys) != 2 {
			t.Errorf("after removing everything there are %q", keys)
		}
	})
}

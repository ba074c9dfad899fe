package redisstore_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// mixed is a store of which every second write is one of a build that packs.
type mixed struct {
	store.Store
	packed store.Store
	writes atomic.Int64
}

func (m *mixed) next() store.Store {
	if m.writes.Add(1)%2 == 0 {
		return m.Store
	}
	return m.packed
}

func (m *mixed) Create(ctx context.Context, record store.Record) (int64, error) {
	return m.next().Create(ctx, record)
}

func (m *mixed) Update(ctx context.Context, record store.Record) (int64, error) {
	return m.next().Update(ctx, record)
}

func same(t *testing.T, what string, got, want store.Record) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// packable is a text that is packed, with some of its own.
func packable(own string) []byte {
	return []byte(`{"kind":"OwnedAccessKey","apiVersion":"management.platform.sh/v1","metadata":{"name":"` + own +
		`","uid":"e0d5ccd0-f8d5-41f8-b124-957d654cb709","generation":1,"creationTimestamp":"2026-11-24T09:06:43Z"}}`)
}

// TestPackedRecords: builds that pack and builds that only read both formats read, change and remove what the others wrote.
func TestPackedRecords(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		ctx, r := t.Context(), raw(t, url)
		plain := open(t, url, redisstore.Options{}).Resource("things")
		packed := open(t, url, redisstore.Options{Pack: true}).Resource("things")
		stored := func() string { return r.HGet(ctx, "p1:{things}:objects", "a").Val() }
		record := store.Record{
			Name: "a", Owner: "team:x 7 y", Digest: "-d", References: []string{"u1"}, Created: created, Expires: created.Add(time.Hour),
			Object: packable("a"),
		}
		var err error
		record.Revision, err = packed.Create(ctx, record)
		must(t, err)
		if text := stored(); !strings.HasPrefix(text, "2 2 ") || len(text) > len(record.Object)/2+60 {
			t.Errorf("created as %q", text)
		}
		for what, s := range map[string]store.Store{"plain": plain, "packed": packed} {
			got, err := s.Get(ctx, "a")
			must(t, err)
			same(t, what, got, record)
			got, err = s.GetByDigest(ctx, "-d")
			must(t, err)
			same(t, what, got, record)
			page, err := s.List(ctx, store.Query{Owners: []string{record.Owner}})
			must(t, err)
			same(t, what, page.Records[0], record)
		}

		record.Activity, record.Expires = created.Add(time.Minute), created.Add(2*time.Hour)
		must(t, plain.Touch(ctx, record, record.Activity, record.Expires))
		if text := stored(); !strings.HasPrefix(text, "2 2 ") {
			t.Errorf("touched to %q", text)
		}
		got, err := plain.Get(ctx, "a")
		must(t, err)
		same(t, "touched", got, record)

		before := record
		record.Object = packable("b")
		record.Revision, err = plain.Update(ctx, record)
		must(t, err)
		if text := stored(); !strings.HasPrefix(text, "1 3 ") || !strings.HasSuffix(text, " team:x 7 y\n"+string(record.Object)) {
			t.Errorf("updated to %q", text)
		}
		events, err := packed.Events(ctx, 1, 10, 0)
		must(t, err)
		if len(events) != 2 {
			t.Fatalf("%d events", len(events))
		}
		same(t, "the event of the update", events[1].Record, record)
		same(t, "what it replaced", *events[1].Previous, before)

		record.Object = packable("c")
		record.Revision, err = packed.Update(ctx, record)
		must(t, err)
		if !strings.HasPrefix(stored(), "2 4 ") {
			t.Errorf("updated to %q", stored())
		}
		_, err = plain.Delete(ctx, "a", record.Revision)
		must(t, err)
		if keys := keysOf(t, r); len(keys) != 2 {
			t.Errorf("after the removal there are %q", keys)
		}
	})
}

// TestPackedQuota: an update of an object that does not grow is within every quota, although it takes more bytes than before.
func TestPackedQuota(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		ctx := t.Context()
		plain := open(t, url, redisstore.Options{}).Resource("things")
		packed := open(t, url, redisstore.Options{Pack: true}).Resource("things")
		record := store.Record{Name: "a", Owner: "o", Created: created, Object: packable("a")}
		var err error
		record.Revision, err = packed.Create(ctx, record)
		must(t, err)
		record.Quota = store.Quota{Bytes: 1}
		for _, next := range []struct {
			s      store.Store
			object []byte
		}{
			{plain, packable("b")}, {packed, packable("c")},
			{packed, []byte(strings.Repeat("x", len(packable(""))))}, {packed, packable("")}, {plain, packable("")},
		} {
			record.Object = next.object
			if record.Revision, err = next.s.Update(ctx, record); err != nil {
				t.Fatalf("%.10s: %v", next.object, err)
			}
		}
		for _, s := range []store.Store{plain, packed} {
			record.Object = packable("")
			record.Revision, err = s.Update(ctx, record)
			must(t, err)
			record.Object = packable("longer")
			if _, err := s.Update(ctx, record); !errors.Is(err, store.ErrQuota) {
				t.Errorf("an object that grows: %v", err)
			}
		}
	})
}

// TestPackedDamage: a packed record that is damaged is not read.
func TestPackedDamage(t *testing.T) {
	for what, stored := range map[string]string{
		"a fragment that does not exist": "2 1 0 - - - 5 o\n\x1c\xff",
		"another length":                 "2 1 0 - - - 5 o\nxxxx",
		"a length without end":           "2 1 0 - - - 99999999999 o\nxxxx",
		"half a uid":                     "2 1 0 - - - 36 o\n\x1dxxxx",
		"a uid before the first":         "2 1 0 - - - 36 o\n\x1e\x00",
		"half a time":                    "2 1 0 - - - 20 o\n\x1f\x00",
	} {
		both(t, func(t *testing.T, url string) {
			s := open(t, url, redisstore.Options{}).Resource("things")
			must(t, raw(t, url).HSet(t.Context(), "p1:{things}:objects", "one", stored).Err())
			if _, err := s.Get(t.Context(), "one"); !errors.Is(err, store.ErrFormat) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

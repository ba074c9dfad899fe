package storetest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"management.platform.sh/shared/state/store"
)

// model is the simplest possible Store. Every result of a real Store is compared with its result.
type model struct {
	revision int64
	records  map[string]store.Record
	events   []store.Event
}

func (m *model) holder(digest string) string {
	for name, record := range m.records {
		if digest != "" && record.Digest == digest {
			return name
		}
	}
	return ""
}

// exceedsQuota reports whether one more object of an owner would exceed the quota.
func (m *model) exceedsQuota(record store.Record) bool {
	used := int64(0)
	for _, other := range m.records {
		if other.Owner == record.Owner {
			used++
		}
	}
	return record.Quota.Objects > 0 && used >= record.Quota.Objects
}

func (m *model) write(record store.Record) {
	record.Quota, record.Requires = store.Quota{}, store.Version{}
	event := store.Event{Type: store.Created, Record: record, Revision: record.Revision}
	if previous, ok := m.records[record.Name]; ok {
		event.Type, event.Previous = store.Updated, &previous
	}
	m.events = append(m.events, event)
	m.records[record.Name] = record
}

func (m *model) create(record store.Record) error {
	if _, ok := m.records[record.Name]; ok {
		return store.ErrExists
	}
	if required := record.Requires; required.Name != "" {
		if holder, ok := m.records[required.Name]; !ok || holder.Revision != required.Revision {
			return store.ErrStale
		}
	}
	if m.holder(record.Digest) != "" {
		return store.ErrTaken
	}
	if m.exceedsQuota(record) {
		return store.ErrQuota
	}
	m.revision++
	record.Revision, record.Activity = m.revision, time.Time{}
	m.write(record)
	return nil
}

func (m *model) update(record store.Record) error {
	current, ok := m.records[record.Name]
	switch {
	case !ok:
		return store.ErrNotFound
	case current.Revision != record.Revision:
		return store.ErrConflict
	}
	if holder := m.holder(record.Digest); holder != "" && holder != record.Name {
		return store.ErrTaken
	}
	if record.Owner != current.Owner && m.exceedsQuota(record) {
		return store.ErrQuota
	}
	m.revision++
	record.Revision, record.Activity = m.revision, current.Activity
	m.write(record)
	return nil
}

func (m *model) delete(name string, revision int64) error {
	current, ok := m.records[name]
	switch {
	case !ok:
		return store.ErrNotFound
	case current.Revision != revision:
		return store.ErrConflict
	}
	m.revision++
	delete(m.records, name)
	removed := current
	removed.Revision = m.revision
	m.events = append(m.events, store.Event{Type: store.Deleted, Revision: m.revision, Record: removed, Previous: &current})
	return nil
}

func (m *model) touch(name, digest string, activity, expires time.Time) {
	record, ok := m.records[name]
	if !ok || record.Digest != digest || !activity.IsZero() && activity.Before(record.Activity) {
		return
	}
	if !activity.IsZero() {
		record.Activity = activity
	}
	if !expires.IsZero() {
		record.Expires = expires
	}
	m.records[name] = record
}

func (m *model) list(query store.Query) ([]store.Record, int64) {
	all := []store.Record{}
	for _, name := range slices.Sorted(maps.Keys(m.records)) {
		record := m.records[name]
		if strings.HasPrefix(name, query.Prefix) && name > query.After &&
			(query.Reference == "" || slices.Contains(record.References, query.Reference)) &&
			(query.Owners == nil || slices.Contains(query.Owners, record.Owner)) {
			all = append(all, record)
		}
	}
	if query.Limit == 0 || len(all) <= query.Limit {
		return all, 0
	}
	return all[:query.Limit], int64(len(all) - query.Limit)
}

// overdue returns by how much a record is due. It is negative if the record is not due.
func overdue(record store.Record, query store.DueQuery) time.Duration {
	from := record.Expires
	if query.ByCreated {
		from = record.Created
	}
	if query.Until.IsZero() || from.IsZero() {
		return -1
	}
	return query.Until.Sub(from)
}

// testModel runs random calls against the store and the model.
func testModel(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t)
		m := &model{revision: start, records: map[string]store.Record{}}
		ctx := t.Context()

		name := rapid.SampledFrom([]string{"a", "a/", "a/b", "a-b/c", "a0", "b", "ü", "a b"})
		owner := rapid.SampledFrom([]string{"", "o", "o p", "team:x"})
		digest := rapid.SampledFrom([]string{"", "", "-", "--", "d1", "d2"})
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			if n := rapid.IntRange(-1, 20).Draw(t, "second"); n >= 0 {
				return timeAt(n)
			}
			return time.Time{}
		})
		reference := rapid.SampledFrom([]string{"u1", "u2", "-", "-u1"})
		content := rapid.SliceOfN(rapid.Byte(), 0, 40)
		record := func(rt *rapid.T) store.Record {
			return store.Record{
				Name: name.Draw(rt, "name"), Owner: owner.Draw(rt, "owner"), Digest: digest.Draw(rt, "digest"),
				Created: timeAt(rapid.IntRange(0, 20).Draw(rt, "created")), Expires: moment.Draw(rt, "expires"),
				Object: content.Draw(rt, "object"), Activity: moment.Draw(rt, "activity"),
				References: rapid.SliceOfN(reference, 0, 3).Draw(rt, "references"),
				// The suite of bytes is testQuotaBytes: the model does not know what a store adds to an object.
				Quota: store.Quota{Objects: rapid.SampledFrom([]int64{0, 0, 2, 3}).Draw(rt, "quota"), Bytes: 1 << 20},
			}
		}
		// revision is usually the stored one.
		revision := func(rt *rapid.T, name string) int64 {
			if rapid.IntRange(0, 4).Draw(rt, "stale") == 0 {
				return rapid.Int64Range(-1, m.revision+1).Draw(rt, "revision")
			}
			return m.records[name].Revision
		}
		outcome := func(rt *rapid.T, what string, got int64, err, want error) {
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				rt.Fatalf("%s: error is %v, want %v", what, err, want)
			}
			if err == nil && got != m.revision {
				rt.Fatalf("%s: revision is %d, want %d", what, got, m.revision)
			}
		}
		same := func(rt *rapid.T, what string, got, want store.Record) {
			if d := difference(got, want); d != "" {
				rt.Fatalf("%s: %s", what, d)
			}
		}

		rt.Repeat(map[string]func(*rapid.T){
			"Create": func(rt *rapid.T) {
				record := record(rt)
				if rapid.Bool().Draw(rt, "requires") {
					required := name.Draw(rt, "required")
					record.Requires = store.Version{Name: required, Revision: revision(rt, required)}
				}
				got, err := s.Create(ctx, record)
				outcome(rt, "Create", got, err, m.create(record))
			},
			"Update": func(rt *rapid.T) {
				record := record(rt)
				record.Revision = revision(rt, record.Name)
				got, err := s.Update(ctx, record)
				outcome(rt, "Update", got, err, m.update(record))
			},
			"Delete": func(rt *rapid.T) {
				name := name.Draw(rt, "name")
				revision := revision(rt, name)
				got, err := s.Delete(ctx, name, revision)
				outcome(rt, "Delete", got, err, m.delete(name, revision))
			},
			"Touch": func(rt *rapid.T) {
				name := name.Draw(rt, "name")
				digest := rapid.SampledFrom([]string{m.records[name].Digest, "d1"}).Draw(rt, "digest")
				activity, expires := moment.Draw(rt, "activity"), moment.Draw(rt, "expires")
				if err := s.Touch(ctx, store.Record{Name: name, Digest: digest}, activity, expires); err != nil {
					rt.Fatalf("Touch: %v", err)
				}
				m.touch(name, digest, activity, expires)
			},
			"Get": func(rt *rapid.T) {
				name := name.Draw(rt, "name")
				want, ok := m.records[name]
				got, err := s.Get(ctx, name)
				if ok != (err == nil) || !ok && !errors.Is(err, store.ErrNotFound) {
					rt.Fatalf("Get: %v", err)
				}
				same(rt, "Get", got, want)
			},
			"GetByDigest": func(rt *rapid.T) {
				digest := digest.Draw(rt, "digest")
				want, ok := m.records[m.holder(digest)]
				got, err := s.GetByDigest(ctx, digest)
				if ok != (err == nil) || !ok && !errors.Is(err, store.ErrNotFound) {
					rt.Fatalf("GetByDigest: %v", err)
				}
				same(rt, "GetByDigest", got, want)
			},
			"GetWith": func(rt *rapid.T) {
				digest, name := digest.Draw(rt, "digest"), name.Draw(rt, "name")
				want, ok := m.records[m.holder(digest)]
				refs := []store.Ref{{Resource: s.Name(), Name: name}, {Resource: s.Name(), Name: "nobody"}, {Resource: s.Name()}, {Resource: "nothing"}}
				got, along, err := s.GetWith(ctx, digest, []string{name, "nobody"}, refs...)
				if ok != (err == nil) || !ok && !errors.Is(err, store.ErrNotFound) {
					rt.Fatalf("GetWith: %v", err)
				}
				same(rt, "GetWith", got, want)
				if (along.Records == nil) != (along.Refs == nil) {
					rt.Fatalf("GetWith brings along %d records and %d refs", len(along.Records), len(along.Refs))
				}
				if along.Records != nil {
					expected := map[string]store.Record{}
					if record, ok := m.records[name]; ok {
						expected[name] = record
					}
					if len(along.Records) != len(expected) {
						rt.Fatalf("GetWith brings along %d records, want %d", len(along.Records), len(expected))
					}
					same(rt, "GetWith brings along", along.Records[name], expected[name])
					compareRefs(rt, m, name, refs, along.Refs)
				}
				read, err := s.GetRefs(ctx, refs...)
				if err != nil {
					rt.Fatalf("GetRefs: %v", err)
				}
				compareRefs(rt, m, name, refs, read)
			},
			"GetMany": func(rt *rapid.T) {
				requested := rapid.SliceOfN(name, 0, 4).Draw(rt, "names")
				var want []store.Record
				for _, name := range requested {
					if record, ok := m.records[name]; ok {
						want = append(want, record)
					}
				}
				var got []store.Record
				for record, err := range store.GetEach(ctx, s, requested) {
					if err != nil {
						rt.Fatalf("GetMany: %v", err)
					}
					got = append(got, record)
				}
				if !slices.Equal(names(got), names(want)) {
					rt.Fatalf("GetMany(%q) are %q, want %q", requested, names(got), names(want))
				}
				for i, record := range got {
					same(rt, "GetMany", record, want[i])
				}
			},
			"List": func(rt *rapid.T) {
				query := store.Query{
					Prefix: rapid.SampledFrom([]string{"", "", "a", "a/", "b", "ü"}).Draw(rt, "prefix"),
					After:  rapid.SampledFrom([]string{"", "", "a", "a/", "a/a", "z"}).Draw(rt, "after"),
					Limit:  rapid.IntRange(0, 4).Draw(rt, "limit"),
				}
				if rapid.Bool().Draw(rt, "by owner") {
					query.Owners = rapid.SliceOfN(owner, 0, 3).Draw(rt, "owners")
					if query.Owners == nil {
						query.Owners = []string{}
					}
				}
				if query.Owners == nil && rapid.Bool().Draw(rt, "by reference") {
					query.Reference = reference.Draw(rt, "reference")
				}
				want, remaining := m.list(query)
				got, err := s.List(ctx, query)
				if err != nil {
					rt.Fatalf("List: %v", err)
				}
				if got.Revision != m.revision || got.Remaining != remaining || !slices.Equal(names(got.Records), names(want)) {
					rt.Fatalf("List(%+v) is %q, %d remaining, at %d; want %q, %d, %d",
						query, names(got.Records), got.Remaining, got.Revision, names(want), remaining, m.revision)
				}
				for i, record := range got.Records {
					same(rt, "List", record, want[i])
				}
			},
			"References": func(rt *rapid.T) {
				var want []store.Reference
				for name, record := range m.records {
					for _, uid := range withoutRepetitions(record.References) {
						want = append(want, store.Reference{UID: uid, Name: name})
					}
				}
				slices.SortFunc(want, func(a, b store.Reference) int {
					return strings.Compare(a.UID+"\x00"+a.Name, b.UID+"\x00"+b.Name)
				})
				from, limit := rapid.IntRange(0, 4).Draw(rt, "from"), rapid.IntRange(1, 4).Draw(rt, "limit")
				got, total, err := s.References(ctx, int64(from), limit)
				if err != nil || total != int64(len(want)) || !slices.Equal(got, want[min(from, len(want)):min(from+limit, len(want))]) {
					rt.Fatalf("References(%d, %d) are %q of %d (%v), want from %q", from, limit, got, total, err, want)
				}
			},
			"Due": func(rt *rapid.T) {
				query := store.DueQuery{
					ByCreated: rapid.Bool().Draw(rt, "by created"), Until: moment.Draw(rt, "until"),
					Skip: rapid.IntRange(0, 3).Draw(rt, "skip"), Limit: rapid.IntRange(1, 10).Draw(rt, "limit"),
				}
				got, err := s.Due(ctx, query)
				if err != nil {
					rt.Fatalf("Due: %v", err)
				}
				// Records that have been due for the same time may come in any order.
				var want, times []time.Duration
				for _, record := range m.records {
					if by := overdue(record, query); by >= 0 {
						want = append(want, by)
					}
				}
				slices.SortFunc(want, func(a, b time.Duration) int { return int(b - a) })
				for _, record := range got {
					same(rt, "Due", record, m.records[record.Name])
					times = append(times, overdue(record, query))
				}
				want = want[min(query.Skip, len(want)):]
				if !slices.Equal(times, want[:min(query.Limit, len(want))]) {
					rt.Fatalf("Due(%+v) by %v, want %v", query, times, want)
				}
			},
			"Events": func(rt *rapid.T) {
				after := rapid.Int64Range(max(start, m.revision-20), m.revision+1).Draw(rt, "after")
				limit := rapid.IntRange(1, 30).Draw(rt, "limit")
				got, err := s.Events(ctx, after, limit, 0)
				if after > m.revision {
					if !errors.Is(err, store.ErrGone) {
						rt.Fatalf("Events ahead of the store: %v", err)
					}
					return
				}
				want := m.events[after-start : min(int(after-start)+limit, len(m.events))]
				if err != nil || len(got) != len(want) {
					rt.Fatalf("Events(%d, %d): %d events (%v), want %d", after, limit, len(got), err, len(want))
				}
				for i, event := range got {
					if event.Type != want[i].Type || event.Revision != want[i].Revision || (event.Previous == nil) != (want[i].Previous == nil) {
						rt.Fatalf("event is %s %d, want %s %d", event.Type, event.Revision, want[i].Type, want[i].Revision)
					}
					same(rt, "event", event.Record, want[i].Record)
					if event.Previous != nil {
						same(rt, "previous", *event.Previous, *want[i].Previous)
					}
				}
			},
		})
	})
}

// compareRefs compares the result of GetRefs for an object, an object that does not exist, the revision of the resource, and
// the revision of an empty resource.
func compareRefs(rt *rapid.T, m *model, name string, refs []store.Ref, got map[store.Ref]store.Record) {
	want := map[store.Ref]store.Record{refs[2]: {Revision: m.revision}, refs[3]: {Revision: store.Beginning}}
	if record, ok := m.records[name]; ok {
		record.Activity = time.Time{}
		want[refs[0]] = record
	}
	if len(got) != len(want) {
		rt.Fatalf("%d refs were read, want %d", len(got), len(want))
	}
	for ref, record := range want {
		if d := difference(got[ref], record); d != "" {
			rt.Fatalf("the ref to %s %q: %s", ref.Resource, ref.Name, d)
		}
	}
}

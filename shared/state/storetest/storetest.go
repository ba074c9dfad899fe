// Package storetest is the contract of package store as a test: every implementation passes Run. Source: Spec 2.2
// (resourceVersion), 7; ADR-0002.
//
// It uses only the methods of a Store. The implementation's own tests cover its promises beyond the contract (with
// another process, after a crash, with a newer build).
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/state/store"
)

// LogLength is the length of the event log that Open has to configure. The suite relies on the last LogLength events
// being there, and on older ones being gone after a few thousand.
const LogLength = 100

// start is where every store begins: the n-th write has revision start+n.
const start = store.Beginning

// Open returns an empty Store of a new resource, with an event log of LogLength and a timeout that a busy machine does
// not reach. It registers the cleanup with t.Cleanup.
type Open func(t *testing.T) store.Store

// Run tests an implementation of store.Store.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"Create", testCreate},
		{"CreateRefuses", testCreateRefuses},
		{"CreateRace", testCreateRace},
		{"DigestRace", testDigestRace},
		{"GetByDigest", testGetByDigest},
		{"Update", testUpdate},
		{"UpdateRefuses", testUpdateRefuses},
		{"UpdateRace", testUpdateRace},
		{"Delete", testDelete},
		{"InvalidRecords", testInvalidRecords},
		{"Copies", testCopies},
		{"Bytes", testBytes},
		{"ListOrder", testListOrder},
		{"ListPrefix", testListPrefix},
		{"ListOwners", testListOwners},
		{"ListMany", testListMany},
		{"ListLarge", testListLarge},
		{"ListLargeMany", testListLargeMany},
		{"ListManyOwners", testListManyOwners},
		{"ListAlike", testListAlike},
		{"ListSnapshot", testListSnapshot},
		{"References", testReferences},
		{"Referred", testReferred},
		{"QuotaObjects", testQuotaObjects},
		{"QuotaBytes", testQuotaBytes},
		{"QuotaRace", testQuotaRace},
		{"Touch", testTouch},
		{"TouchGuards", testTouchGuards},
		{"Due", testDue},
		{"Events", testEvents},
		{"EventsWait", testEventsWait},
		{"EventsGone", testEventsGone},
		{"EventsLarge", testEventsLarge},
		{"EventsShared", testEventsShared},
		{"EventTimes", testEventTimes},
		{"Trim", testTrim},
		{"CallerGivesUp", testCallerGivesUp},
		{"Model", testModel},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
}

// epoch is the first time that the suite uses.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func timeAt(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func object(name string) store.Record {
	return store.Record{Name: name, Created: epoch, Object: []byte(`{"name":"` + name + `"}`)}
}

func create(t testing.TB, s store.Store, record store.Record) store.Record {
	t.Helper()
	revision, err := s.Create(t.Context(), record)
	if err != nil {
		t.Fatalf("Create(%q): %v", record.Name, err)
	}
	record.Revision = revision
	return record
}

func get(t testing.TB, s store.Store, name string) store.Record {
	t.Helper()
	record, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatalf("Get(%q): %v", name, err)
	}
	return record
}

func list(t testing.TB, s store.Store, query store.Query) store.Page {
	t.Helper()
	page, err := s.List(t.Context(), query)
	if err != nil {
		t.Fatalf("List(%+v): %v", query, err)
	}
	return page
}

func events(t testing.TB, s store.Store, after int64) []store.Event {
	t.Helper()
	all := []store.Event{}
	for {
		got, err := s.Events(t.Context(), after, 1000, 0)
		if err != nil {
			t.Fatalf("Events(%d): %v", after, err)
		}
		if len(got) == 0 {
			return all
		}
		all = append(all, got...)
		after = got[len(got)-1].Revision
	}
}

func names(records []store.Record) []string {
	list := []string{}
	for _, record := range records {
		list = append(list, record.Name)
	}
	return list
}

// difference describes how two records differ; "" if they are equal. Times are compared to the millisecond.
func difference(got, want store.Record) string {
	var all []string
	note := func(field string, got, want any) {
		all = append(all, fmt.Sprintf("%s is %v, want %v", field, got, want))
	}
	if got.Name != want.Name {
		note("Name", got.Name, want.Name)
	}
	if got.Revision != want.Revision {
		note("Revision", got.Revision, want.Revision)
	}
	if got.Owner != want.Owner {
		note("Owner", got.Owner, want.Owner)
	}
	if got.Digest != want.Digest {
		note("Digest", got.Digest, want.Digest)
	}
	if !slices.Equal(got.References, withoutRepetitions(want.References)) {
		note("References", got.References, want.References)
	}
	for _, times := range []struct {
		field     string
		got, want time.Time
	}{{"Created", got.Created, want.Created}, {"Expires", got.Expires, want.Expires}, {"Activity", got.Activity, want.Activity}} {
		if times.got.IsZero() != times.want.IsZero() || !times.want.IsZero() && times.got.UnixMilli() != times.want.UnixMilli() {
			note(times.field, times.got, times.want)
		}
	}
	if !bytes.Equal(got.Object, want.Object) {
		if len(want.Object) > 200 {
			note("length of Object", len(got.Object), len(want.Object))
		} else {
			note("Object", string(got.Object), string(want.Object))
		}
	}
	return strings.Join(all, "; ")
}

func withoutRepetitions(list []string) []string {
	var result []string
	for _, each := range list {
		if !slices.Contains(result, each) {
			result = append(result, each)
		}
	}
	return result
}

func expect(t testing.TB, what string, got, want store.Record) {
	t.Helper()
	if d := difference(got, want); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func fails(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

// unchanged fails the test if refused calls have changed the store.
func unchanged(t *testing.T, s store.Store, calls func()) {
	t.Helper()
	before := list(t, s, store.Query{})
	calls()
	after := list(t, s, store.Query{})
	if after.Revision != before.Revision {
		t.Errorf("a refused write moved the revision from %d to %d", before.Revision, after.Revision)
	}
	if !slices.Equal(names(after.Records), names(before.Records)) {
		t.Fatalf("a refused write changed the names from %q to %q", names(before.Records), names(after.Records))
	}
	for i, record := range after.Records {
		expect(t, "after a refused write", record, before.Records[i])
	}
	if got := events(t, s, before.Revision); len(got) > 0 {
		t.Errorf("a refused write made the event %+v", got[0])
	}
}

func testCreate(t *testing.T, open Open) {
	s := open(t)
	if page := list(t, s, store.Query{}); page.Revision != start || len(page.Records) != 0 || page.Remaining != 0 {
		t.Errorf("an empty store lists %+v", page)
	}
	_, err := s.Get(t.Context(), "one")
	fails(t, "Get from an empty store", err, store.ErrNotFound)

	full := store.Record{
		Name: "space/one", Revision: 99, Owner: "team:a b", Digest: "d1", Created: epoch.Add(123456789),
		Expires: timeAt(60).Add(time.Millisecond), Object: []byte(`{"a":1}`), Activity: timeAt(5),
	}
	revision, err := s.Create(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	if revision != start+1 {
		t.Errorf("the first revision is %d, want %d", revision, start+1)
	}
	full.Revision, full.Activity = revision, time.Time{}
	expect(t, "Get", get(t, s, full.Name), full)

	bare := create(t, s, store.Record{Name: "two", Created: epoch, Object: []byte(`{}`)})
	if bare.Revision != start+2 {
		t.Errorf("the second revision is %d, want %d", bare.Revision, start+2)
	}
	expect(t, "Get", get(t, s, "two"), bare)

	// The name of a removed object is free, and a new object of that name inherits nothing.
	if err := s.Touch(t.Context(), full, timeAt(7), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), full.Name, full.Revision); err != nil {
		t.Fatal(err)
	}
	full.Revision = create(t, s, full).Revision
	if full.Revision != start+4 {
		t.Errorf("the revision after a removal is %d, want %d", full.Revision, start+4)
	}
	expect(t, "Get of a name that was removed and made again", get(t, s, full.Name), full)
}

func testCreateRefuses(t *testing.T, open Open) {
	s := open(t)
	one := object("one")
	one.Digest, one.Owner = "d1", "o1"
	create(t, s, one)
	unchanged(t, s, func() {
		second := object("one")
		second.Owner, second.Expires = "o2", timeAt(1)
		_, err := s.Create(t.Context(), second)
		fails(t, "Create of a name in use", err, store.ErrExists)
		second.Digest = "d1"
		_, err = s.Create(t.Context(), second)
		fails(t, "Create of a name and a digest in use", err, store.ErrExists)
		second.Name = "two"
		_, err = s.Create(t.Context(), second)
		fails(t, "Create with a digest in use", err, store.ErrTaken)
	})
	if due, err := s.Due(t.Context(), store.DueQuery{Until: timeAt(100), Limit: 10}); err != nil || len(due) > 0 {
		t.Errorf("after refused creates %q are due (%v)", names(due), err)
	}
	if page := list(t, s, store.Query{Owners: []string{"o2"}}); len(page.Records) > 0 {
		t.Errorf("after refused creates o2 owns %q", names(page.Records))
	}
}

func testCreateRace(t *testing.T, open Open) {
	s := open(t)
	const racers = 24
	revisions, errs := race(racers, func(i int) (int64, error) {
		record := object("one")
		record.Digest = fmt.Sprint("d", i)
		return s.Create(t.Context(), record)
	})
	winner := onlyWinner(t, errs, store.ErrExists)
	if revisions[winner] != start+1 {
		t.Errorf("the winner's revision is %d, want %d", revisions[winner], start+1)
	}
	if got := get(t, s, "one").Digest; got != fmt.Sprint("d", winner) {
		t.Errorf("the digest is %s, the winner's was d%d", got, winner)
	}
	for i := range racers {
		_, err := s.GetByDigest(t.Context(), fmt.Sprint("d", i))
		if i == winner && err != nil || i != winner && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("GetByDigest(d%d), winner %d: %v", i, winner, err)
		}
	}
	if got := events(t, s, start); len(got) != 1 {
		t.Errorf("%d events of one create", len(got))
	}
}

func testDigestRace(t *testing.T, open Open) {
	s := open(t)
	_, errs := race(16, func(i int) (int64, error) {
		record := object(fmt.Sprint("n", i))
		record.Digest = "d"
		return s.Create(t.Context(), record)
	})
	winner := onlyWinner(t, errs, store.ErrTaken)
	got, err := s.GetByDigest(t.Context(), "d")
	if err != nil || got.Name != fmt.Sprint("n", winner) {
		t.Errorf("GetByDigest is %q (%v), the winner was n%d", got.Name, err, winner)
	}
}

// race calls a function from several goroutines at once.
func race(racers int, call func(i int) (int64, error)) ([]int64, []error) {
	revisions, errs := make([]int64, racers), make([]error, racers)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() {
			<-start
			revisions[i], errs[i] = call(i)
		})
	}
	close(start)
	group.Wait()
	return revisions, errs
}

// onlyWinner returns the index of the only call without an error. It fails the test unless all others have the given
// error.
func onlyWinner(t *testing.T, errs []error, loss error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Fatalf("racers %d and %d both won", winner, i)
		case !errors.Is(err, loss):
			t.Errorf("racer %d: error is %v, want %v", i, err, loss)
		}
	}
	if winner < 0 {
		t.Fatal("no racer won")
	}
	return winner
}

func testGetByDigest(t *testing.T, open Open) {
	s := open(t)
	for i, digest := range []string{"sha256:abc", "-", "--", "-x", "ü"} {
		record := object(fmt.Sprint("n", i))
		record.Digest = digest
		record = create(t, s, record)
		got, err := s.GetByDigest(t.Context(), digest)
		if err != nil {
			t.Errorf("GetByDigest(%q): %v", digest, err)
			continue
		}
		expect(t, "GetByDigest", got, record)
	}
	create(t, s, object("none"))
	for _, digest := range []string{"", "abc", "sha256:ab", "x"} {
		_, err := s.GetByDigest(t.Context(), digest)
		fails(t, fmt.Sprintf("GetByDigest(%q)", digest), err, store.ErrNotFound)
	}
	// A digest may later lead to another name, or to none.
	first, err := s.GetByDigest(t.Context(), "-x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), first.Name, first.Revision); err != nil {
		t.Fatal(err)
	}
	create(t, s, object(first.Name))
	_, err = s.GetByDigest(t.Context(), "-x")
	fails(t, "GetByDigest of a name that is another's now", err, store.ErrNotFound)
	second := object("heir")
	second.Digest = "-x"
	second = create(t, s, second)
	if got, err := s.GetByDigest(t.Context(), "-x"); err != nil {
		t.Errorf("GetByDigest of a moved digest: %v", err)
	} else {
		expect(t, "GetByDigest of a moved digest", got, second)
	}
}

func testUpdate(t *testing.T, open Open) {
	s := open(t)
	record := object("one")
	record.Owner, record.Digest, record.Expires = "o1", "d1", timeAt(10)
	record = create(t, s, record)
	other := create(t, s, object("other"))
	if err := s.Touch(t.Context(), record, timeAt(3), time.Time{}); err != nil {
		t.Fatal(err)
	}

	record.Owner, record.Digest, record.Expires, record.Object = "o2", "d2", timeAt(20), []byte(`{"v":2}`)
	record.Activity = timeAt(1000)
	revision, err := s.Update(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	if revision != start+3 {
		t.Errorf("the revision is %d, want %d", revision, start+3)
	}
	record.Revision, record.Activity = revision, timeAt(3)
	expect(t, "Get", get(t, s, "one"), record)
	expect(t, "the other object", get(t, s, "other"), other)

	if _, err := s.GetByDigest(t.Context(), "d1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the old digest still finds something: %v", err)
	}
	if got, err := s.GetByDigest(t.Context(), "d2"); err != nil {
		t.Errorf("the new digest: %v", err)
	} else {
		expect(t, "GetByDigest", got, record)
	}
	for owner, want := range map[string][]string{"o1": {}, "o2": {"one"}} {
		if got := names(list(t, s, store.Query{Owners: []string{owner}}).Records); !slices.Equal(got, want) {
			t.Errorf("%s owns %q, want %q", owner, got, want)
		}
	}
	if due, err := s.Due(t.Context(), store.DueQuery{Until: timeAt(19), Limit: 10}); err != nil || len(due) != 0 {
		t.Errorf("before the new expiry %q are due (%v)", names(due), err)
	}
	if due, err := s.Due(t.Context(), store.DueQuery{Until: timeAt(20), Limit: 10}); err != nil || len(due) != 1 {
		t.Errorf("at the new expiry %q are due (%v)", names(due), err)
	}

	// Once its digest, owner and expiry are removed, the object is not found by them.
	record.Owner, record.Digest, record.Expires = "", "", time.Time{}
	if record.Revision, err = s.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	expect(t, "Get", get(t, s, "one"), record)
	if _, err := s.GetByDigest(t.Context(), "d2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a removed digest still finds something: %v", err)
	}
	if due, err := s.Due(t.Context(), store.DueQuery{Until: timeAt(1e6), Limit: 10}); err != nil || len(due) != 0 {
		t.Errorf("without expiry %q are due (%v)", names(due), err)
	}
	// The digest is free again, and an update may keep the object's own digest.
	third := object("third")
	third.Digest = "d2"
	third = create(t, s, third)
	if _, err := s.Update(t.Context(), third); err != nil {
		t.Errorf("Update that keeps the digest: %v", err)
	}
}

func testUpdateRefuses(t *testing.T, open Open) {
	s := open(t)
	record := object("one")
	record.Digest, record.Owner = "d1", "o1"
	record = create(t, s, record)
	two := object("two")
	two.Digest = "d2"
	create(t, s, two)
	unchanged(t, s, func() {
		changed := record
		changed.Owner, changed.Object, changed.Expires = "o2", []byte(`"changed"`), timeAt(1)
		for _, revision := range []int64{0, start, start + 2, 10, -1} {
			changed.Revision = revision
			_, err := s.Update(t.Context(), changed)
			fails(t, fmt.Sprintf("Update with revision %d", revision), err, store.ErrConflict)
		}
		changed.Revision, changed.Digest = record.Revision, "d2"
		_, err := s.Update(t.Context(), changed)
		fails(t, "Update with another object's digest", err, store.ErrTaken)
		changed.Name = "three"
		_, err = s.Update(t.Context(), changed)
		fails(t, "Update of an absent name", err, store.ErrNotFound)
	})
	if page := list(t, s, store.Query{Owners: []string{"o2"}}); len(page.Records) > 0 {
		t.Errorf("after refused updates o2 owns %q", names(page.Records))
	}
}

func testUpdateRace(t *testing.T, open Open) {
	s := open(t)
	record := create(t, s, object("one"))
	revisions, errs := race(20, func(i int) (int64, error) {
		changed := record
		changed.Object = []byte(fmt.Sprint(i))
		return s.Update(t.Context(), changed)
	})
	winner := onlyWinner(t, errs, store.ErrConflict)
	got := get(t, s, "one")
	if string(got.Object) != fmt.Sprint(winner) || got.Revision != revisions[winner] {
		t.Errorf("stored is %s at %d, the winner wrote %d at %d", got.Object, got.Revision, winner, revisions[winner])
	}

	// Increments with retries: none is lost.
	const racers, rounds = 16, 5
	got.Object = []byte("0")
	if _, err := s.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	_, errs = race(racers, func(int) (int64, error) {
		for done := 0; done < rounds; {
			current, err := s.Get(t.Context(), "one")
			if err != nil {
				return 0, err
			}
			var n int
			if _, err := fmt.Sscan(string(current.Object), &n); err != nil {
				return 0, err
			}
			current.Object = []byte(fmt.Sprint(n + 1))
			switch _, err := s.Update(t.Context(), current); {
			case err == nil:
				done++
			case !errors.Is(err, store.ErrConflict):
				return 0, err
			}
		}
		return 0, nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := string(get(t, s, "one").Object); got != fmt.Sprint(racers*rounds) {
		t.Errorf("the counter is %s, want %d", got, racers*rounds)
	}
}

func testDelete(t *testing.T, open Open) {
	s := open(t)
	record := object("one")
	record.Owner, record.Digest, record.Expires = "o1", "d1", timeAt(1)
	record = create(t, s, record)
	create(t, s, object("two"))
	unchanged(t, s, func() {
		_, err := s.Delete(t.Context(), "three", 1)
		fails(t, "Delete of an absent name", err, store.ErrNotFound)
		for _, revision := range []int64{0, start, start + 2, 11} {
			_, err = s.Delete(t.Context(), "one", revision)
			fails(t, fmt.Sprintf("Delete with revision %d", revision), err, store.ErrConflict)
		}
	})
	revision, err := s.Delete(t.Context(), "one", record.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if revision != start+3 {
		t.Errorf("the removal's revision is %d, want %d", revision, start+3)
	}
	_, err = s.Get(t.Context(), "one")
	fails(t, "Get after Delete", err, store.ErrNotFound)
	_, err = s.GetByDigest(t.Context(), "d1")
	fails(t, "GetByDigest after Delete", err, store.ErrNotFound)
	_, err = s.Delete(t.Context(), "one", record.Revision)
	fails(t, "Delete after Delete", err, store.ErrNotFound)
	_, err = s.Update(t.Context(), record)
	fails(t, "Update after Delete", err, store.ErrNotFound)
	if page := list(t, s, store.Query{}); !slices.Equal(names(page.Records), []string{"two"}) || page.Revision != start+3 {
		t.Errorf("after Delete %q are listed at revision %d", names(page.Records), page.Revision)
	}
	if page := list(t, s, store.Query{Owners: []string{"o1"}}); len(page.Records) != 0 {
		t.Errorf("after Delete o1 owns %q", names(page.Records))
	}
	for _, byCreated := range []bool{false, true} {
		due, err := s.Due(t.Context(), store.DueQuery{ByCreated: byCreated, Until: timeAt(9)})
		if err != nil || slices.Contains(names(due), "one") || byCreated && len(due) != 1 {
			t.Errorf("after Delete %q are due (%v)", names(due), err)
		}
	}
}

func testInvalidRecords(t *testing.T, open Open) {
	s := open(t)
	valid := create(t, s, object("valid"))
	unchanged(t, s, func() {
		for what, spoil := range map[string]func(*store.Record){
			"an empty name":            func(r *store.Record) { r.Name = "" },
			"a name with a newline":    func(r *store.Record) { r.Name = "a\nb" },
			"a name with NUL":          func(r *store.Record) { r.Name = "a\x00b" },
			"an owner with a newline":  func(r *store.Record) { r.Owner = "a\n{}" },
			"an owner with NUL":        func(r *store.Record) { r.Owner = "\x00" },
			"a digest with a blank":    func(r *store.Record) { r.Digest = "a b" },
			"a digest with a newline":  func(r *store.Record) { r.Digest = "a\n" },
			"an empty reference":       func(r *store.Record) { r.References = []string{"u", ""} },
			"a reference with a comma": func(r *store.Record) { r.References = []string{"u,v"} },
			"a reference with a blank": func(r *store.Record) { r.References = []string{"u v"} },
			"a reference with NUL":     func(r *store.Record) { r.References = []string{"u\x00"} },
			"a long reference":         func(r *store.Record) { r.References = []string{strings.Repeat("u", 129)} },
			"no creation time":         func(r *store.Record) { r.Created = time.Time{} },
		} {
			record := object("new")
			spoil(&record)
			if _, err := s.Create(t.Context(), record); err == nil {
				t.Errorf("Create accepts %s", what)
			}
			record = valid
			spoil(&record)
			if _, err := s.Update(t.Context(), record); err == nil {
				t.Errorf("Update accepts %s", what)
			}
		}
	})
}

func testCopies(t *testing.T, open Open) {
	s := open(t)
	record := object("one")
	record.Digest = "d"
	record = create(t, s, record)
	want := record
	want.Object = bytes.Clone(record.Object)
	spoil := func(record store.Record) {
		for i := range record.Object {
			record.Object[i] = 'x'
		}
	}
	spoil(record)
	expect(t, "Get after the caller changed what it had written", get(t, s, "one"), want)
	spoil(get(t, s, "one"))
	byDigest, err := s.GetByDigest(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	spoil(byDigest)
	spoil(list(t, s, store.Query{}).Records[0])
	spoil(events(t, s, start)[0].Record)
	due, err := s.Due(t.Context(), store.DueQuery{ByCreated: true, Until: timeAt(1), Limit: 1})
	if err != nil || len(due) != 1 {
		t.Fatalf("Due: %q, %v", names(due), err)
	}
	spoil(due[0])
	expect(t, "Get after the caller changed what it had read", get(t, s, "one"), want)
	expect(t, "the event", events(t, s, start)[0].Record, want)

	if _, err := s.Update(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), "one", start+2); err != nil {
		t.Fatal(err)
	}
	removed := events(t, s, start+2)[0]
	spoil(removed.Record)
	if !bytes.Equal(removed.Previous.Object, want.Object) {
		t.Error("Record and Previous of an event share their object")
	}
}

func testBytes(t *testing.T, open Open) {
	s := open(t)
	large := bytes.Repeat([]byte(`{"text":"0123456789 äöü \"\\ `+"\n"+`"},`), 1<<20/35)
	for what, content := range map[string]string{
		"nothing":          "",
		"newlines":         "\n{\n\"a\":\r\n1}\n",
		"quotes":           `{"a":"\"'` + "`" + `\\"}`,
		"unicode":          `{"ключ":"値 🔑 é"}`,
		"every byte":       string(everyByte()),
		"large integers":   `{"n":9007199254740993,"m":1e400,"z":-0}`,
		"null and nesting": `{"a":null,"b":[[],{}],"c":{"d":null}}`,
		"Lua patterns":     `%d+ %s* [^%] $1 %%`,
		"a header":         "1 1 1 - - - \n{}",
		"about 1 MiB":      string(large),
	} {
		name := "ключ/" + what
		record := store.Record{Name: name, Owner: "öwner \"' 🔑 %s", Digest: strings.ReplaceAll(what, " ", "%d"), Created: epoch, Object: []byte(content)}
		record = create(t, s, record)
		expect(t, what+": Get", get(t, s, name), record)
		if got, err := s.GetByDigest(t.Context(), record.Digest); err != nil {
			t.Errorf("%s: %v", what, err)
		} else {
			expect(t, what+": GetByDigest", got, record)
		}
		revision, err := s.Update(t.Context(), record)
		if err != nil {
			t.Fatalf("%s: Update: %v", what, err)
		}
		if err := s.Touch(t.Context(), record, timeAt(1), timeAt(2)); err != nil {
			t.Fatalf("%s: Touch: %v", what, err)
		}
		before := record
		record.Revision = revision
		changes := events(t, s, revision-1)
		expect(t, what+": event", changes[0].Record, record)
		expect(t, what+": previous", *changes[0].Previous, before)
		record.Activity, record.Expires = timeAt(1), timeAt(2)
		expect(t, what+": List", list(t, s, store.Query{Prefix: name, Owners: []string{record.Owner}}).Records[0], record)
	}
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

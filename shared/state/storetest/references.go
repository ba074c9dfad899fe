package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/state/store"
)

// referring returns the names of the objects that refer to a uid, read page by page.
func referring(t *testing.T, s store.Store, uid string, limit int) []string {
	t.Helper()
	return pages(t, s, store.Query{Reference: uid, Limit: limit})
}

// references returns all references of a store, read page by page.
func references(t *testing.T, s store.Store, limit int) []store.Reference {
	t.Helper()
	all := []store.Reference{}
	for {
		page, total, err := s.References(t.Context(), int64(len(all)), limit)
		if err != nil {
			t.Fatalf("References(%d, %d): %v", len(all), limit, err)
		}
		all = append(all, page...)
		if len(page) == 0 || len(page) > limit {
			if int64(len(all)) != total || len(page) > limit {
				t.Errorf("%d references with pages of %d, want %d", len(all), limit, total)
			}
			return all
		}
	}
}

func testReferences(t *testing.T, open Open) {
	s := open(t)
	refer := func(name string, uids ...string) store.Record {
		record := object(name)
		record.References, record.Owner = uids, "o "+name
		return create(t, s, record)
	}
	long := strings.Repeat("u", 128)
	record := refer("a/one", "u1", "u2", "u1")
	two := refer("two", "-u3", "u1")
	refer("three", "u11", "-", long)
	refer("none")
	expect(t, "Get", get(t, s, "a/one"), record)
	expect(t, "Get", get(t, s, "two"), two)

	check := func(when string, want map[string][]string) {
		t.Helper()
		var all []store.Reference
		for uid, list := range want {
			for _, limit := range []int{0, 1, 2} {
				if got := referring(t, s, uid, limit); !slices.Equal(got, list) {
					t.Errorf("%s: %q refer to %q, want %q (limit %d)", when, got, uid, list, limit)
				}
			}
			for _, name := range list {
				all = append(all, store.Reference{UID: uid, Name: name})
			}
		}
		slices.SortFunc(all, func(a, b store.Reference) int {
			return strings.Compare(a.UID+"\x00"+a.Name, b.UID+"\x00"+b.Name)
		})
		for _, limit := range []int{1, 2, 100} {
			if got := references(t, s, limit); !slices.Equal(got, append([]store.Reference{}, all...)) {
				t.Errorf("%s: references are %q, want %q", when, got, all)
			}
		}
	}
	check("created", map[string][]string{
		"u1": {"a/one", "two"}, "u2": {"a/one"}, "-u3": {"two"}, "u11": {"three"}, "-": {"three"}, long: {"three"},
		"u": {}, "u3": {}, "u1,u2": {}, "u 1": {}, "u1\x00": {}, strings.Repeat("u", 129): {},
	})
	for _, prefix := range []string{"a/", "t", "b/"} {
		page := list(t, s, store.Query{Reference: "u1", Prefix: prefix})
		for _, name := range names(page.Records) {
			if !strings.HasPrefix(name, prefix) {
				t.Errorf("prefix %q: %q", prefix, name)
			}
		}
	}
	if _, err := s.List(t.Context(), store.Query{Reference: "u1", Owners: []string{}}); err == nil {
		t.Error("List by owners and a reference is accepted")
	}

	record.References = []string{"u4", "u2"}
	var err error
	if record.Revision, err = s.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if err := s.Touch(t.Context(), two, timeAt(1), timeAt(2)); err != nil {
		t.Fatal(err)
	}
	two.Activity, two.Expires = timeAt(1), timeAt(2)
	expect(t, "after Touch", get(t, s, "two"), two)
	check("changed", map[string][]string{
		"u1": {"two"}, "u2": {"a/one"}, "u4": {"a/one"}, "-u3": {"two"}, "u11": {"three"}, "-": {"three"}, long: {"three"},
	})
	unchanged(t, s, func() {
		stale := record
		stale.Revision, stale.References = start+1, []string{"u9"}
		_, err := s.Update(t.Context(), stale)
		fails(t, "Update of an old revision", err, store.ErrConflict)
		again := object("two")
		again.References = []string{"u9"}
		_, err = s.Create(t.Context(), again)
		fails(t, "Create of a name in use", err, store.ErrExists)
	})

	record.References = nil
	if record.Revision, err = s.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), "two", two.Revision); err != nil {
		t.Fatal(err)
	}
	check("removed", map[string][]string{"u1": {}, "u2": {}, "u4": {}, "-u3": {}, "u11": {"three"}, "-": {"three"}, long: {"three"}})
	last := events(t, s, start)
	expect(t, "the event of the removal", *last[len(last)-1].Previous, two)

	for _, bad := range []struct {
		from  int64
		limit int
	}{{-1, 1}, {0, 0}, {0, -1}} {
		if _, _, err := s.References(t.Context(), bad.from, bad.limit); err == nil {
			t.Errorf("References(%d, %d) is accepted", bad.from, bad.limit)
		}
	}
	if page, total, err := s.References(t.Context(), 100, 5); err != nil || len(page) != 0 || total != 3 {
		t.Errorf("References beyond the end: %q, %d, %v", page, total, err)
	}

	// Many objects refer to one uid.
	for i := range 50 {
		refer(fmt.Sprintf("n%02d", i), "owner")
	}
	if got := referring(t, s, "owner", 7); len(got) != 50 || !slices.IsSorted(got) {
		t.Errorf("%d refer to owner: %q", len(got), got)
	}
}

// testReferred tests that one call answers for several uids and several resources whether an object refers to them.
func testReferred(t *testing.T, open Open) {
	first, second := open(t), open(t)
	if first.Name() == second.Name() || first.Name() == "" {
		t.Fatalf("two resources have the names %q and %q", first.Name(), second.Name())
	}
	ask := func(uids ...string) []bool {
		t.Helper()
		var questions []store.Referral
		for _, uid := range uids {
			questions = append(questions, store.Referral{Resource: first.Name(), UID: uid}, store.Referral{Resource: second.Name(), UID: uid})
		}
		referred, err := first.Referred(t.Context(), questions)
		if err != nil {
			t.Fatal(err)
		}
		return referred
	}
	record := object("a")
	record.References = []string{"u1", "-u2"}
	record = create(t, first, record)
	other := object("b")
	other.References = []string{"u1", "u11"}
	create(t, second, other)
	if got := ask("u1", "-u2", "u11", "u", "u2", "", "u1\x00a", "u1,-u2"); !slices.Equal(got, []bool{
		true, true, true, false, false, true, false, false, false, false, false, false, false, false, false, false,
	}) {
		t.Errorf("referred: %v", got)
	}
	if _, err := first.Delete(t.Context(), "a", record.Revision); err != nil {
		t.Fatal(err)
	}
	if got := ask("u1"); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("after a removal: %v", got)
	}
	if got := ask(); len(got) != 0 {
		t.Errorf("no question: %v", got)
	}
	if _, err := first.Referred(t.Context(), []store.Referral{{Resource: "no} resource", UID: "u1"}}); err == nil {
		t.Error("a name that no resource has is accepted")
	}
}

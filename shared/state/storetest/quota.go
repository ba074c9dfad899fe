package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"management.platform.sh/shared/state/store"
)

// recordOf is an object of an owner with that many bytes.
func recordOf(name, owner string, size int) store.Record {
	return store.Record{Name: name, Owner: owner, Created: epoch, Object: bytes.Repeat([]byte("x"), size)}
}

// exceeds fails the test unless err says that a quota of an owner is used up.
func exceeds(t testing.TB, what string, err error, want store.QuotaError) {
	t.Helper()
	fails(t, what, err, store.ErrQuota)
	var got *store.QuotaError
	if errors.As(err, &got) && *got != want {
		t.Errorf("%s: %+v, want %+v", what, *got, want)
	}
}

func testQuotaObjects(t *testing.T, open Open) {
	s := open(t)
	quota := store.Quota{Objects: 3}
	under := func(record store.Record) store.Record {
		record.Quota = quota
		return record
	}
	full := store.QuotaError{Owner: "o", Quota: store.QuotaObjects, Used: 3, Adds: 1, Limit: 3}
	first := create(t, s, recordOf("a", "o", 1)) // an object of an earlier build counts as well
	first.Digest = "d"
	var err error
	if first.Revision, err = s.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		create(t, s, under(recordOf(name, "o", 1)))
	}
	unchanged(t, s, func() {
		_, err := s.Create(t.Context(), under(recordOf("d", "o", 1)))
		exceeds(t, "Create above the quota", err, full)
		_, err = s.Create(t.Context(), under(recordOf("a", "o", 1)))
		fails(t, "Create of a name in use, above the quota", err, store.ErrExists)
		taken := under(recordOf("d", "o", 1))
		taken.Digest = "d"
		_, err = s.Create(t.Context(), taken)
		fails(t, "Create with a digest in use, above the quota", err, store.ErrTaken)
	})
	// The quota does not concern these.
	for _, owner := range []string{"", "o ", "o2", "p"} {
		create(t, s, under(recordOf("of/"+owner, owner, 1)))
	}
	create(t, s, recordOf("d", "o", 1))
	first.Object, first.Quota = bytes.Repeat([]byte("y"), 1000), quota
	if first.Revision, err = s.Update(t.Context(), first); err != nil {
		t.Errorf("Update above the quota: %v", err)
	}

	other := get(t, s, "of/p")
	other.Owner, other.Quota = "o", quota
	full.Used = 4
	unchanged(t, s, func() {
		_, err := s.Update(t.Context(), other)
		exceeds(t, "Update to an owner above the quota", err, full)
	})
	for _, name := range []string{"b", "c"} {
		if _, err := s.Delete(t.Context(), name, get(t, s, name).Revision); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Update(t.Context(), other); err != nil {
		t.Errorf("Update to an owner below the quota: %v", err)
	}
	full.Used = 3
	_, err = s.Create(t.Context(), under(recordOf("e", "o", 1)))
	exceeds(t, "Create after objects were deleted and came", err, full)
	first.Owner = "p"
	if _, err = s.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	create(t, s, under(recordOf("e", "o", 1)))
}

func testQuotaBytes(t *testing.T, open Open) {
	s := open(t)
	// The objects have 10,000 bytes each, and at most 500 besides.
	quota := store.Quota{Bytes: 106_000}
	under := func(record store.Record) store.Record {
		record.Quota = quota
		return record
	}
	exceeds := func(what string, err error, used, adds int64) {
		t.Helper()
		fails(t, what, err, store.ErrQuota)
		var got *store.QuotaError
		if errors.As(err, &got) && (got.Owner != "o" || got.Quota != store.QuotaBytes || got.Used < used || got.Used > used+5000 || got.Adds != adds || got.Limit != quota.Bytes) {
			t.Errorf("%s: %+v, want about %d used and %d added", what, *got, used, adds)
		}
	}
	for i := range 4 {
		create(t, s, recordOf(fmt.Sprint("a", i), "o", 10_000))
	}
	for i := range 6 {
		create(t, s, under(recordOf(fmt.Sprint("b", i), "o", 10_000)))
	}
	unchanged(t, s, func() {
		_, err := s.Create(t.Context(), under(recordOf("c", "o", 10_000)))
		exceeds("Create above the quota", err, 100_000, 10_000)
		larger := under(get(t, s, "a0"))
		larger.Object = bytes.Repeat([]byte("y"), 20_000)
		_, err = s.Update(t.Context(), larger)
		exceeds("Update above the quota", err, 100_000, 10_000)
	})
	create(t, s, under(recordOf("p", "p", 10_000)))
	create(t, s, recordOf("c", "o", 10_000)) // without a quota

	// Above the quota, updates that add no bytes pass.
	record := under(get(t, s, "a0"))
	same := func(what string, object []byte) {
		t.Helper()
		record.Object = object
		var err error
		if record.Revision, err = s.Update(t.Context(), record); err != nil {
			t.Errorf("%s above the quota: %v", what, err)
		}
	}
	same("Update of the same size", bytes.Repeat([]byte("z"), 10_000))
	if err := s.Touch(t.Context(), record, timeAt(1), timeAt(2)); err != nil {
		t.Error(err)
	}
	same("Update that shrinks", nil)
	same("another of the same size", nil)
	unchanged(t, s, func() {
		record.Object = []byte("12345678")
		larger := record
		larger.Object = bytes.Repeat([]byte("y"), 9_000)
		_, err := s.Update(t.Context(), larger)
		exceeds("Update that grows again", err, 100_000, 9_000)
		mine := under(get(t, s, "p"))
		mine.Owner = "o"
		_, err = s.Update(t.Context(), mine)
		exceeds("Update to the owner", err, 100_000, 10_000)
	})

	// A removal and a change of owner make room.
	if _, err := s.Delete(t.Context(), "b0", get(t, s, "b0").Revision); err != nil {
		t.Fatal(err)
	}
	record = create(t, s, under(recordOf("d", "o", 10_000)))
	_, err := s.Create(t.Context(), under(recordOf("e", "o", 10_000)))
	exceeds("Create after one was deleted and one came", err, 100_000, 10_000)
	record.Owner = "p"
	if _, err := s.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	create(t, s, under(recordOf("e", "o", 10_000)))
	// The other owner has 20,000 bytes.
	_, err = s.Create(t.Context(), under(recordOf("f", "p", 87_000)))
	fails(t, "Create above the quota of the other owner", err, store.ErrQuota)
	create(t, s, under(recordOf("f", "p", 80_000)))
}

func testQuotaRace(t *testing.T, open Open) {
	s := open(t)
	_, errs := race(24, func(i int) (int64, error) {
		record := recordOf(fmt.Sprint("n", i), "o", 100)
		record.Quota = store.Quota{Objects: 5, Bytes: 1 << 20}
		return s.Create(t.Context(), record)
	})
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
		} else {
			fails(t, fmt.Sprint("racer ", i), err, store.ErrQuota)
		}
	}
	if stored := list(t, s, store.Query{}).Records; won != 5 || len(stored) != 5 {
		t.Errorf("%d creates were within a quota of 5, and %d objects are stored", won, len(stored))
	}
}

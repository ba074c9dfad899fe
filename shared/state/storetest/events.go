package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

func testTouch(t *testing.T, open Open) {
	s := open(t)
	record := object("one")
	record.Digest, record.Expires, record.Owner = "d", timeAt(100), "o"
	record = create(t, s, record)
	create(t, s, object("other"))

	touch := func(activity, expires time.Time) {
		t.Helper()
		if err := s.Touch(t.Context(), record, activity, expires); err != nil {
			t.Fatalf("Touch(%v, %v): %v", activity, expires, err)
		}
	}
	same := func(what string) {
		t.Helper()
		expect(t, what+": Get", get(t, s, "one"), record)
		byDigest, err := s.GetByDigest(t.Context(), "d")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, what+": GetByDigest", byDigest, record)
		expect(t, what+": List", list(t, s, store.Query{Prefix: "one"}).Records[0], record)
		expect(t, what+": List by owner", list(t, s, store.Query{Owners: []string{"o"}}).Records[0], record)
		if !record.Expires.IsZero() {
			due, err := s.Due(t.Context(), store.DueQuery{Until: record.Expires, Limit: 1})
			if err != nil || len(due) != 1 {
				t.Fatalf("%s: Due: %q, %v", what, names(due), err)
			}
			expect(t, what+": Due", due[0], record)
			if due, err := s.Due(t.Context(), store.DueQuery{Until: record.Expires.Add(-time.Millisecond), Limit: 1}); err != nil || len(due) != 0 {
				t.Errorf("%s: %q is due too early (%v)", what, names(due), err)
			}
		}
	}

	touch(timeAt(10).Add(7*time.Millisecond), time.Time{})
	record.Activity = timeAt(10).Add(7 * time.Millisecond)
	same("activity alone")
	touch(time.Time{}, timeAt(200))
	record.Expires = timeAt(200)
	same("due time alone")
	touch(timeAt(20), timeAt(300))
	record.Activity, record.Expires = timeAt(20), timeAt(300)
	same("both")
	touch(timeAt(20), timeAt(301))
	record.Expires = timeAt(301)
	same("the same activity")
	touch(time.Time{}, time.Time{})
	same("neither")
	touch(timeAt(19), time.Time{})
	same("an earlier activity")
	touch(time.Time{}, timeAt(250))
	record.Expires = timeAt(250)
	same("an earlier due time")

	if page := list(t, s, store.Query{}); page.Revision != start+2 {
		t.Errorf("Touch moved the revision to %d", page.Revision)
	}
	if got := events(t, s, start+2); len(got) != 0 {
		t.Errorf("Touch made the event %+v", got[0])
	}
	// A write with the revision that was read earlier still succeeds, and it keeps the activity.
	revision, err := s.Update(t.Context(), record)
	if err != nil {
		t.Fatalf("Update after Touch: %v", err)
	}
	before := record
	record.Revision = revision
	same("after Update")
	change := events(t, s, start+2)[0]
	expect(t, "the event", change.Record, record)
	expect(t, "the event's previous", *change.Previous, before)

	// The latest time wins, in whatever order the calls arrive.
	_, errs := race(20, func(i int) (int64, error) {
		return 0, s.Touch(t.Context(), record, timeAt(100+i*7%20), time.Time{})
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	record.Activity = timeAt(119)
	same("after a race")
}

func testTouchGuards(t *testing.T, open Open) {
	s := open(t)
	record := object("one")
	record.Digest = "d1"
	create(t, s, record)
	bare := create(t, s, object("bare"))
	unchanged(t, s, func() {
		for what, stranger := range map[string]store.Record{
			"an absent name":  {Name: "absent", Digest: "d1"},
			"another digest":  {Name: "one", Digest: "d2"},
			"no digest":       {Name: "one"},
			"a digest's mark": {Name: "bare", Digest: "-"},
		} {
			if err := s.Touch(t.Context(), stranger, timeAt(1), timeAt(2)); err != nil {
				t.Errorf("Touch of %s: %v", what, err)
			}
		}
	})
	if due, err := s.Due(t.Context(), store.DueQuery{Until: timeAt(10), Limit: 10}); err != nil || len(due) != 0 {
		t.Errorf("after Touch with other digests %q are due (%v)", names(due), err)
	}
	if err := s.Touch(t.Context(), bare, timeAt(1), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "bare").Activity; !got.Equal(timeAt(1)) {
		t.Errorf("the activity of an object without digest is %v, want %v", got, timeAt(1))
	}
	// The activity of an object is removed with it.
	if _, err := s.Delete(t.Context(), "bare", bare.Revision); err != nil {
		t.Fatal(err)
	}
	if err := s.Touch(t.Context(), bare, timeAt(5), timeAt(6)); err != nil {
		t.Errorf("Touch of a removed object: %v", err)
	}
	_, err := s.Get(t.Context(), "bare")
	fails(t, "Get of a removed object that was touched", err, store.ErrNotFound)
	create(t, s, object("bare"))
	if got := get(t, s, "bare"); !got.Activity.IsZero() || !got.Expires.IsZero() {
		t.Errorf("a new object begins with activity %v and expiry %v", got.Activity, got.Expires)
	}
}

func testDue(t *testing.T, open Open) {
	s := open(t)
	for _, write := range []struct {
		name             string
		created, expires int
	}{
		{"a", 0, 50}, {"b", 10, 20}, {"c", 20, -1}, {"d", 30, 31}, {"e", 40, 1000}, {"f", -5, -1},
	} {
		record := object(write.name)
		record.Created = timeAt(write.created)
		if write.expires >= 0 {
			record.Expires = timeAt(write.expires)
		}
		create(t, s, record)
	}
	for _, test := range []struct {
		what  string
		query store.DueQuery
		want  []string
	}{
		{"nothing asked", store.DueQuery{}, nil},
		{"before the first", store.DueQuery{Until: timeAt(19)}, nil},
		{"a millisecond before the first", store.DueQuery{Until: timeAt(20).Add(-time.Millisecond)}, nil},
		{"at the first", store.DueQuery{Until: timeAt(20)}, []string{"b"}},
		{"by expiry", store.DueQuery{Until: timeAt(60)}, []string{"b", "d", "a"}},
		{"by expiry, limited", store.DueQuery{Until: timeAt(60), Limit: 2}, []string{"b", "d"}},
		{"by expiry, the second", store.DueQuery{Until: timeAt(60), Skip: 1, Limit: 1}, []string{"d"}},
		{"by expiry, the rest", store.DueQuery{Until: timeAt(60), Skip: 1}, []string{"d", "a"}},
		{"by expiry, beyond the last", store.DueQuery{Until: timeAt(60), Skip: 3}, nil},
		{"by creation", store.DueQuery{ByCreated: true, Until: timeAt(20)}, []string{"f", "a", "b", "c"}},
		{"by creation, limited", store.DueQuery{ByCreated: true, Until: timeAt(20), Limit: 1}, []string{"f"}},
		{"by creation, long before", store.DueQuery{ByCreated: true, Until: timeAt(-100)}, nil},
		{"by creation, nothing asked", store.DueQuery{ByCreated: true}, nil},
	} {
		got, err := s.Due(t.Context(), test.query)
		if err != nil {
			t.Errorf("%s: %v", test.what, err)
		}
		if !slices.Equal(names(got), test.want) && len(got)+len(test.want) > 0 {
			t.Errorf("%s: %q, want %q", test.what, names(got), test.want)
		}
		for _, record := range got {
			expect(t, test.what, record, get(t, s, record.Name))
		}
	}
}

// testEventsLarge tests that a read returns events up to the bytes of a page, and at least one, also to callers that
// wait.
func testEventsLarge(t *testing.T, open Open) {
	s := open(t)
	const count = 8
	record := create(t, s, object("one"))
	for range count {
		// An event of an update has the object before as well.
		record.Object = bytes.Repeat([]byte("x"), limits.PageBytes/4+len(record.Object)%2)
		var err error
		if record.Revision, err = s.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	record.Object = bytes.Repeat([]byte("x"), limits.PageBytes+1)
	var err error
	if record.Revision, err = s.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, 30 * time.Second} {
		for after := start; after < record.Revision; {
			got, err := s.Events(t.Context(), after, 1000, wait)
			if err != nil || len(got) == 0 {
				t.Fatalf("after %d: %d events, %v", after, len(got), err)
			}
			size := 0
			for _, event := range got {
				if event.Revision != after+1 {
					t.Fatalf("after %d: %d", after, event.Revision)
				}
				after = event.Revision
				size += len(event.Record.Object)
				if event.Previous != nil {
					size += len(event.Previous.Object)
				}
			}
			if len(got) > 1 && size > limits.PageBytes {
				t.Errorf("%d events have %d bytes", len(got), size)
			}
		}
	}
	// Trim reads them in several steps.
	if err := s.Trim(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Events(t.Context(), record.Revision-1, 1, 0)
	fails(t, "Events before an empty log", err, store.ErrGone)
}

func testEvents(t *testing.T, open Open) {
	s := open(t)
	if got := events(t, s, start); len(got) != 0 {
		t.Errorf("an empty store has the event %+v", got[0])
	}
	record := object("one")
	record.Owner, record.Digest, record.Expires = "o1", "d1", timeAt(60)
	record = create(t, s, record)
	two := create(t, s, object("two"))
	if err := s.Touch(t.Context(), record, timeAt(5), timeAt(70)); err != nil {
		t.Fatal(err)
	}
	touched := record
	touched.Activity, touched.Expires = timeAt(5), timeAt(70)

	changed := touched
	changed.Owner, changed.Digest, changed.Object = "o2", "d2", []byte(`{"changed":true}`)
	var err error
	if changed.Revision, err = s.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	removed := changed
	if removed.Revision, err = s.Delete(t.Context(), "one", changed.Revision); err != nil {
		t.Fatal(err)
	}

	want := []store.Event{
		{Type: store.Created, Revision: start + 1, Record: record},
		{Type: store.Created, Revision: start + 2, Record: two},
		{Type: store.Updated, Revision: start + 3, Record: changed, Previous: &touched},
		{Type: store.Deleted, Revision: start + 4, Record: removed, Previous: &changed},
	}
	for written := range len(want) + 1 {
		after := start + int64(written)
		for limit := 1; limit <= len(want)+1; limit++ {
			got, err := s.Events(t.Context(), after, limit, 0)
			if err != nil {
				t.Fatalf("Events(%d, %d): %v", after, limit, err)
			}
			expected := want[written:min(written+limit, len(want))]
			if len(got) != len(expected) {
				t.Fatalf("Events(%d, %d) returns %d, want %d", after, limit, len(got), len(expected))
			}
			for i, event := range got {
				sameEvent(t, event, expected[i])
			}
		}
	}
}

func sameEvent(t testing.TB, got, want store.Event) {
	t.Helper()
	what := fmt.Sprintf("event %d", want.Revision)
	if got.Type != want.Type || got.Revision != want.Revision {
		t.Errorf("%s is %s %d, want %s", what, got.Type, got.Revision, want.Type)
	}
	expect(t, what, got.Record, want.Record)
	switch {
	case (got.Previous == nil) != (want.Previous == nil):
		t.Errorf("%s: Previous is %v, want %v", what, got.Previous, want.Previous)
	case got.Previous != nil:
		expect(t, what+", Previous", *got.Previous, *want.Previous)
	}
}

func testEventsWait(t *testing.T, open Open) {
	s := open(t)
	if got, err := s.Events(t.Context(), start, 10, 50*time.Millisecond); err != nil || len(got) != 0 {
		t.Errorf("Events while there are none: %d events, %v", len(got), err)
	}

	// Several followers, some faster than others, see each event once and in order.
	const followers, changes = 8, 60
	errs := make(chan error, followers)
	for i := range followers {
		go func() {
			errs <- func() error {
				for seen := start; seen < start+changes; {
					got, err := s.Events(t.Context(), seen, 1+i*3, 30*time.Second)
					if err != nil {
						return err
					}
					if len(got) == 0 {
						return fmt.Errorf("follower %d: nothing after %d within 30 seconds", i, seen)
					}
					for _, event := range got {
						if event.Revision != seen+1 || event.Record.Name != fmt.Sprint("n", seen-start) {
							return fmt.Errorf("follower %d: event %d of %q after %d", i, event.Revision, event.Record.Name, seen)
						}
						seen = event.Revision
					}
				}
				return nil
			}()
		}()
	}
	for i := range changes {
		create(t, s, object(fmt.Sprint("n", i)))
	}
	for range followers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}

	// One wait follows the other, with only the event between them.
	var group sync.WaitGroup
	for i := range 5 {
		group.Go(func() {
			got, err := s.Events(t.Context(), start+changes+int64(i), 1, 30*time.Second)
			if err != nil || len(got) != 1 || got[0].Revision != start+changes+int64(i)+1 {
				t.Errorf("waiting for %d: %d events, %v", changes+i+1, len(got), err)
			}
		})
		create(t, s, object(fmt.Sprint("m", i)))
		group.Wait()
	}
}

func testEventsGone(t *testing.T, open Open) {
	s := open(t)
	for _, after := range []int64{start - 1, start + 1} {
		_, err := s.Events(t.Context(), after, 10, 0)
		fails(t, fmt.Sprintf("Events after %d of an empty store", after), err, store.ErrGone)
	}
	record := create(t, s, object("one"))
	for _, after := range []int64{start + 2, start + 3, 1e15, 1<<63 - 1, start - 1, -1} {
		_, err := s.Events(t.Context(), after, 10, time.Minute)
		fails(t, fmt.Sprintf("Events after %d of %d", after, start+1), err, store.ErrGone)
	}

	// The log holds LogLength events, perhaps some more, but it does not keep all events.
	current := record.Revision
	var err error
	for current < 50*LogLength {
		if record.Revision, err = s.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		current = record.Revision
		if _, err = s.Events(t.Context(), start, 1, 0); err != nil {
			break
		}
	}
	fails(t, fmt.Sprintf("Events from the start, after %d", current), err, store.ErrGone)
	first := int64(-1)
	for after := start; after < current; after++ {
		got, err := s.Events(t.Context(), after, 1, 0)
		if errors.Is(err, store.ErrGone) && first < 0 {
			continue
		}
		if err != nil || len(got) != 1 || got[0].Revision != after+1 {
			t.Fatalf("Events after %d of %d: %d events, %v", after, current, len(got), err)
		}
		if first < 0 {
			first = got[0].Revision
		}
	}
	if held := current - first + 1; first < 0 || held < LogLength {
		t.Errorf("the log begins at %d of %d; it must hold %d events", first, current, LogLength)
	}
	if got, err := s.Events(t.Context(), current, 1, 0); err != nil || len(got) != 0 {
		t.Errorf("Events after the last: %d events, %v", len(got), err)
	}
}

func testCallerGivesUp(t *testing.T, open Open) {
	s := open(t)
	record := create(t, s, object("one"))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
		for what, call := range map[string]func() error{
			"Create":      func() error { _, err := s.Create(ctx, object("two")); return err },
			"Get":         func() error { _, err := s.Get(ctx, "one"); return err },
			"GetByDigest": func() error { _, err := s.GetByDigest(ctx, "d"); return err },
			"Update":      func() error { _, err := s.Update(ctx, record); return err },
			"Delete":      func() error { _, err := s.Delete(ctx, "one", record.Revision); return err },
			"List":        func() error { _, err := s.List(ctx, store.Query{}); return err },
			"Touch":       func() error { return s.Touch(ctx, record, timeAt(1), timeAt(1)) },
			"Due":         func() error { _, err := s.Due(ctx, store.DueQuery{Until: timeAt(1), Limit: 1}); return err },
			"Events":      func() error { _, err := s.Events(ctx, start, 1, time.Minute); return err },
			"Trim":        func() error { return s.Trim(ctx, timeAt(1)) },
		} {
			err := call()
			fails(t, what, err, want)
			if errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s reports unavailable state although the caller gave up: %v", what, err)
			}
		}
	}
	expect(t, "after calls that were given up", get(t, s, "one"), record)

	waiting, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Events(waiting, record.Revision, 1, time.Hour)
		done <- err
	}()
	cancel()
	fails(t, "Events, given up while waiting", <-done, context.Canceled)
}

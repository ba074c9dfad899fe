package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/state/store"
)

// testEventsShared tests that callers that wait get the same events as callers that do not wait, whatever their
// position in the log and however many they are.
func testEventsShared(t *testing.T, open Open) {
	s := open(t)
	// One less than the length of the log: the last write must not trim events that are still being read.
	const changes, readers = LogLength - 1, 6
	want := make([]store.Event, 0, changes)
	// One caller follows all the time, so that an implementation that keeps events for waiting callers has them.
	followed := make(chan []store.Event, 1)
	go func() {
		var got []store.Event
		for len(got) < changes {
			events, err := s.Events(t.Context(), start+int64(len(got)), 7, 30*time.Second)
			if err != nil || len(events) == 0 || len(events) > 7 {
				t.Errorf("following after %d: %d events, %v", len(got), len(events), err)
				break
			}
			got = append(got, events...)
		}
		followed <- got
	}()
	record := create(t, s, object("one"))
	for record.Revision < start+changes {
		record.Object = fmt.Appendf(nil, `{"at":%d}`, record.Revision)
		var err error
		if record.Revision, err = s.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	want = append(want, events(t, s, start)...)
	if len(want) != changes {
		t.Fatalf("%d events, want %d", len(want), changes)
	}
	same := func(after int64, got []store.Event) {
		t.Helper()
		for i, event := range got {
			if event.Revision != after+1+int64(i) {
				t.Errorf("event %d after %d is %d", i, after, event.Revision)
				return
			}
			if event.Revision > start+changes {
				continue // the last event, which may come while others read
			}
			sameEvent(t, event, want[after-start+int64(i)])
			if !event.At.Equal(want[after-start+int64(i)].At) {
				t.Errorf("event %d is of %v, and of %v", event.Revision, event.At, want[after-start+int64(i)].At)
			}
		}
	}
	same(start, <-followed)

	// One caller waits at the end while others read earlier events.
	var group sync.WaitGroup
	group.Go(func() {
		if got, err := s.Events(t.Context(), start+changes, 1, 30*time.Second); err != nil || len(got) != 1 {
			t.Errorf("waiting at the end: %d events, %v", len(got), err)
		}
	})
	for i := range readers {
		group.Go(func() {
			for after := start + int64(i); after < start+changes; after += 11 {
				limit := 1 + int(after)%5
				got, err := s.Events(t.Context(), after, limit, 30*time.Second)
				if err != nil || len(got) == 0 || len(got) > limit {
					t.Errorf("Events(%d, %d): %d events, %v", after, limit, len(got), err)
					return
				}
				same(after, got)
			}
			_, err := s.Events(t.Context(), start+changes+2, 1, 30*time.Second)
			fails(t, "waiting ahead of the store", err, store.ErrGone)
		})
	}
	// This write ends the wait of the first caller. It comes last, so that it does not end the waits of the readers early.
	create(t, s, object("last"))
	group.Wait()
}

func testEventTimes(t *testing.T, open Open) {
	s := open(t)
	begun := time.Now().Truncate(time.Millisecond)
	record := create(t, s, object("one"))
	revision, err := s.Update(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), "one", revision); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	for _, event := range events(t, s, start) {
		// The clock of an implementation on another machine may differ a little.
		if event.At.Before(begun.Add(-time.Minute)) || event.At.After(ended.Add(time.Minute)) || event.At.Location() != time.UTC {
			t.Errorf("event %d is of %v, written between %v and %v", event.Revision, event.At, begun, ended)
		}
	}
}

func testTrim(t *testing.T, open Open) {
	s := open(t)
	trim := func(olderThan time.Time) {
		t.Helper()
		if err := s.Trim(t.Context(), olderThan); err != nil {
			t.Fatalf("Trim(%v): %v", olderThan, err)
		}
	}
	trim(time.Now())
	// Write until some events are younger than the first.
	record := create(t, s, object("one"))
	update := func() {
		t.Helper()
		var err error
		if record.Revision, err = s.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	first := events(t, s, start)[0]
	var young time.Time
	for young.IsZero() && record.Revision < start+LogLength-2 {
		<-time.After(2 * time.Millisecond)
		update()
		if last := events(t, s, record.Revision-1)[0]; last.At.After(first.At) {
			young = last.At
		}
	}
	if young.IsZero() {
		t.Fatalf("%d changes are all of %v", record.Revision, first.At)
	}
	update()

	trim(first.At)
	trim(first.At.Add(-time.Hour))
	log := events(t, s, start)
	if len(log) != int(record.Revision-start) {
		t.Errorf("%d of %d events are left, although none was too old", len(log), record.Revision-start)
	}
	trim(young)
	_, err := s.Events(t.Context(), start, 1, 0)
	fails(t, "Events from the start, after Trim", err, store.ErrGone)
	for _, event := range log {
		got, err := s.Events(t.Context(), event.Revision-1, 1, 0)
		switch {
		case event.At.Before(young):
			fails(t, fmt.Sprintf("event %d of %v", event.Revision, event.At), err, store.ErrGone)
		case err != nil || len(got) != 1:
			t.Errorf("event %d of %v: %d events, %v", event.Revision, event.At, len(got), err)
		default:
			sameEvent(t, got[0], event)
		}
	}

	// Trim everything, with more events than an implementation may read in one call.
	for record.Revision < 4*LogLength {
		update()
	}
	trim(time.Now().Add(time.Hour))
	_, err = s.Events(t.Context(), record.Revision-1, 1, time.Minute)
	fails(t, "Events before an empty log", err, store.ErrGone)
	if got, err := s.Events(t.Context(), record.Revision, 1, 0); err != nil || len(got) != 0 {
		t.Errorf("Events after the last of an empty log: %d events, %v", len(got), err)
	}
	trim(time.Now().Add(time.Hour))
	expect(t, "after Trim", get(t, s, "one"), record)
	after := record.Revision
	update()
	if got := events(t, s, after); len(got) != 1 || got[0].Revision != after+1 {
		t.Errorf("after Trim and a change there are the events %+v", got)
	}
}

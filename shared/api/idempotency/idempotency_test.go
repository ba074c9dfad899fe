package idempotency_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/api/idempotency"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

type world struct {
	*idempotency.Store
	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{now: time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)}
	w.Store = &idempotency.Store{Records: client.Resource(idempotency.Resource), Keyring: ring, Now: func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.now
	}}
	return w
}

func (w *world) pass(time time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time)
}

// drawn are the first bytes that an attempt draws.
func drawn(t *testing.T, attempt *idempotency.Attempt) string {
	t.Helper()
	var bytes [16]byte
	if _, err := io.ReadFull(attempt.Random, bytes[:]); err != nil {
		t.Fatal(err)
	}
	return string(bytes[:])
}

func begin(t *testing.T, w *world, who, key, fingerprint string) *idempotency.Attempt {
	t.Helper()
	attempt, answer, err := w.Begin(t.Context(), who, key, fingerprint)
	if err != nil || answer != nil {
		t.Fatalf("%q, %v", answer, err)
	}
	return attempt
}

func TestAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attempt := begin(t, w, "user:ana", "k", "f")
	if _, _, err := w.Begin(t.Context(), "user:ana", "k", "f"); !errors.Is(err, idempotency.ErrUnderWay) {
		t.Errorf("meanwhile: %v", err)
	}
	if err := attempt.Finish(t.Context(), []byte("sesame")); err != nil {
		t.Fatal(err)
	}
	w.pass(idempotency.Lifetime - time.Second)
	if again, answer, err := w.Begin(t.Context(), "user:ana", "k", "f"); err != nil || string(answer) != "sesame" || again != nil {
		t.Errorf("again: %q, %v", answer, err)
	}
	if _, _, err := w.Begin(t.Context(), "user:ana", "k", "g"); !errors.Is(err, idempotency.ErrOther) {
		t.Errorf("another request: %v", err)
	}
	// Others have keys of their own.
	begin(t, w, "user:ben", "k", "f")
	begin(t, w, "user:ana", "l", "f")
	// In the state nothing is in clear, the key least of all.
	page, err := w.Records.List(t.Context(), store.Query{})
	if err != nil || len(page.Records) != 3 {
		t.Fatalf("%d records, %v", len(page.Records), err)
	}
	for _, record := range page.Records {
		// A sealed text may have three letters by chance, but no colon.
		if text := record.Name + string(record.Object); strings.Contains(text, "sesame") || strings.Contains(text, "user:ana") {
			t.Errorf("it is in the state: %s", text)
		}
	}
	// After ten minutes it is forgotten, and then the key is good for another request.
	w.pass(time.Second)
	other := begin(t, w, "user:ana", "k", "g")
	if err := other.Finish(t.Context(), []byte("other")); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := w.Begin(t.Context(), "user:ana", "k", "g"); err != nil || string(answer) != "other" {
		t.Errorf("%q, %v", answer, err)
	}
}

// An attempt whose process died is taken over when its time is up, with the same random bytes.
func TestDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := begin(t, w, "user:ana", "k", "f")
	w.pass(idempotency.Lease - time.Millisecond)
	if _, _, err := w.Begin(t.Context(), "user:ana", "k", "f"); !errors.Is(err, idempotency.ErrUnderWay) {
		t.Fatalf("before the lease is over: %v", err)
	}
	w.pass(time.Millisecond)
	second := begin(t, w, "user:ana", "k", "f")
	if drawn(t, first) != drawn(t, second) {
		t.Error("the second attempt draws other bytes")
	}
	if other := begin(t, w, "user:ana", "other", "f"); drawn(t, other) == drawn(t, second) {
		t.Error("another key draws the same bytes")
	}
	// What the first one finds out late changes nothing.
	if err := first.Finish(t.Context(), []byte("late")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
}

func TestLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attempt := begin(t, w, "user:ana", "k", "f")
	before := drawn(t, attempt)
	if err := attempt.Leave(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Begin(t.Context(), "user:ana", "k", "g"); !errors.Is(err, idempotency.ErrOther) {
		t.Errorf("another request after one that may have done something: %v", err)
	}
	again := begin(t, w, "user:ana", "k", "f")
	if drawn(t, again) != before {
		t.Error("other bytes are drawn")
	}
	if err := again.Leave(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	begin(t, w, "user:ana", "k", "g")
}

// Of many at once, one serves.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	served, refused := 0, 0
	for range 16 {
		group.Go(func() {
			_, _, err := w.Begin(t.Context(), "user:ana", "k", "f")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				served++
			case errors.Is(err, idempotency.ErrUnderWay):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if served != 1 || refused != 15 {
		t.Errorf("%d served, %d refused", served, refused)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []string{"a", "b"} {
		begin(t, w, "user:ana", key, "f")
	}
	if removed, err := w.Sweep(t.Context()); removed != 0 || err != nil {
		t.Errorf("too early: %d, %v", removed, err)
	}
	w.pass(idempotency.Lifetime)
	begin(t, w, "user:ana", "c", "f")
	if removed, err := w.Sweep(t.Context()); removed != 2 || err != nil {
		t.Errorf("%d, %v", removed, err)
	}
	if page, err := w.Records.List(t.Context(), store.Query{}); err != nil || len(page.Records) != 1 {
		t.Errorf("%d are left, %v", len(page.Records), err)
	}
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Keyring = nil
	if _, _, err := w.Begin(t.Context(), "user:ana", "k", "f"); !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("%v", err)
	}
}

// New attempts count for their owner, and so do their answers, which are stored nevertheless. Source: ADR-0020.
func TestQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Owner, w.Quota = "user:ana", store.Quota{Objects: 2, Bytes: 2000}
	first := begin(t, w, "user:ana", "k1", "f")
	if err := first.Finish(t.Context(), bytes.Repeat([]byte("x"), 3000)); err != nil {
		t.Errorf("an answer: %v", err)
	}
	if _, _, err := w.Begin(t.Context(), "user:ana", "k2", "f"); !errors.Is(err, store.ErrQuota) {
		t.Errorf("above the quota of bytes: %v", err)
	}
	if _, answer, err := w.Begin(t.Context(), "user:ana", "k1", "f"); err != nil || len(answer) != 3000 {
		t.Errorf("a repeated request: %d bytes, %v", len(answer), err)
	}
	w.Quota.Bytes = 1 << 20
	begin(t, w, "user:ana", "k2", "f")
	if _, _, err := w.Begin(t.Context(), "user:ana", "k3", "f"); !errors.Is(err, store.ErrQuota) {
		t.Errorf("above the quota of objects: %v", err)
	}
	w.Owner = "user:ben"
	begin(t, w, "user:ben", "k1", "f")

	// What has expired makes room.
	w.Owner = "user:ana"
	w.pass(idempotency.Lifetime)
	if removed, err := w.Sweep(t.Context()); err != nil || removed != 3 {
		t.Errorf("%d attempts were removed, %v", removed, err)
	}
	begin(t, w, "user:ana", "k3", "f")
}

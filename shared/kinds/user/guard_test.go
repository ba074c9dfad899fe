package user_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// worlds returns processes over one empty state, and a function that returns the stores of that state.
func worlds(t *testing.T, count int) ([]*world, func(resource string) store.Store) {
	t.Helper()
	url, config := redistest.Embedded(t), &model.ConfigStatus{}
	all := make([]*world, count)
	var stores func(string) store.Store
	for i := range all {
		stores = redistest.Open(t, url).Resource
		all[i] = &world{t: t, Stored: kinds.Open(&platform.Environment{
			Stores: stores, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), Config: func() *model.ConfigStatus { return config },
		})}
	}
	return all, stores
}

// Processes that disable all admins at the same time leave one: each process sees the writes of the others. Source: ADR-0029.
func TestAdminsAtTheSameTime(t *testing.T) {
	t.Parallel()
	const admins, rounds = 5, 4
	all, _ := worlds(t, admins)
	for i := range admins {
		all[0].expect("an admin", all[0].user(fmt.Sprintf("admin-%d", i), model.UserSpec{ClusterRoles: roles}), 200)
	}
	for round := range rounds {
		var (
			disabled sync.WaitGroup
			answers  [admins]error
		)
		for i, process := range all {
			disabled.Go(func() { answers[i] = process.patch(admin, fmt.Sprintf("admin-%d", i), `{"spec":{"disabled":true}}`) })
		}
		disabled.Wait()
		for i, err := range answers {
			if got := code(err); got != 200 && got != 409 {
				t.Errorf("round %d: admin-%d: %d %v", round, i, got, err)
			}
		}
		// A process that waited too long for the lock was refused as well, so more than one admin may be left.
		left := 0
		for record, err := range store.Each(t.Context(), all[0].Users.Store, store.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(record.Object), `"disabled":true`) {
				left++
			}
		}
		if left == 0 {
			t.Fatalf("round %d: no admin is left: %v", round, answers)
		}
		for i := range admins {
			all[0].expect("again", all[0].patch(admin, fmt.Sprintf("admin-%d", i), `{"spec":{"disabled":false}}`), 200)
		}
	}
}

// A minute after a process crashed, another process can take its lock. While a lock is held, a write is refused and changes
// nothing. Source: ADR-0029.
func TestLockOfAProcessThatCrashed(t *testing.T) {
	t.Parallel()
	all, stores := worlds(t, 1)
	w := all[0]
	w.expect("an admin", w.user("ana", model.UserSpec{ClusterRoles: roles}), 200)
	w.expect("another", w.user("ben", model.UserSpec{ClusterRoles: roles}), 200)
	locks := stores(lastadmin.LockResource)
	held, err := locks.Create(t.Context(), store.Record{Name: "lastadmin", Created: time.Now().Add(time.Hour), Object: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.patch(admin, "ana", `{"spec":{"disabled":true}}`); code(err) == 200 || !strings.Contains(err.Error(), "try again") {
		t.Errorf("while the lock is held: %v", err)
	}
	if _, err := locks.Delete(t.Context(), "lastadmin", held); err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Create(t.Context(), store.Record{Name: "lastadmin", Created: time.Now().Add(-2 * time.Minute), Object: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	w.expect("after a crash", w.patch(admin, "ana", `{"spec":{"disabled":true}}`), 200)
	w.expect("the last one", w.patch(admin, "ben", `{"spec":{"disabled":true}}`), 409)
	if page, err := locks.List(t.Context(), store.Query{}); err != nil || len(page.Records) > 0 {
		t.Errorf("the lock is still there: %v, %v", page.Records, err)
	}
}

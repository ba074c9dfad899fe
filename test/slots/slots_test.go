package slots_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/test/slots"
)

// actor does one write or lookup, step by step, in a goroutine of its own.
type actor struct {
	// next lets it do one step, and at has a value once it stands before the next step or has ended.
	next, at chan struct{}
	ended    atomic.Bool
}

// begin begins the work of an actor and returns once it stands before its first step.
func begin(base slots.Spread, work func(*slots.Spread)) *actor {
	a := &actor{next: make(chan struct{}), at: make(chan struct{})}
	base.Step = func(string) {
		a.at <- struct{}{}
		if _, more := <-a.next; !more {
			runtime.Goexit()
		}
	}
	go func() {
		defer func() {
			a.ended.Store(true)
			close(a.at)
		}()
		work(&base)
	}()
	<-a.at
	return a
}

// goOn does one step.
func (a *actor) goOn() {
	if !a.ended.Load() {
		a.next <- struct{}{}
		<-a.at
	}
}

// crash ends the actor where it stands.
func (a *actor) crash() {
	if !a.ended.Load() {
		close(a.next)
		for range a.at {
			continue
		}
	}
}

// Whatever writers and lookups do at the same time, and wherever they crash: a record that answers is that of the object as it
// is, and a lookup finds what the object says. Source: ADR-0027.
func TestRecordsNeverOutliveWhatTheySay(t *testing.T) {
	url := redistest.Embedded(t)
	client, err := redisstore.Open(url, redisstore.Options{Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	raw := redis.NewClient(options)
	t.Cleanup(func() { _ = raw.Close() })
	var worlds atomic.Int64
	// A wrong rule shows in one of some hundred cases.
	for range 5 {
		rapid.Check(t, func(rt *rapid.T) {
			world := worlds.Add(1)
			digest := fmt.Sprintf("%08x", world)
			base := slots.Spread{
				Store: client.Resource(fmt.Sprint("world", world)), Redis: raw,
				Text: func(record store.Record) (string, error) { return string(record.Object), nil },
			}
			play(rt, base, digest)
		})
	}
}

func play(rt *rapid.T, base slots.Spread, digest string) {
	ctx := context.Background()
	record := store.Record{Name: "key", Digest: digest, Created: time.UnixMilli(1), Object: []byte(`"0"`)}
	switch rapid.SampledFrom([]string{"absent", "without a record", "with a record"}).Draw(rt, "object") {
	case "without a record":
		if _, err := base.Store.Create(ctx, record); err != nil {
			rt.Fatal(err)
		}
	case "with a record":
		if _, err := base.Create(ctx, record); err != nil {
			rt.Fatal(err)
		}
	}
	var actors []*actor
	for number := range rapid.IntRange(1, 4).Draw(rt, "actors") {
		var work func(*slots.Spread)
		switch rapid.SampledFrom([]string{"create", "update", "remove", "look"}).Draw(rt, "work") {
		case "create":
			work = func(s *slots.Spread) { _, _ = s.Create(ctx, record) }
		case "update":
			work = func(s *slots.Spread) {
				s.Step("get")
				now, err := s.Get(ctx, "key")
				if err != nil {
					return
				}
				now.Object = fmt.Appendf(nil, "%q", fmt.Sprint(number+1))
				_, _ = s.Update(ctx, now)
			}
		case "remove":
			work = func(s *slots.Spread) {
				s.Step("get")
				now, err := s.Get(ctx, "key")
				if err != nil {
					return
				}
				_, _ = s.Remove(ctx, "key", digest, now.Revision)
			}
		case "look":
			work = func(s *slots.Spread) { _, _ = s.Look(ctx, digest) }
		}
		actors = append(actors, begin(base, work))
	}
	defer func() {
		for _, a := range actors {
			a.crash()
		}
	}()
	for _, turn := range rapid.SliceOfN(rapid.IntRange(0, 4*len(actors)), 1, 24).Draw(rt, "turns") {
		a := actors[turn%len(actors)]
		if turn == 4*len(actors) {
			a.crash()
		} else {
			a.goOn()
		}
		check(rt, base, digest)
	}
	for _, a := range actors {
		a.crash()
	}
	found, err := base.Look(ctx, digest)
	now, absent := base.Get(ctx, "key")
	switch {
	case errors.Is(absent, store.ErrNotFound) && errors.Is(err, store.ErrNotFound):
	case absent != nil || err != nil:
		rt.Fatalf("a lookup says %v where the object says %v", err, absent)
	case found.Text != string(now.Object) || found.Revision != now.Revision:
		rt.Fatalf("a lookup found %+v of an object %s at %d", found, now.Object, now.Revision)
	}
	check(rt, base, digest)
}

// check compares the record of a digest with the object.
func check(rt *rapid.T, base slots.Spread, digest string) {
	ctx := context.Background()
	stored, err := base.Redis.HGet(ctx, "p1:{auth:"+digest[:2]+"}:digests", digest).Result()
	if errors.Is(err, redis.Nil) {
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	number, text, _ := strings.Cut(stored, "\n")
	if text == "" {
		return
	}
	now, err := base.Get(ctx, "key")
	if err != nil || fmt.Sprint(now.Revision) != number || string(now.Object) != text {
		rt.Fatalf("a record says %q at %s, the object is %s at %d: %v", text, number, now.Object, now.Revision, err)
	}
}

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func thing(name string) store.Record {
	return store.Record{Name: name, Digest: "digest-" + name, Created: created, Object: []byte(`{}`)}
}

// everyCall calls each method of a Store once, on the object "one".
func everyCall(ctx context.Context, s store.Store) map[string]func() error {
	record := thing("one")
	record.Revision = start + 1
	return map[string]func() error{
		"Create":      func() error { _, err := s.Create(ctx, thing("two")); return err },
		"Get":         func() error { _, err := s.Get(ctx, "one"); return err },
		"GetByDigest": func() error { _, err := s.GetByDigest(ctx, "digest-one"); return err },
		"Update":      func() error { _, err := s.Update(ctx, record); return err },
		"Delete":      func() error { _, err := s.Delete(ctx, "one", 1); return err },
		"List":        func() error { _, err := s.List(ctx, store.Query{}); return err },
		"Touch":       func() error { return s.Touch(ctx, record, created, created) },
		"References":  func() error { _, _, err := s.References(ctx, 0, 1); return err },
		"Referred": func() error {
			_, err := s.Referred(ctx, []store.Referral{{Resource: s.Name(), UID: "u"}})
			return err
		},
		"Due":    func() error { _, err := s.Due(ctx, store.DueQuery{Until: created, Limit: 1}); return err },
		"Events": func() error { _, err := s.Events(ctx, start+1, 1, time.Hour); return err },
		"Trim":   func() error { return s.Trim(ctx, created) },
	}
}

// soon is longer than an operation with its timeout takes, and shorter than a second attempt or the timeouts of go-redis.
const soon = 5 * time.Second / 2

// quick returns the error of a call that ends soon. A busy machine may make a call slow, but not five in a row.
func quick(t *testing.T, what string, call func() error) error {
	t.Helper()
	for attempt := 1; ; attempt++ {
		start := time.Now()
		err := call()
		took := time.Since(start)
		if took <= soon {
			return err
		}
		if attempt == 5 {
			t.Errorf("%s took %v", what, took)
			return err
		}
	}
}

// unavailable expects each call to fail soon: with ErrUnavailable, or with the context's error if the caller gives up.
func unavailable(t *testing.T, client *redisstore.Client, s store.Store) {
	t.Helper()
	var group sync.WaitGroup
	try := func(what string, call func() error, want error) {
		group.Go(func() {
			err := quick(t, what, call)
			if !errors.Is(err, want) || errors.Is(err, store.ErrUnavailable) != errors.Is(want, store.ErrUnavailable) {
				t.Errorf("%s: error is %v, want %v", what, err, want)
			}
		})
	}
	for what, call := range everyCall(t.Context(), s) {
		try(what, call, store.ErrUnavailable)
	}
	try("Ping", func() error { return client.Ping(t.Context()) }, store.ErrUnavailable)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for what, call := range everyCall(cancelled, s) {
		try(what+", given up", call, context.Canceled)
	}
	group.Wait()
}

// exists creates a thing, unless an earlier attempt has done so.
func exists(ctx context.Context, s store.Store, name string) error {
	if _, err := s.Create(ctx, thing(name)); !errors.Is(err, store.ErrExists) {
		return err
	}
	return nil
}

// available expects a call to succeed without an outage. It tries again only after a call that waited for its whole
// timeout: the machine may be that busy. A client that still returns errors of the outage fails earlier.
func available(t *testing.T, what string, call func() error) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		start := time.Now()
		err := call()
		if err == nil {
			return
		}
		if took := time.Since(start); !errors.Is(err, store.ErrUnavailable) || took < redisstore.DefaultTimeout*9/10 || attempt == 10 {
			t.Errorf("%s without an outage, attempt %d: %v after %v", what, attempt, err, took)
			return
		}
	}
}

func outage(t *testing.T, url func(*redistest.Process) string, begin, end func(*redistest.Process)) {
	process := redistest.Server(t, redistest.AppendOnly())
	client := open(t, url(process), prompt)
	s := client.Resource("things")
	available(t, "Create", func() error { return exists(t.Context(), s, "one") })
	// A second client waits for events all the time, and has idle connections.
	patient := open(t, url(process), prompt)
	waiting := make(chan error, 1)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { available(t, "Ping", func() error { return patient.Ping(t.Context()) }) })
	}
	group.Wait()
	go func() {
		_, err := patient.Resource("things").Events(t.Context(), start, 1, time.Hour)
		waiting <- err
	}()

	for range 2 {
		begin(process)
		unavailable(t, client, s)
		end(process)
		// The same client works again at once. Earlier writes may or may not have been done.
		available(t, "Ping", func() error { return client.Ping(t.Context()) })
		available(t, "List", func() error { _, err := s.List(t.Context(), store.Query{}); return err })
		available(t, "Create", func() error { _, err := s.Create(t.Context(), thing(freshName())); return err })
	}
	if err := <-waiting; err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("waiting through the outage: %v", err)
	}
	for range 20 {
		available(t, "Ping over connections that were idle", func() error { return patient.Ping(t.Context()) })
	}
}

func TestOutage(t *testing.T) {
	t.Parallel()
	for network, url := range map[string]func(*redistest.Process) string{
		"tcp": (*redistest.Process).URL, "unix": (*redistest.Process).UnixURL,
	} {
		t.Run("Killed/"+network, func(t *testing.T) {
			t.Parallel()
			outage(t, url, (*redistest.Process).Kill, (*redistest.Process).Restart)
		})
		t.Run("Stopped/"+network, func(t *testing.T) {
			t.Parallel()
			outage(t, url, (*redistest.Process).Stop, (*redistest.Process).Cont)
		})
	}
}

// TestClusterOutage stops one of three masters. Resources are in different slots, so that every master
// has some.
func TestClusterOutage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct{ begin, end func(*redistest.Process) }{
		"Killed":  {(*redistest.Process).Kill, (*redistest.Process).Restart},
		"Stopped": {(*redistest.Process).Stop, (*redistest.Process).Cont},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := redistest.Nodes(t)
			var urls []string
			for _, node := range nodes {
				urls = append(urls, node.URL())
			}
			client := open(t, strings.Join(urls, ","), prompt)
			var stores []store.Store
			for range 12 {
				s := client.Resource(freshName())
				stores = append(stores, s)
				available(t, "Create", func() error { return exists(t.Context(), s, "one") })
			}

			change.begin(nodes[1])
			var failures atomic.Int64
			var group sync.WaitGroup
			for _, s := range stores {
				group.Go(func() {
					err := quick(t, "Create", func() error { return exists(t.Context(), s, "two") })
					if errors.Is(err, store.ErrUnavailable) {
						failures.Add(1)
					} else if err != nil {
						t.Errorf("Create: %v", err)
					}
				})
			}
			group.Wait()
			if failures.Load() == 0 {
				t.Error("everything was available without one of the masters")
			}
			if err := client.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Ping without one of the masters: %v", err)
			}

			change.end(nodes[1])
			end := time.Now().Add(30 * time.Second)
			for _, s := range stores {
				for {
					_, err := s.Create(t.Context(), thing("three"))
					if err == nil || errors.Is(err, store.ErrExists) {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("still unavailable: %v", err)
					}
					time.Sleep(5 * time.Millisecond) //nolint:forbidigo // bounded polling of a process
				}
			}
		})
	}
}

// TestManyFailuresDoNotDelayRecovery: a pool that has seen many refused connections must try again.
func TestManyFailuresDoNotDelayRecovery(t *testing.T) {
	t.Parallel()
	process := redistest.Server(t)
	client := open(t, process.URL(), prompt)
	process.Kill()
	var group sync.WaitGroup
	for range 300 {
		group.Go(func() {
			if err := client.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Ping of a dead server: %v", err)
			}
		})
	}
	group.Wait()
	process.Restart()
	available(t, "Ping", func() error { return client.Ping(t.Context()) })
}

func TestNothingListens(t *testing.T) {
	t.Parallel()
	process := redistest.Server(t)
	process.Kill()
	// Open does not connect, and a client that never connected can be closed.
	for _, url := range []string{process.URL(), process.UnixURL(), process.URL() + "," + process.URL()} {
		client := open(t, url, prompt)
		unavailable(t, client, client.Resource("things"))
	}
}

func TestAcknowledgedWritesSurviveAKill(t *testing.T) {
	t.Parallel()
	process := redistest.Server(t, redistest.AppendOnly())
	client := open(t, process.URL(), prompt)
	s := client.Resource("things")
	const writers, enough = 8, 400
	var acknowledged atomic.Int64
	var dead atomic.Bool
	var revisions sync.Map
	enoughWrites := make(chan struct{})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("n-%d-%d", w, i)
				revision, err := s.Create(t.Context(), thing(name))
				if err != nil {
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("Create while the server dies: %v", err)
					}
					if dead.Load() {
						return
					}
					continue
				}
				revisions.Store(name, revision)
				if acknowledged.Add(1) == enough {
					close(enoughWrites)
				}
			}
		})
	}
	<-enoughWrites
	process.Kill()
	dead.Store(true)
	group.Wait()
	process.Restart()

	records, events, lastRevision, err := whole(t.Context(), open(t, process.URL(), redisstore.Options{}).Resource("things"))
	if err != nil {
		t.Fatal(err)
	}
	storedRevisions := map[string]int64{}
	for _, record := range records {
		storedRevisions[record.Name] = record.Revision
	}
	revisions.Range(func(name, revision any) bool {
		if storedRevisions[name.(string)] != revision.(int64) {
			t.Errorf("%s was acknowledged at revision %d and is at %d after the restart", name, revision, storedRevisions[name.(string)])
		}
		return true
	})
	// No write is half done: there is one event and one object for each revision.
	if lastRevision != start+int64(len(storedRevisions)) {
		t.Errorf("%d objects at revision %d", len(storedRevisions), lastRevision)
	}
	if len(events) != len(storedRevisions) {
		t.Errorf("%d events of %d objects", len(events), len(storedRevisions))
	}
}

// TestWritesAreNotRepeated cuts the connection when a write has arrived.
func TestWritesAreNotRepeated(t *testing.T) {
	embedded := miniredis.RunT(t)
	url := "redis://" + embedded.Addr()
	for name, url := range map[string]string{"single": url, "cluster": url + "," + url} {
		t.Run(name, func(t *testing.T) {
			s := open(t, url, patient).Resource(freshName())
			if _, err := s.Create(t.Context(), thing("one")); err != nil {
				t.Fatal(err)
			}
			var arrived atomic.Int64
			embedded.Server().SetPreHook(func(peer *server.Peer, command string, _ ...string) bool {
				if !strings.HasPrefix(strings.ToUpper(command), "EVAL") {
					return false
				}
				arrived.Add(1)
				peer.Close()
				return true
			})
			_, err := s.Create(t.Context(), thing("two"))
			embedded.Server().SetPreHook(nil)
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Create on a connection that breaks: %v", err)
			}
			if n := arrived.Load(); n != 1 {
				t.Errorf("the write was sent %d times", n)
			}
			if _, err := s.Create(t.Context(), thing("three")); err != nil {
				t.Errorf("Create on a new connection: %v", err)
			}
		})
	}
}

func TestEventsWaitLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 500 * time.Millisecond
	client := open(t, redistest.Server(t).URL(), redisstore.Options{Timeout: timeout})
	s := client.Resource("things")
	// On a busy machine half a second may be too short for the first calls.
	eventually(t, "waiting for longer than the timeout", func() error {
		events, err := s.Events(t.Context(), start, 1, 3*timeout)
		if len(events) != 0 {
			t.Errorf("Events: %d events", len(events))
		}
		return err
	})
	// Far more callers wait than the pool has connections, and a write still gets a connection.
	const waiters = 300
	var group sync.WaitGroup
	var callers sync.WaitGroup
	for range waiters {
		callers.Add(1)
		group.Go(func() {
			callers.Done()
			for {
				events, err := s.Events(t.Context(), start, 1, time.Minute)
				// On a busy machine half a second may be too short for 300 callers at once.
				if errors.Is(err, store.ErrUnavailable) {
					continue
				}
				if err != nil || len(events) != 1 {
					t.Errorf("waiting: %d events, %v", len(events), err)
				}
				return
			}
		})
	}
	callers.Wait()
	for {
		_, err := s.Create(t.Context(), thing("one"))
		if errors.Is(err, store.ErrUnavailable) {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrExists) {
			t.Error(err)
		}
		break
	}
	group.Wait()
}

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// eventually repeats a call for at most half a minute, until it succeeds.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // bounded polling of a process
	}
}

// TestFailover: a sentinel promotes a replica that missed the primary's last writes.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary := redistest.Server(t)
	admin := raw(t, primary.URL())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "copier", "on", ">c", "+psync", "+replconf", "+ping").Err())
	redistest.Replica(t, primary, redistest.Argument("--masteruser", "copier", "--masterauth", "c"))
	guard := redistest.Sentinel(t, "state", primary, 1)
	gone := redistest.Server(t)
	gone.Kill()

	client := open(t, "redis-sentinel://"+gone.Address()+","+guard.Address()+"/state", busy)
	s := client.Resource("things")
	_, err := s.Create(t.Context(), thing("one"))
	must(t, err)
	// WAIT is about the writes of its own connection, so this connection writes after the store has.
	after := admin.Conn()
	defer after.Close()
	must(t, after.Set(t.Context(), "after", "", 0).Err())
	if copies, err := after.Do(t.Context(), "WAIT", 1, 10_000).Int(); err != nil || copies != 1 {
		t.Fatalf("%d replicas, %v", copies, err)
	}

	record, err := s.Get(t.Context(), "one")
	must(t, err)

	// From here on the replica misses all writes.
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "copier", "off").Err())
	must(t, admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err())
	lostRevision := int64(0)
	for i := range 5 {
		lostRevision, err = s.Create(t.Context(), thing(fmt.Sprint("lost-", i)))
		must(t, err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Events(t.Context(), lostRevision, 1, time.Hour)
		waiting <- err
	}()

	sentinel := redis.NewSentinelClient(&redis.Options{Addr: guard.Address(), Protocol: 2})
	defer sentinel.Close()
	start := time.Now()
	eventually(t, "asking for a failover", func() error { return sentinel.Failover(t.Context(), "state").Err() })
	old := primary.Address()
	eventually(t, "promoting", func() error {
		at, err := sentinel.GetMasterAddrByName(t.Context(), "state").Result()
		if err == nil && strings.Join(at, ":") == old {
			err = errors.New("the primary is still the old one")
		}
		return err
	})
	promoted := time.Now()
	if _, err := s.Get(t.Context(), "one"); err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get after the failover: %v", err)
	}
	var revision int64
	failures := 0
	eventually(t, "writing", func() error {
		var err error
		if revision, err = s.Create(t.Context(), thing("two")); err != nil {
			failures++
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Create after the failover: %v", err)
			}
		}
		return err
	})
	t.Logf("promoted after %v; written %v later, after %d failures", promoted.Sub(start), time.Since(promoted), failures)
	if revision <= lostRevision {
		t.Errorf("revision %d is used again: readers have seen %d", revision, lostRevision)
	}
	for i := range 5 {
		// As many writes as were lost.
		_, err := s.Create(t.Context(), thing(fmt.Sprint("more-", i)))
		must(t, err)
	}
	for lost := record.Revision + 1; lost <= lostRevision; lost++ {
		if got, err := s.Events(t.Context(), lost, 1, 0); !errors.Is(err, store.ErrGone) {
			t.Errorf("Events after revision %d, which was lost: %v, %v", lost, got, err)
		}
	}
	if got, err := s.Events(t.Context(), record.Revision, 10, 0); err != nil || len(got) != 6 || got[0].Revision != revision || got[0].Follows != record.Revision {
		t.Errorf("Events after what was kept: %+v, %v", got, err)
	}
	if err := <-waiting; !errors.Is(err, store.ErrGone) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("waiting after a revision that was lost: %v", err)
	}
	if _, err := s.Get(t.Context(), "lost-0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of what was lost: %v", err)
	}
}

// TestSentinelsAway: if a sentinel does not answer, the client asks another one.
func TestSentinelsAway(t *testing.T) {
	t.Parallel()
	primary := redistest.Server(t)
	var guards []*redistest.Process
	var hosts []string
	for range 2 {
		guard := redistest.Sentinel(t, "state", primary, 0)
		guards, hosts = append(guards, guard), append(hosts, guard.Address())
	}
	url := "redis-sentinel://" + strings.Join(hosts, ",") + "/state"
	for i, guard := range guards {
		client := open(t, url, busy)
		must(t, client.Ping(t.Context()))
		guard.Stop()
		// The client needs a new connection, and asks a sentinel where to connect.
		must(t, raw(t, primary.URL()).ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
		if err := client.Ping(t.Context()); err != nil {
			t.Errorf("Ping without sentinel %d: %v", i, err)
		}
		if err := open(t, url, busy).Ping(t.Context()); err != nil {
			t.Errorf("Ping by a new client without sentinel %d: %v", i, err)
		}
		guard.Cont()
	}
	if err := open(t, "redis-sentinel://"+hosts[0]+"/other", prompt).Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping of a primary that no sentinel knows: %v", err)
	}
}

// TestReplicas: a write is acknowledged once a replica has it. Without a replica it is done but not acknowledged.
func TestReplicas(t *testing.T) {
	t.Parallel()
	primary := redistest.Server(t)
	replica := redistest.Replica(t, primary)
	// A replica of a busy machine may take its time. One that is stopped is not waited for as long.
	s := open(t, primary.URL(), redisstore.Options{Replicas: 1, ReplicaTimeout: patient.Timeout / 2}).Resource("things")
	impatient := open(t, primary.URL(), redisstore.Options{Replicas: 1, ReplicaTimeout: 300 * time.Millisecond}).Resource("things")
	record := thing("one")
	var err error
	record.Revision, err = s.Create(t.Context(), record)
	must(t, err)
	if got := raw(t, replica.URL()).Get(t.Context(), "p1:{things}:rev").Val(); got != strconv.FormatInt(record.Revision, 10) {
		t.Errorf("the replica is at revision %q", got)
	}
	_, err = s.Create(t.Context(), thing("one"))
	if !errors.Is(err, store.ErrExists) {
		t.Errorf("Create again: %v", err)
	}

	replica.Stop()
	start := time.Now()
	_, err = impatient.Create(t.Context(), thing("two"))
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), fmt.Sprint("revision ", record.Revision+1)) {
		t.Errorf("Create without a replica: %v", err)
	}
	if took := time.Since(start); took < 300*time.Millisecond || took > patient.Timeout/2 {
		t.Errorf("Create without a replica took %v", took)
	}
	if current, err := s.Get(t.Context(), "two"); err != nil || current.Revision != record.Revision+1 {
		t.Errorf("Get of what one replica lacks: %v, %v", current.Revision, err)
	}
	must(t, s.Touch(t.Context(), record, created, time.Time{}))
	replica.Cont()
	eventually(t, "writing with a replica again", func() error {
		_, err := s.Update(t.Context(), record)
		if errors.Is(err, store.ErrConflict) {
			// The previous attempt did it, without an acknowledgement.
			current, err := s.Get(t.Context(), "one")
			must(t, err)
			record.Revision = current.Revision
		}
		return err
	})

	embedded := open(t, redistest.Embedded(t), redisstore.Options{Replicas: 1, ReplicaTimeout: time.Millisecond}).Resource("things")
	if _, err := embedded.Create(t.Context(), thing("one")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Create in the embedded server: %v", err)
	}
}

// TestMigration moves the slot of a resource to another node and back during writes. Every acknowledged write was done
// exactly once.
func TestMigration(t *testing.T) {
	t.Parallel()
	nodes := redistest.Nodes(t)
	// One seed is enough.
	url := strings.Replace(nodes[2].URL(), "redis://", "redis-cluster://", 1)
	for name, options := range map[string]redisstore.Options{
		"Plain": {},
		// No replicas: each write is done, and reported as not acknowledged.
		"Waiting": {Replicas: 1, ReplicaTimeout: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			resource := freshName()
			s := open(t, url, options).Resource(resource)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			// While a slot moves, a script is redirected only if all of its keys exist.
			full := thing("full")
			full.Owner, full.Expires, full.References, full.Quota.Bytes = "ana", created, []string{"u"}, 1<<20
			_, err := s.Create(t.Context(), full)
			isWritten := func(err error) bool {
				return err == nil || options.Replicas > 0 && strings.Contains(err.Error(), "written at revision")
			}
			if !isWritten(err) {
				t.Fatal(err)
			}
			must(t, s.Touch(t.Context(), full, created, time.Time{}))
			acknowledged := map[string]bool{"full": true}
			var count atomic.Int64
			var redirected []string
			writerDone := make(chan struct{})
			tries := 0
			go func() {
				defer close(writerDone)
				for ; ctx.Err() == nil; tries++ {
					name := fmt.Sprint("n-", tries)
					_, err := s.Create(t.Context(), thing(name))
					switch {
					case isWritten(err):
						acknowledged[name] = true
						count.Add(1)
					case !errors.Is(err, store.ErrUnavailable):
						t.Errorf("Create %s: %v", name, err)
					}
				}
			}()
			clients := make([]*redis.Client, len(nodes))
			for i, node := range nodes {
				clients[i] = raw(t, node.URL())
			}
			for round := range 6 {
				before := count.Load()
				eventually(t, "writing", func() error {
					if count.Load() < before+10 {
						return errors.New("too few writes are acknowledged")
					}
					return nil
				})
				announced := fmt.Sprint("asked-", round)
				migrate(t, clients, "p1:{"+resource+"}:", func() {
					// All keys have moved, and the slot still belongs to the old node.
					if _, err := s.Create(t.Context(), thing(announced)); !isWritten(err) {
						t.Errorf("Create where the old node says ASK: %v", err)
					}
				})
				redirected = append(redirected, announced)
			}
			stop()
			<-writerDone

			events := map[string]int{}
			var records []store.Record
			var log []store.Event
			var revision int64
			// The nodes may take a moment to agree.
			eventually(t, "reading", func() error {
				var err error
				records, log, revision, err = whole(t.Context(), s)
				return err
			})
			for _, event := range log {
				events[event.Record.Name]++
			}
			t.Logf("%d writes, %d acknowledged, %d done", tries, len(acknowledged), len(records))
			if len(records) != len(events) || revision != log[len(log)-1].Revision || len(acknowledged) == 0 {
				t.Errorf("%d objects and %d names of events at revision %d", len(records), len(events), revision)
			}
			for _, name := range redirected {
				acknowledged[name] = true
			}
			for name := range acknowledged {
				if events[name] != 1 {
					t.Errorf("%s was acknowledged and is in %d events", name, events[name])
				}
			}
		})
	}
}

// migrate moves a slot to the next node, key by key, as redis-cli does. It calls onMoved when all keys have moved and no
// node knows of it yet.
func migrate(t *testing.T, nodes []*redis.Client, prefix string, onMoved func()) {
	t.Helper()
	ctx := t.Context()
	slot := nodes[0].ClusterKeySlot(ctx, prefix).Val()
	ids := make([]string, len(nodes))
	source := -1
	for i, node := range nodes {
		ids[i] = node.Do(ctx, "CLUSTER", "MYID").Val().(string)
		for _, part := range node.ClusterSlots(ctx).Val() {
			if int64(part.Start) <= slot && slot <= int64(part.End) && part.Nodes[0].ID == ids[i] {
				source = i
			}
		}
	}
	if source < 0 {
		t.Fatal("no node has the slot")
	}
	destination := (source + 1) % len(nodes)
	must(t, nodes[destination].Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source]).Err())
	must(t, nodes[source].Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[destination]).Err())
	host, port, _ := strings.Cut(nodes[destination].Options().Addr, ":")
	for {
		keys, err := nodes[source].ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		must(t, err)
		if len(keys) == 0 {
			break
		}
		must(t, nodes[source].Migrate(ctx, host, port, keys[0], 0, time.Second).Err())
	}
	onMoved()
	// The new node learns it first, so that the slot has an owner at all times.
	must(t, nodes[destination].Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", ids[destination]).Err())
	for i, node := range nodes {
		if i != destination {
			must(t, node.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", ids[destination]).Err())
		}
	}
}

// TestRedirectedWritesAreNotRepeated cuts the connection when a redirected write has arrived at its new node.
func TestRedirectedWritesAreNotRepeated(t *testing.T) {
	embedded := miniredis.RunT(t)
	for name, options := range map[string]redisstore.Options{"Plain": {}, "Waiting": {Replicas: 1, ReplicaTimeout: time.Millisecond}} {
		for _, redirection := range []string{"ASK", "MOVED"} {
			s := open(t, "redis-cluster://"+embedded.Addr(), options).Resource(freshName())
			_, _ = s.Create(t.Context(), thing("one"))
			var arrived atomic.Int64
			embedded.Server().SetPreHook(func(peer *server.Peer, command string, _ ...string) bool {
				switch {
				case strings.EqualFold(command, "ASKING"):
					peer.WriteOK()
				case !strings.HasPrefix(strings.ToUpper(command), "EVAL"):
					return false
				case arrived.Add(1) == 1:
					peer.WriteError(redirection + " 0 " + embedded.Addr())
				default:
					peer.Close()
				}
				return true
			})
			_, err := s.Create(t.Context(), thing("two"))
			embedded.Server().SetPreHook(nil)
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s, %s: Create on a connection that breaks: %v", name, redirection, err)
			}
			if n := arrived.Load(); n != 2 {
				t.Errorf("%s, %s: the write arrived %d times, want once and once more where it was sent", name, redirection, n)
			}
		}
	}
}

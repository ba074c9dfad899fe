package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// way is a proxy between a client and a server, and can be cut.
type way struct {
	listener net.Listener
	to       atomic.Pointer[string]
	accepted atomic.Int64
	refusing atomic.Bool

	mu    sync.Mutex
	pairs []*pair
}

// pair is a client's connection and its continuation to the server. A dark pair stays open and forwards nothing.
type pair struct {
	near, far net.Conn
	dark      atomic.Bool
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: listener}
	w.to.Store(&to)
	t.Cleanup(func() {
		listener.Close()
		w.closeAll()
	})
	go w.serve()
	return w
}

func (w *way) address() string { return w.listener.Addr().String() }

func (w *way) serve() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.accepted.Add(1)
		if w.refusing.Load() {
			client.Close()
			continue
		}
		far, err := net.Dial("tcp", *w.to.Load())
		if err != nil {
			client.Close()
			continue
		}
		p := &pair{near: client, far: far}
		w.mu.Lock()
		w.pairs = append(w.pairs, p)
		w.mu.Unlock()
		go p.forward(client, far)
		go p.forward(far, client)
	}
}

func (p *pair) forward(from, to net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if p.dark.Load() {
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			p.near.Close()
			p.far.Close()
			return
		}
	}
}

// closeAll closes all connections, so that both ends notice.
func (w *way) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		p.near.Close()
		p.far.Close()
	}
	w.pairs = nil
}

// darken keeps all connections open and forwards nothing any more.
func (w *way) darken() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		p.dark.Store(true)
	}
}

// waitFor waits: the tests are about the passing of time.
func waitFor(d time.Duration) { <-time.After(d) }

// busy are options for a busy machine: all limits are in proportion to the timeout.
var busy = redisstore.Options{PoolSize: 4, Timeout: 5 * time.Second}

// thawed is longer than the silence after which a connection is tested with a PING.
const thawed = 1100 * time.Millisecond

// TestThaw: the connections of a function that was frozen are dead when it resumes. Neither a read nor a write fails.
func TestThaw(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	certificate, key := authority.issue(t, time.Hour, "127.0.0.1")
	process := redistest.Server(t, redistest.TLS(certificate, key, authority.file, false))
	_, secure, _ := strings.Cut(process.SecureURL(), "://")
	for name, form := range map[string]struct{ to, url string }{
		"plain": {process.Address(), "redis://%s"},
		"TLS":   {secure, "rediss://%s?ca_file=" + authority.file},
	} {
		for what, end := range map[string]func(*way){"cut": (*way).closeAll, "dark": (*way).darken} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				way := newWay(t, form.to)
				client := open(t, fmt.Sprintf(form.url, way.address()), busy)
				s := client.Resource(freshName())
				use := func(round string) {
					var group sync.WaitGroup
					for i := range 8 {
						group.Go(func() {
							start := time.Now()
							name := fmt.Sprintf("%s-%d", round, i)
							if _, err := s.Create(t.Context(), thing(name)); err != nil {
								t.Errorf("Create %s: %v", name, err)
							}
							if _, err := s.Get(t.Context(), name); err != nil {
								t.Errorf("Get %s: %v", name, err)
							}
							if took := time.Since(start); took > busy.Timeout {
								t.Errorf("%s took %v", name, took)
							}
						})
					}
					group.Wait()
				}
				use("before")
				if n := way.accepted.Load(); n > 4 {
					t.Errorf("%d connections of a pool of 4", n)
				}
				end(way)
				waitFor(thawed)
				before := way.accepted.Load()
				use("after")
				if n := way.accepted.Load() - before; n > 4 {
					t.Errorf("%d connections after the thaw", n)
				}
			})
		}
	}
}

// A silent connection that still works is kept: it costs one PING.
func TestSilentConnectionsAreKept(t *testing.T) {
	t.Parallel()
	way := newWay(t, redistest.Server(t).Address())
	s := open(t, "redis://"+way.address(), redisstore.Options{}).Resource("things")
	for round := range 2 {
		if _, err := s.Create(t.Context(), thing(fmt.Sprint("n-", round))); err != nil {
			t.Fatal(err)
		}
		waitFor(thawed)
	}
	if n := way.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestReconnecting counts how often many callers connect to a server that accepts connections and closes them.
func TestReconnecting(t *testing.T) {
	t.Parallel()
	way := newWay(t, redistest.Server(t).Address())
	s := open(t, "redis://"+way.address(), prompt).Resource("things")
	available(t, "Create", func() error { return exists(t.Context(), s, "one") })
	way.refusing.Store(true)
	way.closeAll()
	dialsBefore := way.accepted.Load()
	const callers = 500
	var calls atomic.Int64
	var group sync.WaitGroup
	end := time.Now().Add(2 * time.Second)
	for range callers {
		group.Go(func() {
			for time.Now().Before(end) {
				calls.Add(1)
				if _, err := s.Get(t.Context(), "one"); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("Get: %v", err)
				}
			}
		})
	}
	group.Wait()
	dials := way.accepted.Load() - dialsBefore
	t.Logf("%d connections for %d calls of %d callers", dials, calls.Load(), callers)
	// At first a few at once, then one after each pause: about 60, and some more on a busy machine.
	if dials > callers/3 {
		t.Errorf("%d connections for %d callers", dials, callers)
	}
	way.refusing.Store(false)
	available(t, "Get", func() error { _, err := s.Get(t.Context(), "one"); return err })
}

// TestReadsAreRepeatedOnce cuts the connection when a read has arrived.
func TestReadsAreRepeatedOnce(t *testing.T) {
	embedded := miniredis.RunT(t)
	s := open(t, "redis://"+embedded.Addr(), redisstore.Options{}).Resource("things")
	if _, err := s.Create(t.Context(), thing("one")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		cuts, arrive int64
		want         error
	}{{1, 2, nil}, {5, 2, store.ErrUnavailable}} {
		var arrived atomic.Int64
		embedded.Server().SetPreHook(func(peer *server.Peer, command string, args ...string) bool {
			if !strings.EqualFold(command, "HMGET") || !strings.HasSuffix(args[0], ":objects") || arrived.Add(1) > row.cuts {
				return false
			}
			peer.Close()
			return true
		})
		_, err := s.Get(t.Context(), "one")
		embedded.Server().SetPreHook(nil)
		if !errors.Is(err, row.want) {
			t.Errorf("Get over %d connections that break: %v", row.cuts, err)
		}
		if n := arrived.Load(); n != row.arrive {
			t.Errorf("the read arrived %d times, want %d", n, row.arrive)
		}
	}
}

// A server that has sent part of a reply is not asked again: it is still working, or its replies are broken.
func TestHalfAnAnswerIsNoAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var requests atomic.Int64
	go func() {
		for {
			peer, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer peer.Close()
				buffer := make([]byte, 1<<16)
				n, _ := peer.Read(buffer)
				if strings.Contains(string(buffer[:n]), "hello") {
					_, _ = io.WriteString(peer, "-ERR unknown command\r\n")
					_, _ = peer.Read(buffer)
				}
				requests.Add(1)
				_, _ = io.WriteString(peer, "*2\r\n$5\r\nha")
			}()
		}
	}()
	s := open(t, "redis://"+listener.Addr().String(), prompt).Resource("things")
	if _, err := s.Get(t.Context(), "one"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get: %v", err)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// After a failover a name leads to another server, and the old one lives on as a replica: one write fails, and not one
// write for each open connection.
func TestDemotedServer(t *testing.T) {
	t.Parallel()
	first, second := redistest.Server(t), redistest.Server(t)
	for _, options := range []redisstore.Options{{}, {Replicas: 1, ReplicaTimeout: time.Millisecond}} {
		must(t, raw(t, first.URL()).SlaveOf(t.Context(), "no", "one").Err())
		way := newWay(t, first.Address())
		client := open(t, "redis://"+way.address(), options)
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() { must(t, client.Ping(t.Context())) })
		}
		group.Wait()
		to := second.Address()
		way.to.Store(&to)
		must(t, raw(t, first.URL()).SlaveOf(t.Context(), "127.0.0.1", "1").Err())
		s := client.Resource(freshName())
		if _, err := s.Create(t.Context(), thing("one")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Create in a replica: %v", err)
		}
		for i := range 16 {
			_, err := s.Create(t.Context(), thing(fmt.Sprint("n-", i)))
			if err != nil && !strings.Contains(err.Error(), "written at revision") {
				t.Errorf("Create %d after the failover: %v", i, err)
			}
		}
	}
}

// TestOpenLate: a client asks for its URL at the first use, again after a failure, and never after a success.
func TestOpenLate(t *testing.T) {
	t.Parallel()
	var urlReads int
	var url secret.String
	var urlErr error
	client, err := redisstore.OpenLate("THE_SETTING", func(context.Context) (secret.String, error) {
		urlReads++
		return url, urlErr
	}, patient)
	must(t, err)
	defer client.Close()
	s := client.Resource("things")
	for round, row := range []struct {
		url  secret.String
		away error
	}{{"", errors.New("the safe is closed")}, {"mysql://:hunter2@x", nil}} {
		url, urlErr, urlReads = row.url, row.away, 0
		calls := everyCall(t.Context(), s)
		calls["Ping"] = func() error { return client.Ping(t.Context()) }
		for what, call := range calls {
			err := call()
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "THE_SETTING") || strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Errorf("%s in round %d: %v", what, round, err)
			}
		}
		if urlReads != len(calls) {
			t.Errorf("%d calls asked %d times in round %d", len(calls), urlReads, round)
		}
	}
	url, urlErr, urlReads = secret.String(redistest.Embedded(t)), nil, 0
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if _, err := s.Create(t.Context(), thing(fmt.Sprint("n-", i))); err != nil {
				t.Errorf("Create %d: %v", i, err)
			}
		})
	}
	group.Wait()
	events, err := s.Events(t.Context(), start, 8, time.Minute)
	if err != nil || len(events) != 8 || urlReads != 1 {
		t.Errorf("%d events, %v; asked %d times", len(events), err, urlReads)
	}

	unused, err := redisstore.OpenLate("THE_SETTING", func(context.Context) (secret.String, error) { return url, nil }, patient)
	must(t, err)
	must(t, unused.Close())
	if err := unused.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping after Close: %v", err)
	}
	if _, err := redisstore.OpenLate("THE_SETTING", nil, redisstore.Options{PoolSize: -1}); err == nil {
		t.Error("OpenLate accepts a negative pool size")
	}
}

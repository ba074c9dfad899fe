package redisstore_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// raw returns a plain client of a Redis.
func raw(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// onBothServers runs a test on the embedded server and on a real one.
func onBothServers(t *testing.T, run func(t *testing.T, url string)) {
	t.Run("Embedded", func(t *testing.T) { run(t, redistest.Embedded(t)) })
	t.Run("Server", func(t *testing.T) { run(t, redistest.Server(t).URL()) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLayout holds what older and newer builds have to agree on. Changing it means a new key prefix or a
// new record format.
func TestLayout(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		s := open(t, url, redisstore.Options{}).Resource("things")
		r := raw(t, url)
		ctx := t.Context()
		record := store.Record{
			Name: "a/b", Owner: "team:x y", Digest: "-d", References: []string{"u2", "-u1", "u2"}, Object: []byte(`{"a":1}`),
			Created: time.UnixMilli(1000), Expires: time.UnixMilli(2000),
		}
		_, err := s.Create(ctx, record)
		must(t, err)
		must(t, s.Touch(ctx, record, time.UnixMilli(1500), time.Time{}))
		_, err = s.Create(ctx, store.Record{Name: "c", Created: time.UnixMilli(1001)})
		must(t, err)

		for key, check := range map[string][2]string{
			"rev":        {r.Get(ctx, "p1:{things}:rev").Val(), "3"},
			"objects":    {fmt.Sprintf("%q", r.HGetAll(ctx, "p1:{things}:objects").Val()), `map["a/b":"1 2 1000 2000 --d u2,-u1 team:x y\n{\"a\":1}" "c":"1 3 1001 - - - \n"]`},
			"names":      {fmt.Sprintf("%q", r.ZRange(ctx, "p1:{things}:names", 0, -1).Val()), `["a/b" "c"]`},
			"owners":     {fmt.Sprintf("%q", r.ZRange(ctx, "p1:{things}:owners", 0, -1).Val()), `["\x00c" "team:x y\x00a/b"]`},
			"references": {fmt.Sprintf("%q", r.ZRange(ctx, "p1:{things}:references", 0, -1).Val()), `["-u1\x00a/b" "u2\x00a/b"]`},
			"digests":    {fmt.Sprintf("%q", r.HGetAll(ctx, "p1:{things}:digests").Val()), `map["--d":"a/b"]`},
			"expires":    {fmt.Sprint(r.ZRangeWithScores(ctx, "p1:{things}:expires", 0, -1).Val()), `[{2000 a/b}]`},
			"created":    {fmt.Sprint(r.ZRangeWithScores(ctx, "p1:{things}:created", 0, -1).Val()), `[{1000 a/b} {1001 c}]`},
			"activity":   {fmt.Sprint(r.HGetAll(ctx, "p1:{things}:activity").Val()), `map[a/b:1500]`},
		} {
			if check[0] != check[1] {
				t.Errorf("%s is\n%s, want\n%s", key, check[0], check[1])
			}
		}
		log := r.XRange(ctx, "p1:{things}:log", "-", "+").Val()
		for _, entry := range log {
			at, err := strconv.ParseInt(fmt.Sprint(entry.Values["at"]), 10, 64)
			if now := time.Now().UnixMilli(); err != nil || at > now || at < now-time.Hour.Milliseconds() {
				t.Errorf("an event is of %v, %v", entry.Values["at"], err)
			}
		}
		if len(log) != 2 || log[0].ID != "2-0" || log[1].ID != "3-0" || log[0].Values["type"] != "created" {
			t.Errorf("the log is %v", log)
		}
		if n := len(keysOf(t, r)); n != 10 {
			t.Errorf("%d keys, want 10", n)
		}

		// After all removals only the counter, the log and the server's id are left.
		_, err = s.Delete(ctx, "a/b", 2)
		must(t, err)
		_, err = s.Delete(ctx, "c", 3)
		must(t, err)
		if keys := keysOf(t, r); len(keys) != 2 {
			t.Errorf("after removing everything there are %q", keys)
		}
	})
}

func TestUnknownFormat(t *testing.T) {
	for what, stored := range map[string]string{
		"a newer format": "2 1 0 - - - 2 o\n{}",
		"no header":      `{"a":1}`,
		"half a header":  "1 1 0\n{}",
		"no newline":     "1 1 0 - - - o",
	} {
		onBothServers(t, func(t *testing.T, url string) {
			s := open(t, url, redisstore.Options{}).Resource("things")
			r := raw(t, url)
			record := thing("one")
			record.Expires = created
			_, err := s.Create(t.Context(), record)
			must(t, err)
			must(t, r.HSet(t.Context(), "p1:{things}:objects", "one", stored).Err())
			must(t, r.XAdd(t.Context(), &redis.XAddArgs{
				Stream: "p1:{things}:log", ID: "3-0", Values: []string{"name", "one", "type", "created", "record", stored},
			}).Err())
			must(t, r.Set(t.Context(), "p1:{things}:rev", 3, 0).Err())

			calls := everyCall(t.Context(), s)
			delete(calls, "Create")
			delete(calls, "References") // reads no record
			delete(calls, "Referred")   // reads no record
			delete(calls, "Trim")       // reads only the times of events
			for call, run := range calls {
				if err := run(); !errors.Is(err, store.ErrFormat) {
					t.Errorf("%s: %s: error is %v, want %v", what, call, err, store.ErrFormat)
				}
			}
			if got := r.HGet(t.Context(), "p1:{things}:objects", "one").Val(); got != stored {
				t.Errorf("%s: the record was rewritten to %q", what, got)
			}
			if _, err := s.Create(t.Context(), record); !errors.Is(err, store.ErrExists) {
				t.Errorf("%s: Create over it: %v", what, err)
			}
			if got := r.Get(t.Context(), "p1:{things}:rev").Val(); got != "3" {
				t.Errorf("%s: the revision moved to %s", what, got)
			}
		})
	}
}

func TestUnknownEvent(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		s := open(t, url, redisstore.Options{}).Resource("things")
		r := raw(t, url)
		must(t, r.Set(t.Context(), "p1:{things}:rev", 1, 0).Err())
		must(t, r.XAdd(t.Context(), &redis.XAddArgs{Stream: "p1:{things}:log", ID: "1-0", Values: []string{"name", "one", "type", "renamed"}}).Err())
		if _, err := s.Events(t.Context(), 0, 1, 0); !errors.Is(err, store.ErrFormat) {
			t.Errorf("Events: %v", err)
		}
	})
}

// TestEventsWithoutTime: events of an older build have no time. They are read, and trimmed with the events after them.
func TestEventsWithoutTime(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		s := open(t, url, redisstore.Options{}).Resource("things")
		r := raw(t, url)
		must(t, r.Set(t.Context(), "p1:{things}:rev", 1, 0).Err())
		must(t, r.XAdd(t.Context(), &redis.XAddArgs{Stream: "p1:{things}:log", ID: "1-0", Values: []string{
			"name", "old", "type", "created", "record", "1 1 0 - - - o\n{}",
		}}).Err())
		events, err := s.Events(t.Context(), 0, 1, 0)
		if err != nil || len(events) != 1 || !events[0].At.IsZero() {
			t.Fatalf("%+v, %v", events, err)
		}
		must(t, s.Trim(t.Context(), time.Now().Add(time.Hour)))
		if events, err = s.Events(t.Context(), 0, 1, 0); err != nil || len(events) != 1 {
			t.Errorf("alone: %+v, %v", events, err)
		}
		_, err = s.Create(t.Context(), thing("new"))
		must(t, err)
		must(t, s.Trim(t.Context(), time.Now().Add(time.Hour)))
		if _, err = s.Events(t.Context(), 0, 1, 0); !errors.Is(err, store.ErrGone) {
			t.Errorf("with another: %v", err)
		}
	})
}

// TestLargeRevisions: Lua's numbers are doubles, which print as 1e+14 by default.
func TestLargeRevisions(t *testing.T) {
	for _, start := range []int64{1e14 - 2, 1e15 - 2, 1<<53 - 10} {
		onBothServers(t, func(t *testing.T, url string) {
			s := open(t, url, redisstore.Options{}).Resource("things")
			must(t, raw(t, url).Set(t.Context(), "p1:{things}:rev", start, 0).Err())
			// The log is empty although the revision is not the first: all events were trimmed.
			if _, err := s.Events(t.Context(), start-1, 1, time.Hour); !errors.Is(err, store.ErrGone) {
				t.Errorf("Events before an empty log: %v", err)
			}
			record := thing("one")
			var err error
			if record.Revision, err = s.Create(t.Context(), record); err != nil || record.Revision != start+1 {
				t.Fatalf("Create: revision %d, %v, want %d", record.Revision, err, start+1)
			}
			for want := start + 2; want < start+6; want++ {
				if record.Revision, err = s.Update(t.Context(), record); err != nil || record.Revision != want {
					t.Fatalf("Update: revision %d, %v, want %d", record.Revision, err, want)
				}
			}
			if got, err := s.Get(t.Context(), "one"); err != nil || got.Revision != start+5 {
				t.Errorf("Get: revision %d, %v", got.Revision, err)
			}
			if page, err := s.List(t.Context(), store.Query{}); err != nil || page.Revision != start+5 {
				t.Errorf("List: revision %d, %v", page.Revision, err)
			}
			if _, err := s.Delete(t.Context(), "one", start+5); err != nil {
				t.Error(err)
			}
			events, err := s.Events(t.Context(), start, 10, time.Hour)
			if err != nil || len(events) != 6 {
				t.Fatalf("Events: %d, %v", len(events), err)
			}
			for i, event := range events {
				if event.Revision != start+1+int64(i) {
					t.Errorf("event %d has revision %d", i, event.Revision)
				}
			}
		})
	}
}

// TestLostLog: if the log is shorter than the counter says, watchers must list again.
func TestLostLog(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, url string) {
		// A feed compares revisions after half of the timeout.
		s := open(t, url, busy).Resource("things")
		r := raw(t, url)
		for _, name := range []string{"one", "two", "three"} {
			_, err := s.Create(t.Context(), thing(name))
			must(t, err)
		}
		wantGone := func(after int64) {
			t.Helper()
			if _, err := s.Events(t.Context(), after, 10, 0); !errors.Is(err, store.ErrGone) {
				t.Errorf("Events after %d: %v", after, err)
			}
		}
		must(t, r.XTrimMaxLen(t.Context(), "p1:{things}:log", 1).Err())
		wantGone(start)
		wantGone(start + 1)
		if events, err := s.Events(t.Context(), start+2, 10, 0); err != nil || len(events) != 1 {
			t.Errorf("Events after the second: %d, %v", len(events), err)
		}
		must(t, r.XTrimMaxLen(t.Context(), "p1:{things}:log", 0).Err())
		wantGone(start + 2)
		if events, err := s.Events(t.Context(), start+3, 10, 0); err != nil || len(events) != 0 {
			t.Errorf("Events after the third: %d, %v", len(events), err)
		}

		// A replica that had missed writes takes over while a caller waits for the events after them.
		waiting := make(chan error, 1)
		go func() {
			_, err := s.Events(t.Context(), start+3, 10, time.Hour)
			waiting <- err
		}()
		must(t, r.Set(t.Context(), "p1:{things}:rev", start+2, 0).Err())
		if err := <-waiting; !errors.Is(err, store.ErrGone) {
			t.Errorf("Events of a store that went back: %v", err)
		}
		wantGone(start + 3)
	})
}

// TestCounterBehindLog: the log refuses an event with an id that it has already had, so the write fails.
func TestCounterBehindLog(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		s := open(t, url, redisstore.Options{}).Resource("things")
		for _, name := range []string{"one", "two", "three"} {
			_, err := s.Create(t.Context(), thing(name))
			must(t, err)
		}
		must(t, raw(t, url).Set(t.Context(), "p1:{things}:rev", start+1, 0).Err())
		if _, err := s.Delete(t.Context(), "one", start+1); err == nil || errors.Is(err, store.ErrConflict) {
			t.Error("Delete gave out a revision for the second time")
		}
		if _, err := s.Create(t.Context(), thing("four")); err == nil {
			t.Error("Create gave out a revision for the second time")
		}
		page, err := s.List(t.Context(), store.Query{})
		if err != nil || len(page.Records) != 3 {
			t.Errorf("after writes that failed: %d objects, %v", len(page.Records), err)
		}
		// The counter has caught up.
		if revision, err := s.Create(t.Context(), thing("four")); err != nil || revision != start+4 {
			t.Errorf("Create: revision %d, %v", revision, err)
		}

		must(t, raw(t, url).Set(t.Context(), "p1:{things}:rev", start+2, 0).Err())
		must(t, raw(t, url).XDel(t.Context(), "p1:{things}:log", fmt.Sprintf("%d-0", start+3)).Err())
		if events, err := s.Events(t.Context(), start+2, 1, time.Hour); !errors.Is(err, store.ErrGone) {
			t.Errorf("Events around a gap: %d, %v", len(events), err)
		}
	})
}

func TestContradictions(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		s := open(t, url, redisstore.Options{}).Resource("things")
		r := raw(t, url)
		one := thing("one")
		one.Expires = created
		_, err := s.Create(t.Context(), one)
		must(t, err)
		must(t, r.Del(t.Context(), "p1:{things}:objects").Err())
		calls := everyCall(t.Context(), s)
		for _, call := range []string{"List", "GetByDigest", "Due"} {
			err := calls[call]()
			if err == nil {
				t.Errorf("%s overlooks that an object is missing", call)
			}
			for _, sentinel := range []error{store.ErrNotFound, store.ErrUnavailable, store.ErrFormat} {
				if errors.Is(err, sentinel) {
					t.Errorf("%s: error is %v", call, err)
				}
			}
		}
	})
}

// TestScriptsAreSentAgain: Redis forgets its scripts when it restarts.
func TestScriptsAreSentAgain(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		s := open(t, url, redisstore.Options{}).Resource("things")
		for i := range 3 {
			must(t, raw(t, url).ScriptFlush(t.Context()).Err())
			_, err := s.Create(t.Context(), thing(strconv.Itoa(i)))
			must(t, err)
			_, err = s.GetByDigest(t.Context(), "digest-"+strconv.Itoa(i))
			must(t, err)
		}
	})
}

// TestRoundTrips counts how often Redis reads from its connections.
func TestRoundTrips(t *testing.T) {
	url := redistest.Server(t).URL()
	s := open(t, url, redisstore.Options{}).Resource("things")
	r := raw(t, url)
	reads := func() int {
		t.Helper()
		_, rest, _ := strings.Cut(r.Info(t.Context(), "stats").Val(), "total_reads_processed:")
		text, _, _ := strings.Cut(rest, "\r\n")
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	record := thing("one")
	ctx := t.Context()
	steps := []struct {
		what string
		run  func() (int64, error)
	}{
		{"Create", func() (int64, error) { return s.Create(ctx, record) }},
		{"Update", func() (int64, error) { return s.Update(ctx, record) }},
		{"Get", func() (int64, error) { r, err := s.Get(ctx, "one"); return r.Revision, err }},
		{"GetByDigest", func() (int64, error) { r, err := s.GetByDigest(ctx, record.Digest); return r.Revision, err }},
		{"Touch", func() (int64, error) { return record.Revision, s.Touch(ctx, record, created, created) }},
		{"List", func() (int64, error) { p, err := s.List(ctx, store.Query{Limit: 1}); return p.Revision, err }},
		{"Due", func() (int64, error) {
			_, err := s.Due(ctx, store.DueQuery{Until: created, Limit: 5})
			return record.Revision, err
		}},
		{"Events", func() (int64, error) { _, err := s.Events(ctx, start, 5, time.Hour); return record.Revision, err }},
		{"Trim", func() (int64, error) { return record.Revision, s.Trim(ctx, created) }},
		{"Delete", func() (int64, error) { return s.Delete(ctx, "one", record.Revision) }},
	}
	// The first round connects and sends the scripts.
	for round := range 2 {
		for _, step := range steps {
			before := reads()
			revision, err := step.run()
			if err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			record.Revision = revision
			// One of the reads is for the INFO command.
			if trips := reads() - before - 1; round > 0 && trips != 1 {
				t.Errorf("%s takes %d round trips", step.what, trips)
			}
		}
	}
}

// TestRefusals: a server that answers and refuses the command.
func TestRefusals(t *testing.T) {
	process := redistest.Server(t, redistest.Password("s3cret"))
	client := open(t, process.URL(), redisstore.Options{})
	s := client.Resource("things")
	r := raw(t, process.URL())
	record := thing("one")
	_, err := s.Create(t.Context(), record)
	must(t, err)

	checkRefused := func(what string, s store.Store) {
		t.Helper()
		_, err := s.Create(t.Context(), thing("two"))
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: error is %v, want %v", what, err, store.ErrUnavailable)
		}
		if strings.Contains(fmt.Sprint(err), "s3cret") {
			t.Errorf("%s: the error tells the password", what)
		}
	}
	must(t, r.SlaveOf(t.Context(), "127.0.0.1", "1").Err())
	checkRefused("a replica", s)
	must(t, r.SlaveOf(t.Context(), "no", "one").Err())

	must(t, r.ConfigSet(t.Context(), "maxmemory", "1").Err())
	checkRefused("no memory", s)
	if revision, err := s.Delete(t.Context(), "one", start+1); err != nil || revision != start+2 {
		t.Errorf("Delete without memory: revision %d, %v", revision, err)
	}
	must(t, r.ConfigSet(t.Context(), "maxmemory", "0").Err())
	_, err = s.Create(t.Context(), record)
	must(t, err)

	for what, url := range map[string]string{
		"a wrong password": strings.Replace(process.URL(), "s3cret", "wr0ng", 1),
		"no password":      strings.Replace(process.URL(), ":s3cret@", "", 1),
		"no cluster":       process.URL() + "," + process.URL(),
	} {
		checkRefused(what, open(t, url, redisstore.Options{}).Resource("things"))
	}
}

func TestOpenRefuses(t *testing.T) {
	for what, url := range map[string]string{
		"nothing":                "",
		"no scheme":              "localhost:6379",
		"a password as scheme":   "hunter2:6379",
		"another scheme":         "http://:hunter2@localhost",
		"no host":                "redis://",
		"no socket":              "unix://",
		"a bad port":             "redis://:hunter2@localhost:port",
		"a slash in a password":  "redis://:hunter2/hunter2@localhost:1",
		"a number sign":          "redis://:hunter2#hunter2@localhost:1",
		"a bad escape":           "redis://:hunter2%zz@localhost:1",
		"a bad database":         "redis://:hunter2@localhost:1/hunter2",
		"a bad parameter":        "redis://:hunter2@localhost:1/0?hunter2=1",
		"a control character":    "redis://:hunter2\x7f@localhost:1",
		"a bad second":           "redis://:hunter2@localhost:1,redis://:hunter2@localhost:port",
		"an empty second":        "redis://:hunter2@localhost:1,",
		"a cluster of sockets":   "unix://:hunter2@/a,unix://:hunter2@/b",
		"a cluster's database":   "redis://:hunter2@localhost:1/3,redis://localhost:2/3",
		"half a cluster has TLS": "redis://:hunter2@localhost:1,rediss://localhost:2",
		"a port above all":       "redis://:hunter2@localhost:65536",
		"a host with a blank":    "redis://:hunter2@local host",
		"a bad IPv6 address":     "redis://:hunter2@[::hunter2]:1",
		"a bad escape of a user": "redis://hunter2%@localhost",
		"two hosts":              "redis://:hunter2@a,b",
		"too long a path":        "redis://:hunter2@a/1/hunter2",
		"a negative database":    "redis://:hunter2@a/-1",
		"a host and a socket":    "unix://:hunter2@host/run/redis.sock",
		"a cluster's number":     "redis-cluster://:hunter2@a/0",
		"a cluster's db":         "redis-cluster://:hunter2@a?db=0",
		"no host of a cluster":   "redis-cluster://:hunter2@",
		"an empty host":          "redis-cluster://:hunter2@a,,b",
		"no name of a primary":   "redis-sentinel://:hunter2@a",
		"a primary's number":     "redis-sentinel://:hunter2@a/name/hunter2",
		"a sentinel's password":  "redis://:hunter2@a?sentinel_password=hunter2",
		"a file without TLS":     "redis://:hunter2@a?ca_file=/hunter2",
		"a file that is not":     "rediss://:hunter2@a?ca_file=/hunter2",
		"no certificate":         "rediss://:hunter2@a?ca_file=/dev/null",
		"half a certificate":     "rediss://:hunter2@a?cert_file=/hunter2",
		"no pair":                "rediss://:hunter2@a?cert_file=/hunter2&key_file=/hunter2",
		"a parameter twice":      "rediss://:hunter2@a?server_name=hunter2&server_name=b",
		"an empty parameter":     "rediss://:hunter2@a?server_name=",
		"skipping perhaps":       "rediss://:hunter2@a?skip_verify=hunter2",
		"a bad query":            "rediss://:hunter2@a?server_name=%hunter2",
	} {
		client, err := redisstore.Open(url, redisstore.Options{})
		if err == nil {
			client.Close()
			t.Errorf("Open accepts %s", what)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open of %s tells the password: %v", what, err)
		}
	}
	for _, options := range []redisstore.Options{
		{LogLength: -1}, {Timeout: -1}, {PoolSize: -1}, {Replicas: -1}, {TLS: &tls.Config{MinVersion: tls.VersionTLS13}},
		{Replicas: 1, ReplicaTimeout: time.Second}, {Replicas: 1, ReplicaTimeout: time.Microsecond},
	} {
		if _, err := redisstore.Open("redis://localhost", options); err == nil {
			t.Errorf("Open accepts %+v", options)
		}
	}
}

func TestOpenAccepts(t *testing.T) {
	for _, url := range []string{
		"redis://localhost", "redis://user:p%40ss@localhost:6379/2", "rediss://localhost:6380", "unix:///run/redis.sock",
		"unix://:password@/run/redis.sock?db=1", "redis://a:1,redis://b:2", "rediss://:x@a:1, rediss://b:2",
		"redis://[::1]:6379", "redis-cluster://a", "rediss-cluster://user:x@a,b:7000/?server_name=c", "redis-sentinel://a,b:2/name",
		"rediss-sentinel://u:p%2F@a/name/3?sentinel_username=s&sentinel_password=t&skip_verify=true", "rediss://a?db=2",
	} {
		client, err := redisstore.Open(url, redisstore.Options{})
		if err != nil {
			t.Errorf("Open(%q): %v", url, err)
			continue
		}
		must(t, client.Close())
	}
}

func TestResourceNames(t *testing.T) {
	client := open(t, "redis://localhost", redisstore.Options{})
	for _, name := range []string{"", "a}b", "{a", "A", "a b", "a:b", "ä"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Resource(%q) does not panic", name)
				}
			}()
			client.Resource(name)
		}()
	}
}

func TestResourcesAreApart(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		client := open(t, url, redisstore.Options{})
		for _, name := range []string{"one", "one-and-a-half", "two.v2"} {
			if revision, err := client.Resource(name).Create(t.Context(), thing("x")); err != nil || revision != start+1 {
				t.Errorf("Create in %q: revision %d, %v", name, revision, err)
			}
		}
		// The same name is the same state, from another client too.
		if _, err := open(t, url, redisstore.Options{}).Resource("one").Get(context.Background(), "x"); err != nil {
			t.Error(err)
		}
	})
}

func TestClosed(t *testing.T) {
	client := open(t, redistest.Embedded(t), redisstore.Options{})
	s := client.Resource("things")
	last, err := s.Create(t.Context(), thing("one"))
	must(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Events(t.Context(), last, 1, time.Hour)
		waiting <- err
	}()
	must(t, client.Close())
	if err := <-waiting; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Events on a client that is closed: %v", err)
	}
	for what, call := range everyCall(t.Context(), s) {
		if err := call(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

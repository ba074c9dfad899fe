package redisstore_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// TestAnotherServer: the first write at another server leaves out revisions that readers may have seen elsewhere. A reader of
// the revision before it misses nothing, whether it waits or asks.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	s := open(t, server.URL(), redisstore.Options{}).Resource("things")
	create := func(name string) int64 {
		t.Helper()
		revision, err := s.Create(t.Context(), thing(name))
		must(t, err)
		return revision
	}
	firstEvent := make(chan struct{})
	followed := make(chan []store.Event, 1)
	go func() {
		var events []store.Event
		for after := start; len(events) < 6; {
			if len(events) == 1 {
				close(firstEvent)
			}
			more, err := s.Events(t.Context(), after, 1, time.Minute)
			if err != nil || len(more) == 0 {
				t.Errorf("waiting after revision %d: %v, %v", after, more, err)
				break
			}
			events, after = append(events, more...), more[0].Revision
		}
		followed <- events
	}()
	create("a")
	<-firstEvent
	second := create("b")
	server.WroteElsewhere("things")
	third := create("c")
	if third <= second+1000 {
		t.Errorf("revision %d after %d at another server", third, second)
	}
	if fourth := create("d"); fourth != third+1 {
		t.Errorf("revision %d after %d at the same server", fourth, third)
	}
	server.WroteElsewhere("things")
	fifth, err := s.Update(t.Context(), store.Record{Name: "a", Revision: start + 1, Created: created, Object: []byte("{}")})
	must(t, err)
	server.WroteElsewhere("things")
	sixth, err := s.Delete(t.Context(), "b", second)
	must(t, err)

	for name, read := range map[string]func() []store.Event{
		"waiting": func() []store.Event { return <-followed },
		"asking": func() []store.Event {
			_, all, _, err := whole(t.Context(), s)
			must(t, err)
			return all
		},
	} {
		events := read()
		if len(events) != 6 {
			t.Fatalf("%s: %d events, want 6", name, len(events))
		}
		for i, want := range []struct{ revision, follows int64 }{
			{start + 1, start}, {second, start + 1}, {third, second}, {third + 1, third}, {fifth, third + 1}, {sixth, fifth},
		} {
			if got := events[i]; got.Revision != want.revision || got.Follows != want.follows {
				t.Errorf("%s: event %d has revision %d and follows %d, want %+v", name, i, got.Revision, got.Follows, want)
			}
		}
	}
	for _, never := range []int64{second + 1, third - 2, fifth - 2, sixth - 2, sixth + 1} {
		if got, err := s.Events(t.Context(), never, 10, 0); !errors.Is(err, store.ErrGone) {
			t.Errorf("Events after revision %d, which another server may have had: %v, %v", never, got, err)
		}
	}
}

// TestServerThatStartsAgain: a server has another id after each start, and may have lost the end of its log.
func TestServerThatStartsAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t, redistest.AppendOnly())
	s := open(t, server.URL(), redisstore.Options{}).Resource("things")
	firstRevision, err := s.Create(t.Context(), thing("a"))
	must(t, err)
	server.Kill()
	server.Restart()
	var secondRevision int64
	eventually(t, "writing", func() error {
		var err error
		secondRevision, err = s.Create(t.Context(), thing("b"))
		return err
	})
	if secondRevision <= firstRevision+1000 {
		t.Errorf("revision %d after %d", secondRevision, firstRevision)
	}
	if got, err := s.Events(t.Context(), firstRevision, 10, 0); err != nil || len(got) != 1 || got[0].Revision != secondRevision {
		t.Errorf("Events after revision %d: %+v, %v", firstRevision, got, err)
	}
}

// TestServerThatTellsNothing: a user without the right to read the id of the server can write. Revisions then continue
// by one.
func TestServerThatTellsNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	must(t, raw(t, server.URL()).Do(t.Context(), "ACL", "SETUSER", "strict", "on", ">s", "~*", "&*", "+@all", "-info").Err())
	at, err := url.Parse(server.URL())
	must(t, err)
	at.User = url.UserPassword("strict", "s")
	s := open(t, at.String(), redisstore.Options{}).Resource("things")
	for i, name := range []string{"a", "b"} {
		if revision, err := s.Create(t.Context(), thing(name)); err != nil || revision != start+1+int64(i) {
			t.Errorf("Create %s: revision %d, %v", name, revision, err)
		}
	}
}

// TestRevisionsStayPrecise: Lua has numbers of 53 bits, so a revision does not jump beyond them.
func TestRevisionsStayPrecise(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	s := open(t, server.URL(), redisstore.Options{}).Resource("things")
	_, err := s.Create(t.Context(), thing("a"))
	must(t, err)
	const high = int64(1) << 52
	must(t, raw(t, server.URL()).Set(t.Context(), "p1:{things}:rev", high, 0).Err())
	server.WroteElsewhere("things")
	if revision, err := s.Create(t.Context(), thing("b")); err != nil || revision != high+1 {
		t.Errorf("revision %d, %v; want %d", revision, err, high+1)
	}
}

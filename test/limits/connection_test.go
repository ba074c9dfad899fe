package limits_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/settings"
)

// connect opens a connection and sends a text on it.
func (w *world) connect(t *testing.T, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// checkLasts fails the test if something ended long before its time. A late end is not checked, because it depends on the load of the machine.
func checkLasts(t *testing.T, what string, began time.Time, limit time.Duration) {
	t.Helper()
	if took := time.Since(began); took < limit*9/10 {
		t.Errorf("%s ended after %v; the limit is %v", what, took, limit)
	}
}

// connectionRows are the limits of connections and of unauthenticated requests.
var connectionRows = map[string]row{
	"head-duration": {limits.HeadDuration.String(), func(t *testing.T) {
		w := newWorld(t, nil)
		began := time.Now()
		conn := w.connect(t, "GET / HTTP/1.1\r\nHost: a\r\nX-A:")
		if text, err := io.ReadAll(conn); err != nil || strings.Contains(string(text), "200 OK") {
			t.Errorf("%q, %v", text, err)
		}
		checkLasts(t, "the connection", began, limits.HeadDuration)
	}},
	"body-rate": {"8 KiB", func(t *testing.T) {
		w := newWorld(t, nil)
		began := time.Now()
		conn := w.connect(t, "POST "+keys+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+bearer("alice")+"\r\nContent-Length: 100000\r\n\r\n{")
		w.waitForPlaces(t, fairness.Bodies, 1, 0)
		got, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || got.StatusCode != http.StatusRequestTimeout {
			t.Fatalf("%+v, %v", got, err)
		}
		_ = got.Body.Close()
		checkLasts(t, "the body", began, limits.BodyGrace)
		w.waitForPlaces(t, fairness.Bodies, 0, 0)
	}},
	"unread-duration": {limits.UnreadDuration.String(), func(t *testing.T) {
		w := newWorld(t, nil)
		began := time.Now()
		reader := bufio.NewReader(w.connect(t, "POST "+keys+" HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{"))
		got, err := http.ReadResponse(reader, nil)
		if err != nil || got.StatusCode != http.StatusUnauthorized || !got.Close {
			t.Fatalf("%+v, %v", got, err)
		}
		_ = got.Body.Close()
		// No more bytes arrive, and the connection ends.
		if _, err := io.Copy(io.Discard, reader); err != nil {
			t.Error(err)
		}
		checkLasts(t, "the connection", began, limits.UnreadDuration)
	}},
	"write-duration": {limits.WriteDuration.String(), func(t *testing.T) {
		w := newWorld(t, nil)
		// The list is larger than the buffers of the system for a client that does not read.
		for i := range 60 {
			if got := w.send(annotatedRequest(fmt.Sprint("large-", i), limits.AnnotationBytes)); got.status != http.StatusCreated {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
		}
		w.connect(t, "GET "+keys+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+bearer("alice")+"\r\n\r\n")
		w.waitForPlaces(t, fairness.Lists, 1, 0)
		began := time.Now()
		w.waitForPlaces(t, fairness.Lists, 0, 0)
		checkLasts(t, "the list", began, limits.WriteDuration)
	}},
	"idle-duration": {limits.IdleDuration.String(), func(t *testing.T) {
		// Go's server closes idle connections after two minutes, which is too long for a test.
		if got := newWorld(t, nil).server.Config.IdleTimeout; got != limits.IdleDuration {
			t.Errorf("idle connections stay for %v", got)
		}
	}},
	"streams": {"100 requests", func(t *testing.T) {
		// Go's server announces the number to its clients, and resets the excess streams of clients that ignore it.
		if got := newWorld(t, nil).server.Config.HTTP2.MaxConcurrentStreams; got != 100 {
			t.Errorf("a client may have %d requests open", got)
		}
	}},
	"authentications": {
		fmt.Sprintf("three quarters of the connections: %d, %d from one address", settings.DefaultPoolSize*3/4, settings.DefaultPoolSize/2),
		func(t *testing.T) {
			// Four connections exist. Three of them can authenticate at a time, and two for one address.
			c := newCrowd(t, fairness.Authentications, func(from string) request { return request{from: from, bearer: guess, path: own} }, map[string]string{settings.RedisPoolSize: "4"})
			c.begin(t, "127.0.0.1", 1, 0)
			c.begin(t, "127.0.0.1", 2, 0)
			c.begin(t, "127.0.0.1", 2, 1)
			c.begin(t, "127.0.0.2", 3, 1)
			c.begin(t, "127.0.0.3", 3, 2)
			c.finishFirst(t, 3, 1)
		},
	},
	"waiting-authentications": {fmt.Sprintf("%d requests", limits.WaitingRequests), func(t *testing.T) {
		guesses := func(string) request { return request{bearer: guess, path: own} }
		c := newCrowd(t, fairness.Authentications, guesses, map[string]string{settings.RedisPoolSize: "2"})
		c.begin(t, "", 1, 0)
		for range limits.WaitingRequests {
			c.all = append(c.all, c.w.begin(guesses("")))
		}
		c.w.waitForPlaces(t, fairness.Authentications, 1, limits.WaitingRequests)
		got := c.w.begin(guesses("")).answer(t)
		if got.status != http.StatusTooManyRequests {
			t.Fatalf("%d %s", got.status, got.body)
		}
		got.checkRefusal(t, "", "too many authentications of this address", fmt.Sprint(limits.WaitingRequests))
	}},
	"request-rate": {try: func(t *testing.T) {
		tryRate(t, settings.RateRequests, request{path: own}, http.StatusOK, "too many requests of user:alice", request{bearer: "bob", path: keys})
	}},
	"anonymous-rate": {try: func(t *testing.T) {
		tryRate(t, settings.RateAnonymous, request{bearer: anonymous, path: "/version"}, http.StatusOK, "too many anonymous requests of this address", request{path: own})
	}},
	"failure-rate": {try: func(t *testing.T) {
		tryRate(t, settings.RateFailures, request{bearer: "wrong", path: own}, http.StatusUnauthorized, "too many failed authentications of this address", request{path: own})
	}},
}

// tryRate tries a rate of one request a second with a burst. Other callers are served meanwhile.
func tryRate(t *testing.T, setting string, one request, status int, text string, other request) {
	t.Helper()
	w := newWorld(t, map[string]string{setting: "1"})
	began := time.Now()
	for n := 1; ; n++ {
		got := w.send(one)
		if got.status == status {
			// In the meantime, the bucket has received more tokens.
			if most := limits.RateBurst + int(time.Since(began).Seconds()) + 1; n > most {
				t.Fatalf("%d requests are served; the limit is %d", n, most)
			}
			continue
		}
		if got.status != http.StatusTooManyRequests || n <= limits.RateBurst {
			t.Fatalf("request %d: %d %s", n, got.status, got.body)
		}
		got.checkRefusal(t, "", text, "the limit is 1 a second")
		break
	}
	if got := w.send(other); got.status != http.StatusOK {
		t.Errorf("another caller: %d %s", got.status, got.body)
	}
}

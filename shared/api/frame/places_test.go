package frame_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/limits"
)

// A request takes a place of each class that it belongs to. While the caller has no place left, it is answered with 429; the
// requests of others and of other classes are served. Source: ADR-0020.
func TestPlaces(t *testing.T) {
	key := func(bytes int) string {
		const empty = `{"metadata":{"annotations":{"a":""}}}`
		return strings.Replace(empty, `""`, `"`+strings.Repeat("x", bytes-len(empty))+`"`, 1)
	}
	for _, row := range []struct {
		what     string
		class    fairness.Class
		needs    request
		needsNot request
	}{
		{"a list without a limit", fairness.Lists, request{path: root}, request{path: root + "?limit=500"}},
		{"a list with a high limit", fairness.Lists, request{path: root + "?limit=501"}, request{path: root + "/ana"}},
		{"a list with limit 0", fairness.Lists, request{path: root + "?limit=0"}, request{path: root + "?limit=1"}},
		{"a large body", fairness.Bodies, request{method: http.MethodPost, path: root, body: key(limits.LargeBodyBytes + 1)}, request{method: http.MethodPost, path: root, body: key(limits.LargeBodyBytes)}},
		{"any request", fairness.Requests, request{path: root + "/ana"}, request{path: root + "/ana", bearer: adminKey}},
		{"a watch", fairness.Watches, request{path: root + "?watch=true"}, request{path: root}},
	} {
		t.Run(row.what, func(t *testing.T) {
			w := newWatchWorld(t)
			w.handler = w.server.Mount(keys, probes, unprintable)
			if row.class == fairness.Watches {
				w.handler = w.server.Mount(watched)
			}
			w.server.Places = fairness.New(map[fairness.Class]fairness.Bound{row.class: {Total: 2, PerCaller: 1}}, w.server.Metrics)
			row.needs.bearer = anaKey
			if row.needsNot.bearer == "" {
				row.needsNot.bearer = anaKey
			}
			for range 3 {
				if answer := w.do(row.needs); answer.Code != http.StatusOK && answer.Code != http.StatusCreated {
					t.Fatalf("with a place: %d %s", answer.Code, answer.Body)
				}
			}
			held, err := w.server.Places.Take(context.Background(), row.class, "user:ana", "")
			if err != nil {
				t.Fatalf("the place was not given back: %v", err)
			}
			answer := w.do(row.needs)
			refused(t, answer, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
			if got := status(t, answer).Message; !strings.Contains(got, "too many "+row.class.String()+" of user:ana") || answer.Header().Get("Retry-After") == "" {
				t.Errorf("the answer is %q with %v", got, answer.Header())
			}
			if got := w.count("platform_refused_total", map[string]string{"limit": row.class.String()}); got != 1 {
				t.Errorf("%v refusals are counted; want 1", got)
			}
			if answer := w.do(row.needsNot); answer.Code >= http.StatusBadRequest {
				t.Errorf("a request without the class is answered with %d %s", answer.Code, answer.Body)
			}
			other := row.needs
			other.bearer = adminKey
			if answer := w.do(other); answer.Code >= http.StatusBadRequest {
				t.Errorf("another caller is answered with %d %s", answer.Code, answer.Body)
			}
			held.Release()
			if answer := w.do(row.needs); answer.Code >= http.StatusBadRequest {
				t.Errorf("with a place again: %d %s", answer.Code, answer.Body)
			}
			if got := w.count("platform_places", nil); got != 0 {
				t.Errorf("%v places are taken at the end", got)
			}
		})
	}
}

// A place is given back whatever becomes of the request. Source: ADR-0020.
func TestPlacesAreGivenBack(t *testing.T) {
	w := newWorld(t)
	w.server.Places = fairness.New(map[fairness.Class]fairness.Bound{fairness.Requests: {Total: 1, PerCaller: 1}}, w.server.Metrics)
	for _, do := range []string{"panic", "panic with an error", "error", "unavailable", "wrapped", "unencodable", "abort"} {
		func() {
			defer func() { _ = recover() }()
			w.do(request{method: http.MethodPost, path: probe, body: asking(do)})
		}()
		if got := w.count("platform_places", nil); got != 0 {
			t.Fatalf("after %q, %v places are taken", do, got)
		}
	}
	if answer := w.do(request{path: root + "/ana"}); answer.Code != http.StatusOK {
		t.Errorf("at the end: %d %s", answer.Code, answer.Body)
	}
}

// Their address identifies anonymous clients: a client cannot change the first 64 bits of an IPv6 address.
// Source: ADR-0020.
func TestPlacesOfAnonymous(t *testing.T) {
	for _, row := range []struct {
		first, second string
		same          bool
	}{
		{"192.0.2.1:1000", "192.0.2.1:2000", true},
		{"192.0.2.1:1000", "192.0.2.2:1000", false},
		{"[::ffff:192.0.2.1]:1000", "192.0.2.1:1000", true},
		{"[2001:db8::1]:1000", "[2001:db8::ffff:1]:1000", true},
		{"[2001:db8::1]:1000", "[2001:db8:0:1::1]:1000", false},
		{"[fe80::1%eth0]:1000", "[fe80::2%eth0]:1000", true},
		{"@", "@", true},
	} {
		w := newWorld(t)
		w.server.Places = fairness.New(map[fairness.Class]fairness.Bound{fairness.Requests: {Total: 2, PerCaller: 1}}, w.server.Metrics)
		code := 0
		first := w.request(request{path: "/page/1", bearer: nobody})
		first.RemoteAddr = row.first
		second := w.request(request{path: "/page/1", bearer: nobody})
		second.RemoteAddr = row.second
		// The second request comes while the first is being written.
		w.handler.ServeHTTP(writing{func() { code = w.send(second).Code }}, first)
		if (code == http.StatusTooManyRequests) != row.same {
			t.Errorf("%s and %s: %d", row.first, row.second, code)
		}
	}
}

// writing is a client that does something while it receives its answer.
type writing struct{ do func() }

func (writing) Header() http.Header { return http.Header{} }
func (writing) WriteHeader(int)     {}
func (w writing) Write(p []byte) (int, error) {
	w.do()
	return len(p), nil
}

// A body arrives before its request takes a place for computing. A large body holds a place of its own class meanwhile.
// Source: ADR-0020.
func TestBodyBeforePlaces(t *testing.T) {
	for size, want := range map[int]map[fairness.Class]float64{
		limits.LargeBodyBytes: {}, limits.LargeBodyBytes + 1: {fairness.Bodies: 1},
	} {
		w := newWorld(t)
		bounds := map[fairness.Class]fairness.Bound{}
		for class := range fairness.Classes {
			bounds[class] = fairness.Bound{Total: 1, PerCaller: 1}
		}
		w.server.Places = fairness.New(bounds, w.server.Metrics)
		r := w.request(request{method: http.MethodPost, path: root, body: `{"metadata":{"name":"slow"}}`})
		arrived := 0
		r.Body, r.ContentLength = noticing{r.Body, func() {
			arrived++
			for class := range fairness.Classes {
				if got := w.count("platform_places", map[string]string{"class": class.String()}); got != want[class] {
					t.Errorf("while %d bytes arrive, %v places of %s are taken", size, got, class)
				}
			}
		}}, int64(size)
		if answer := w.send(r); answer.Code != http.StatusCreated || arrived == 0 {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		if got := w.count("platform_places", nil); got != 0 {
			t.Errorf("%v places are taken at the end", got)
		}
	}
}

// noticing is a body that notices when it is read.
type noticing struct {
	io.ReadCloser
	read func()
}

func (n noticing) Read(p []byte) (int, error) {
	n.read()
	return n.ReadCloser.Read(p)
}

// A watch has a place of a large list until it has sent the objects that it begins with. One that begins with none needs none.
// Source: ADR-0020.
func TestPlacesOfWatches(t *testing.T) {
	for query, needs := range map[string]bool{
		"": true, "&resourceVersion=0": true, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": true,
		"&resourceVersion=5": false, "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan": false,
	} {
		w := newWatchWorld(t)
		w.handler = w.server.Mount(watched)
		w.server.Places = fairness.New(map[fairness.Class]fairness.Bound{fairness.Lists: {Total: 1, PerCaller: 1}}, w.server.Metrics)
		held, err := w.server.Places.Take(t.Context(), fairness.Lists, "user:ana", "")
		if err != nil {
			t.Fatal(err)
		}
		ask := request{path: root + "?watch=true" + query, bearer: anaKey}
		if got := w.do(ask).Code == http.StatusTooManyRequests; got != needs {
			t.Errorf("%q needs a place of a list: %v", query, got)
		}
		held.Release()
		if answer := w.do(ask); answer.Code == http.StatusTooManyRequests {
			t.Errorf("%q with a place: %d %s", query, answer.Code, answer.Body)
		}
		if got := w.count("platform_places", map[string]string{"class": fairness.Lists.String()}); got != 0 {
			t.Errorf("%q: %v places are taken at the end", query, got)
		}
	}
}

package frame_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/limits"
)

// The head of a request is bounded before the caller is authenticated. Source: ADR-0020.
func TestHeaderBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	filled := func(size int) []string {
		text := strings.Repeat("a/b;q=0.1,", size/10+1)
		return []string{"application/json," + text[:size-len("application/json,")]}
	}
	for _, path := range []string{root, root + "/nobody", "/page/x", "/nowhere"} {
		for _, row := range []struct {
			accept []string
			lines  int
			large  bool
		}{
			{filled(limits.AcceptBytes - 1), 0, false},
			{filled(limits.AcceptBytes), 0, false},
			{filled(limits.AcceptBytes + 1), 0, true},
			{append(filled(limits.AcceptBytes-1), "*/*"), 0, true},
			{nil, limits.HeaderLines, false},
			{nil, limits.HeaderLines + 1, true},
		} {
			for _, bearer := range []string{"", nobody} {
				r := w.request(request{path: path, bearer: bearer})
				if row.accept != nil {
					r.Header["Accept"] = row.accept
				}
				for i := len(r.Header); i < row.lines; i++ {
					r.Header.Add("X-Many", strconv.Itoa(i%7))
				}
				answer := w.send(r)
				if large := answer.Code == http.StatusRequestHeaderFieldsTooLarge; large != row.large {
					t.Errorf("%s with %d bytes of Accept and %d lines: %d", path, len(strings.Join(row.accept, "")), row.lines, answer.Code)
				}
				if row.large {
					refused(t, answer, http.StatusRequestHeaderFieldsTooLarge, metav1.StatusReasonRequestEntityTooLarge)
				}
			}
		}
	}
}

// Clauses are sorted by quality and, among equals, as they were given.
func TestParseAcceptSorts(t *testing.T) {
	t.Parallel()
	var text []string
	for i := range 500 {
		text = append(text, fmt.Sprintf("a/b%d;q=0.%d", i, i%9+1))
	}
	clauses := frame.ParseAccept([]string{strings.Join(text, ",")})
	if len(clauses) != len(text) {
		t.Fatalf("%d clauses", len(clauses))
	}
	number := func(c frame.Clause) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(c.MediaType, "a/b"))
		return n
	}
	if !slices.IsSortedFunc(clauses, func(a, b frame.Clause) int {
		if a.Quality != b.Quality {
			return int(100 * (b.Quality - a.Quality))
		}
		return number(a) - number(b)
	}) {
		t.Errorf("not sorted: %v", clauses)
	}
}

// A body with many faults is refused with the first of them, on every endpoint that reads one, also where no scope permits
// anything else.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"metadata":{"finalizers":[` + strings.TrimSuffix(strings.Repeat("1,", limits.BodyEntries), ",") + `]}}`
	for _, r := range []request{
		{method: "POST", path: root, body: body},
		{method: "PUT", path: root + "/ana", body: body},
		{method: "PATCH", path: root + "/ana", body: body, header: map[string]string{"Content-Type": "application/merge-patch+json"}},
		{method: "PATCH", path: root + "/ana?fieldManager=x", body: body, header: map[string]string{"Content-Type": "application/apply-patch+yaml"}},
	} {
		answer := w.do(r)
		got := status(t, answer)
		if answer.Code != http.StatusBadRequest || got.Details == nil || len(got.Details.Causes) != limits.Faults+1 ||
			got.Details.Causes[limits.Faults].Message != fmt.Sprintf("and %d more", limits.BodyEntries-limits.Faults) {
			t.Errorf("%s: %d %.300s", r.method, answer.Code, answer.Body)
		}
	}
}

// drip is a body that never ends. Its connection notices the deadline.
type drip struct{ deadline <-chan time.Time }

func (d drip) Read([]byte) (int, error) {
	<-d.deadline
	return 0, os.ErrDeadlineExceeded
}

func (drip) Close() error { return nil }

// hourglass is a context whose time is over as soon as a test says so, however long the work before it took.
type hourglass struct {
	context.Context
	end atomic.Pointer[time.Time]
}

func (h *hourglass) Deadline() (time.Time, bool) { return *h.end.Load(), true }

// slowly is a connection whose deadline for reads passes as soon as it is set.
type slowly struct {
	*httptest.ResponseRecorder
	reads chan time.Time
	sand  *hourglass
	// set are the deadlines that were set.
	set []time.Time
}

func (s *slowly) SetReadDeadline(end time.Time) error {
	if s.set = append(s.set, end); len(s.set) == 1 {
		s.sand.end.Store(&time.Time{})
		close(s.reads)
	}
	return nil
}

// A body that does not come in time is refused. Its first part has the grace, and what follows the body the time of the request.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads, sand := make(chan time.Time), &hourglass{Context: t.Context()}
	begun := time.Now()
	end := begun.Add(20 * time.Second)
	sand.end.Store(&end)
	r := w.request(request{method: "POST", path: root}).WithContext(sand)
	r.Body, r.ContentLength = drip{reads}, -1
	answer := &slowly{ResponseRecorder: httptest.NewRecorder(), reads: reads, sand: sand}
	w.handler.ServeHTTP(answer, r)
	refused(t, answer.ResponseRecorder, http.StatusRequestTimeout, metav1.StatusReasonTimeout)
	if set := answer.set; len(set) != 2 || set[0].Before(begun.Add(limits.BodyGrace)) || set[0].After(time.Now().Add(limits.BodyGrace)) || !set[1].Equal(end) {
		t.Errorf("the body has until %v, the request until %v", set, end)
	}
}

// A body that says that it is too large is read as far as others, and one whose client has left is not decoded.
func TestBodyNotDecoded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.request(request{method: "POST", path: root})
	sent := strings.NewReader(strings.Repeat("x", 2*limits.BodyBytes))
	r.Body, r.ContentLength = io.NopCloser(sent), 2*limits.BodyBytes
	refused(t, w.send(r), http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge)
	if read := 2*limits.BodyBytes - sent.Len(); read != limits.BodyBytes+1 {
		t.Errorf("%d bytes were read", read)
	}

	ctx, leave := context.WithCancel(t.Context())
	r = w.request(request{method: "POST", path: probe, body: asking("")}).WithContext(ctx)
	r.Body = leaving{strings.NewReader(asking("")), leave}
	refused(t, w.send(r), http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
}

// leaving is a body whose client leaves once it is sent.
type leaving struct {
	*strings.Reader
	leave func()
}

func (l leaving) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err == io.EOF {
		l.leave()
	}
	return n, err
}

func (leaving) Close() error { return nil }

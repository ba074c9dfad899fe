package client

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// A request that had no effect is sent again with its body. Every other outcome is final, unless the caller says otherwise.
func TestRepeating(t *testing.T) {
	t.Parallel()
	type reply struct {
		status     int
		retryAfter string
	}
	failing := func(answer *http.Response, err error) bool {
		return err != nil || answer.StatusCode == http.StatusForbidden
	}
	for about, row := range map[string]struct {
		replies []reply
		also    func(*http.Response, error) bool
		want    int
		asked   int
	}{
		"a good answer":              {[]reply{{200, ""}}, nil, 200, 1},
		"unavailable for a moment":   {[]reply{{503, "0"}, {429, "0"}, {201, ""}}, nil, 201, 3},
		"unavailable all the time":   {[]reply{{503, "0"}}, nil, 503, 4},
		"unavailable without a time": {[]reply{{503, ""}, {200, ""}}, nil, 503, 1},
		"unavailable for an hour":    {[]reply{{503, "3600"}, {200, ""}}, nil, 503, 1},
		"a date":                     {[]reply{{503, "Fri, 31 Dec 1999 23:59:59 GMT"}, {200, ""}}, nil, 503, 1},
		"another error":              {[]reply{{502, "0"}, {200, ""}}, nil, 502, 1},
		"forbidden":                  {[]reply{{403, ""}, {200, ""}}, nil, 403, 1},
		"forbidden for a moment":     {[]reply{{403, ""}, {200, ""}}, failing, 200, 2},
		"a redirect":                 {[]reply{{307, ""}, {200, ""}}, nil, 307, 1},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "body" {
					t.Errorf("request %d has the body %q, %v", requests+1, body, err)
				}
				next := row.replies[min(requests, len(row.replies)-1)]
				requests++
				w.Header().Set("Location", "/elsewhere")
				if next.retryAfter != "" {
					w.Header().Set("Retry-After", next.retryAfter)
				}
				w.WriteHeader(next.status)
			}))
			defer server.Close()
			client := newRepeatingClient(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, row.also)
			answer, err := client.Post(server.URL, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != row.want || requests != row.asked {
				t.Errorf("%d after %d requests, want %d after %d", answer.StatusCode, requests, row.want, row.asked)
			}
		})
	}
}

// A platform that starts is reached a moment later. A connection that breaks may have had an effect: the request is sent again if that does no
// harm. Source: RFC 9110, 9.2.2.
func TestRepeatingConnections(t *testing.T) {
	t.Parallel()
	refused, reset := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for about, row := range map[string]struct {
		method string
		ctx    context.Context
		err    error
		asked  int
	}{
		"nobody listens":                           {http.MethodPost, t.Context(), refused, 3},
		"a read breaks":                            {http.MethodGet, t.Context(), reset, 3},
		"a read is cut":                            {http.MethodGet, t.Context(), io.EOF, 3},
		"a deletion breaks":                        {http.MethodDelete, t.Context(), reset, 3},
		"a creation breaks":                        {http.MethodPost, t.Context(), reset, 1},
		"a creation is cut":                        {http.MethodPost, t.Context(), io.ErrUnexpectedEOF, 1},
		"a question breaks that is sent as a POST": {http.MethodPost, mayRepeat(t.Context()), reset, 3},
		"a read fails in another way":              {http.MethodGet, t.Context(), x509.UnknownAuthorityError{}, 1},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			requests := 0
			client := newRepeatingClient(&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if requests++; requests < 3 {
					return nil, row.err
				}
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})}, nil)
			request, err := http.NewRequestWithContext(row.ctx, row.method, "http://platform.example", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(request)
			if err == nil {
				_ = answer.Body.Close()
			}
			if requests != row.asked || (err == nil) != (row.asked == 3) || row.asked == 1 && !errors.Is(err, row.err) {
				t.Errorf("%d requests, %v", requests, err)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

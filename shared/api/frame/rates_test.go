package frame_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/limits"
)

// Each rate has a limit of its own: one request above it gets 429, counted under the name of the limit. The others are served.
// Source: ADR-0020.
func TestRates(t *testing.T) {
	t.Parallel()
	const guess = "pak_not-a-key-of-anybody-who-is-here-0123456789ab"
	valid, secret, none, wrong, open := request{path: root + "/ana", bearer: anaKey}, request{path: root + "/ana"}, request{path: root + "/ana", bearer: nobody},
		request{path: root + "/ana", bearer: guess}, request{path: "/page/plain", bearer: nobody}
	for _, row := range []struct {
		what   string
		rates  func(observer fairness.Observer) fairness.Rates
		limit  string
		spends request
		// code is the answer to spends within the limit.
		code int
		// also gets 429 when the limit is reached; others do not.
		also   []request
		others map[int][]request
		text   string
	}{
		{
			"requests of a caller", func(o fairness.Observer) fairness.Rates {
				return fairness.Rates{Callers: fairness.NewRate("requests", 1, o)}
			},
			"rate of requests", valid, 200, nil, map[int][]request{200: {secret, open}, 401: {none, wrong}}, "too many requests of user:ana: the limit is 1 a second",
		},
		{
			"requests without a credential", func(o fairness.Observer) fairness.Rates {
				return fairness.Rates{Anonymous: fairness.NewRate("anonymous requests", 1, o)}
			},
			"rate of anonymous requests", none, 401, []request{open}, map[int][]request{200: {valid, secret}, 401: {wrong}}, "too many anonymous requests of this address: the limit is 1 a second",
		},
		{
			"refused credentials", func(o fairness.Observer) fairness.Rates {
				return fairness.Rates{Failures: fairness.NewRate("failed authentications", 1, o)}
			},
			"rate of failed authentications", wrong, 401, nil, map[int][]request{200: {valid, secret, open}, 401: {none}}, "too many failed authentications of this address: the limit is 1 a second",
		},
		{
			"texts that cannot be keys, since others have them", func(o fairness.Observer) fairness.Rates {
				return fairness.Rates{Failures: fairness.NewRate("failed authentications", 1, o)}
			},
			"rate of failed authentications", request{method: "POST", path: root, bearer: anaKey, body: `{"metadata":{"name":"guess"},"spec":{"key":"` + adminKey + `"}}`}, 422,
			[]request{wrong}, map[int][]request{200: {valid, secret, open}, 401: {none}}, "too many failed authentications of this address: the limit is 1 a second",
		},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.server.Rates = row.rates(w.server.Metrics)
			w.handler = w.server.Mount(keys, probes)
			for i := range limits.RateBurst {
				if answer := w.do(row.spends); answer.Code != row.code {
					t.Fatalf("request %d: %d %s", i, answer.Code, answer.Body)
				}
			}
			over := append([]request{row.spends}, row.also...)
			for _, r := range over {
				answer := w.do(r)
				refused(t, answer, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
				if got := status(t, answer).Message; got != row.text || answer.Header().Get("Retry-After") != "1" || answer.Header().Get("WWW-Authenticate") != "" {
					t.Errorf("the answer is %q with %v", got, answer.Header())
				}
			}
			if got := w.count("platform_refused_total", map[string]string{"limit": row.limit}); int(got) != len(over) {
				t.Errorf("%v refusals are counted, want %d", got, len(over))
			}
			for code, others := range row.others {
				for _, r := range others {
					if answer := w.do(r); answer.Code != code {
						t.Errorf("%s with %q: %d, want %d", r.path, r.bearer, answer.Code, code)
					}
				}
			}
		})
	}
}

// Authentications from one address are bounded, whatever the credential. Requests without a credential need no place for it.
// The place is free again as soon as the caller is known. Source: ADR-0020.
func TestAuthentications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler = w.server.Mount(keys)
	w.server.Places = fairness.New(map[fairness.Class]fairness.Bound{fairness.Authentications: {Total: 2, PerCaller: 1}}, w.server.Metrics)
	for range 3 {
		if answer := w.do(request{path: root + "/ana"}); answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
	held, err := w.server.Places.Take(context.Background(), fairness.Authentications, "address 192.0.2.1", "")
	if err != nil {
		t.Fatal(err)
	}
	answer := w.do(request{path: root + "/ana"})
	refused(t, answer, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	if got := status(t, answer).Message; !strings.Contains(got, "too many authentications of this address") {
		t.Error(got)
	}
	refused(t, w.do(request{path: root + "/ana", bearer: nobody}), http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	elsewhere := w.request(request{path: root + "/ana"})
	elsewhere.RemoteAddr = "192.0.2.2:1"
	if answer := w.send(elsewhere); answer.Code != http.StatusOK {
		t.Errorf("from another address: %d %s", answer.Code, answer.Body)
	}
	held.Release()
	if answer := w.do(request{path: root + "/ana"}); answer.Code != http.StatusOK {
		t.Errorf("with a place again: %d %s", answer.Code, answer.Body)
	}
}

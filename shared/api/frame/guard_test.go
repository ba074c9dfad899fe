package frame_test

import (
	"crypto/tls"
	"net/http"
	"testing"
)

// Every answer, refusals included, tells browsers not to guess its type, and to come back with TLS. Source: ADR-0001.
func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		name, host, forwarded string
		secure, demands       bool
	}{
		{"TLS", "platform.example", "", true, true},
		{"TLS that a gateway ends", "platform.example", "https", false, true},
		{"no TLS", "platform.example", "http", false, false},
		{"a host that programs share", "localhost:8443", "", true, false},
	} {
		for _, r := range []request{
			{path: root}, {path: root + "/none"}, {path: "/nowhere"}, {path: "//" + root}, {method: "PUT", path: root}, {path: root, bearer: nobody},
			{path: root, header: map[string]string{"Accept": "image/png"}},
		} {
			req := w.request(r)
			req.Host = row.host
			if row.secure {
				req.TLS = &tls.ConnectionState{}
			}
			if row.forwarded != "" {
				req.Header.Set("X-Forwarded-Proto", row.forwarded)
			}
			answer := w.send(req)
			if answer.Header().Get("X-Content-Type-Options") != "nosniff" || (answer.Header().Get("Strict-Transport-Security") != "") != row.demands {
				t.Errorf("%s, %s %s: %v", row.name, req.Method, req.URL, answer.Header())
			}
			if answer.Code >= http.StatusMultipleChoices && answer.Code < http.StatusBadRequest {
				t.Errorf("%s: %d", req.URL, answer.Code)
			}
		}
	}
}

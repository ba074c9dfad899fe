package frame

import (
	"net/http"
	"net/url"
	"strings"
)

// Guarded returns a handler with the headers that all answers have: browsers must not guess the type of an answer, and must
// come back with TLS where they came with TLS, also to a gateway that ends it. Source: ADR-0001.
func Guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		if encrypted(r) && !isLocalhost(r.Host) {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// encrypted reports whether the client uses TLS, as far as the connection or the proxy in front of it says so.
func encrypted(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// isLocalhost reports whether a host is the name that all programs of a machine share: browsers would demand TLS of the others too.
func isLocalhost(host string) bool {
	return strings.EqualFold((&url.URL{Host: host}).Hostname(), "localhost")
}

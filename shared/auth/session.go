package auth

import (
	"encoding/base64"
	"mime"
	"net/http"
	"slices"

	"management.platform.sh/shared/model/secret"
)

// SessionCookie is the name of the cookie in which a browser keeps its access key. The prefix makes browsers refuse it from
// another host, another path or without TLS. Source: ADR-0030.
const SessionCookie = "__Host-platform"

// formTypes are the media types that a form, or a script of another site, can send without the consent of the server.
var formTypes = []string{"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}

// SessionValue returns the value of the session cookie for a bearer. Clients choose their keys, so that a key may contain what
// a cookie may not: the value is base64url.
func SessionValue(bearer secret.String) string {
	return base64.RawURLEncoding.EncodeToString([]byte(bearer.Reveal()))
}

// WithSession returns the request with the bearer of its session cookie, if the cookie counts. The cookie counts if all
// of this holds: there is no Authorization header; there is one cookie of that name; the browser says that a page of
// the same origin sends the request; and no form can send the body. Otherwise WithSession returns the request as it is,
// and the cookie is ignored. It does not change the given request. Source: ADR-0030.
func WithSession(r *http.Request) *http.Request {
	if len(r.Header["Cookie"]) == 0 || len(r.Header["Authorization"]) > 0 {
		return r
	}
	site := r.Header["Sec-Fetch-Site"]
	if len(site) != 1 || site[0] != "same-origin" || formCanSend(r) {
		return r
	}
	cookies := r.CookiesNamed(SessionCookie)
	if len(cookies) != 1 {
		return r
	}
	bearer, err := base64.RawURLEncoding.DecodeString(cookies[0].Value)
	if err != nil || len(bearer) == 0 {
		return r
	}
	with := r.WithContext(r.Context())
	with.Header = r.Header.Clone()
	with.Header.Set("Authorization", "Bearer "+string(bearer))
	return with
}

// formCanSend reports whether a form could send a request that writes: a POST without a media type, or with a media type
// of formTypes.
func formCanSend(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	types := r.Header["Content-Type"]
	if len(types) == 0 {
		return r.Method == http.MethodPost
	}
	media, _, err := mime.ParseMediaType(types[0])
	return err != nil || len(types) > 1 || slices.Contains(formTypes, media)
}

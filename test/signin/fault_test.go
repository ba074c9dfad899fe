package signin_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/signin/logins"
)

// A provider that is slow ends a sign-in with a page that says to try again; one that answers hugely is not read to the end.
func TestSlowProvider(t *testing.T) {
	t.Parallel()
	// A server notices that a client has gone when the body of the request has been read.
	never := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	// drip sends a good beginning, and a little more from time to time.
	drip := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"`))
		next := time.NewTicker(50 * time.Millisecond)
		defer next.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-next.C:
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		block := []byte(strings.Repeat(" ", 1<<16))
		for r.Context().Err() == nil {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for about, row := range map[string]struct {
		path   string
		answer http.HandlerFunc
		status int
	}{
		"no metadata":      {"/.well-known/openid-configuration", never, 503},
		"slow metadata":    {"/.well-known/openid-configuration", drip, 503},
		"endless metadata": {"/.well-known/openid-configuration", endless, 400},
		"no token":         {"/token", never, 503},
		"a slow token":     {"/token", drip, 503},
		"an endless token": {"/token", endless, 400},
		"no keys":          {"/keys", never, 503},
		"endless keys":     {"/keys", endless, 400},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.serve[row.path] = row.answer
			if row.path == "/.well-known/openid-configuration" {
				w.wantRefused(about, w.browser().send(base+"/auth/oidc/login?"+asked().Encode(), nil), row.status)
			} else {
				w.wantRefused(about, w.browser().prove(), row.status)
			}
		})
	}
}

// Nothing is sent to an endpoint without TLS, although it would answer well: neither a code, nor a token, nor a request for keys.
func TestEndpointsWithoutTLS(t *testing.T) {
	t.Parallel()
	for endpoint, path := range map[string]string{"token_endpoint": "/token", "jwks_uri": "/keys", "userinfo_endpoint": "/userinfo"} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.Auth.OIDC.GetUserInfo = true
			w.provider.info = map[string]any{"sub": "1001"}
			asked := false
			open := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				asked = true
				w.provider.ServeHTTP(out, r)
			}))
			defer open.Close()
			w.provider.metadata = func(m map[string]any) { m[endpoint] = open.URL + path }
			answer := w.atProvider("oidc", w.provider.login)()
			if answer.StatusCode < 400 || answer.Header.Get("Location") != "" {
				t.Errorf("%d %s", answer.StatusCode, answer.Header.Get("Location"))
			}
			if asked {
				t.Error("the endpoint without TLS was asked")
			}
		})
	}
}

// The headers of the configuration are on every answer of the sign-in, and never in place of the platform's own.
func TestCustomHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.CustomHTTPHeaders = map[string]string{
		"x-a": "b", "X-Frame-Options": "DENY", "content-security-policy": "default-src *", "Referrer-Policy": "unsafe-url", "Location": "https://evil.example",
	}
	b := w.browser()
	location := b.start()
	callback := b.send(base+"/auth/oidc/callback?"+w.provider.login(location).Encode(), nil)
	page := b.send(callback.Header.Get("Location"), nil)
	for about, answer := range map[string]*http.Response{
		"a redirect": callback, "a page": page, "a refusal": w.browser().send(base+"/auth/oidc/callback?state=x", nil), "the list": w.browser().send(base+"/auth/info", nil),
		"a program": w.browser().send(base+"/auth/token", asked(), "Accept", "application/json"), "no connector": w.browser().send(base+"/auth/none/login", nil),
	} {
		header := answer.Header
		if header.Get("X-A") != "b" || header.Get("X-Frame-Options") != "DENY" || header.Get("Referrer-Policy") != "no-referrer" ||
			strings.Contains(header.Get("Content-Security-Policy"), "*") {
			t.Errorf("%s has the header %v", about, header)
		}
	}
	if !strings.HasPrefix(callback.Header.Get("Location"), base) || len(w.stored(logins.Resource)) != 1 {
		t.Errorf("the callback leads to %s", callback.Header.Get("Location"))
	}
}

// A resource is sent to the token endpoint. Without one, nothing is. Source: Spec 2.7 (resource); RFC 8707, 2.
func TestResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, resource := range []string{"", "https://api.example.com"} {
		w.config.Auth.OIDC.Resource = resource
		w.signIn()
		w.provider.mu.Lock()
		if got := w.provider.sent["resource"]; strings.Join(got, " ") != resource || len(got) > 1 || resource == "" && got != nil {
			t.Errorf("%q: the provider gets %q", resource, got)
		}
		w.provider.mu.Unlock()
	}
}

// A provider whose certificate nobody vouches for signs people in only if the configuration says so. Source: Spec 2.7 (insecureCa).
func TestInsecureCA(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.OIDC.CAFile = ""
	if answer := w.browser().send(base+"/auth/oidc/login?"+asked().Encode(), nil); answer.StatusCode < 500 || answer.Header.Get("Location") != "" {
		t.Errorf("%d %s", answer.StatusCode, answer.Header.Get("Location"))
	}
	w.config.Auth.OIDC.InsecureCA = true
	w.signIn()
}

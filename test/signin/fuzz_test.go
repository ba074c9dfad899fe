package signin_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/state/store"
)

// FuzzCallback sends answers that no provider of the sign-in has given: whatever the query, the cookies and the provider's answers are,
// the person gets a page with a status of the 400 family, or learns that the provider cannot be reached, and nothing is stored.
// Source: ADR-0031.
func FuzzCallback(f *testing.F) {
	w := newWorld(f)
	w.handler = w.server.Mount(finishlogin.Function)
	var answer string
	asked := 0
	w.provider.serve["/token"] = func(out http.ResponseWriter, _ *http.Request) {
		asked++
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write([]byte(answer))
	}
	// A browser has begun a sign-in, so that some of the inputs reach the provider. Each process has another one.
	begun, cookie := w.begun()
	f.Add("oidc", "state=STATE&code=x", "COOKIE", `{"access_token":"x","token_type":"Bearer","id_token":"a.b.c"}`)
	f.Add("oidc", "state=STATE&error=access_denied&error_description=%00%ff<script>", "COOKIE", "")
	f.Add("oidc", "state=STATE&code=x&iss=https://evil.example", "COOKIE", "{}")
	f.Add("oidc", "state=STATE&code=x&code=y", "COOKIE", "[]")
	f.Add("another", "state=STATE&code=x", "COOKIE", `{"id_token":1}`)
	f.Add("oidc", "state=x&code=%zz;", "__Host-signin-0=x", "\x00")
	f.Cleanup(func() {
		// Without a target of its own, this is a test of the seeds.
		if flag.Lookup("test.fuzz").Value.String() == "" && asked != 1 {
			f.Errorf("the provider was asked %d times", asked)
		}
	})
	f.Fuzz(func(t *testing.T, connector, query, cookies, said string) {
		answer = said
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, base+"/", http.NoBody)
		request.URL.Path, request.URL.RawPath = "/auth/"+connector+"/callback", "/auth/"+url.PathEscape(connector)+"/callback"
		request.URL.RawQuery = strings.ReplaceAll(query, "STATE", begun)
		request.Header.Set("Cookie", strings.ReplaceAll(cookies, "COOKIE", cookie))
		request.Header.Set("Accept", "text/html")
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, request)
		code := recorder.Code
		if code == http.StatusTooManyRequests || code/100 != 4 && code != http.StatusBadGateway && code != http.StatusServiceUnavailable && code != http.StatusTemporaryRedirect &&
			code != http.StatusMovedPermanently {
			t.Fatalf("%d %s", code, recorder.Body)
		}
		if body := recorder.Body.String(); strings.Contains(body, "<script") || strings.Contains(body, clientSecret) {
			t.Fatalf("the page is %s", body)
		}
		for _, resource := range []string{logins.Resource, "users"} {
			page, err := w.env.Stores(resource).List(t.Context(), store.Query{})
			if err != nil || len(page.Records) > 0 {
				t.Fatalf("%d %s, %v", len(page.Records), resource, err)
			}
		}
	})
}

// begun returns the state and the cookie of a sign-in that a browser has begun.
func (w *world) begun() (state, cookie string) {
	w.t.Helper()
	mounted := w.handler
	defer func() { w.handler = mounted }()
	w.handler = w.server.Mount(startlogin.Function)
	b := w.browser()
	at, err := url.Parse(b.start())
	if err != nil {
		w.t.Fatal(err)
	}
	for name, one := range b.cookies {
		cookie = name + "=" + one.Value
	}
	return at.Query().Get("state"), cookie
}

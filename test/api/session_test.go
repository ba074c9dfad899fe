package api_test

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"management.platform.sh/functions/opensession"
	"management.platform.sh/functions/reviewtokens"
	"management.platform.sh/functions/whoami"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore/redistest"
)

const (
	lastingKey = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"
	// endingKey has characters that a cookie may not have.
	endingKey = `4Tz81bNw36;pRq59,KsHx2"Jv7MdC0aGe\987654321`
)

const (
	sessionPath = "/auth/session"
	selvesPath  = "/apis/management.platform.sh/v1/selves"
	reviewsPath = "/apis/authentication.k8s.io/v1/tokenreviews"
)

// serveSessions mounts the sessions beside functions that need a credential. The state has a key without an end, and a key that ends in an hour
// and has an empty scope.
func serveSessions(t *testing.T) func(method, path string, header http.Header) (*http.Response, string) {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	env := &platform.Environment{
		Stores: client.Resource, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Config: func() *model.ConfigStatus { return &model.ConfigStatus{} },
	}
	for _, spec := range []model.OwnedAccessKeySpec{{Key: lastingKey}, {Key: endingKey, TTLSeconds: 3600, Scope: &model.Scope{}}} {
		if _, err := resource.Create(t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{identity.Admins}),
			Object: &model.OwnedAccessKey{Spec: spec},
		}); err != nil {
			t.Fatal(err)
		}
	}
	handler := process.NewServer(env).Mount(opensession.Function, whoami.Function, reviewtokens.Function)
	return func(method, path string, header http.Header) (*http.Response, string) {
		request := httptest.NewRequest(method, frame.BasePath+path, strings.NewReader("{}"))
		request.Header = header.Clone()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		body, err := io.ReadAll(answer.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Result(), string(body)
	}
}

// A session is the access key in a cookie that scripts cannot read, which ends with the key. Source: ADR-0030.
func TestSession(t *testing.T) {
	t.Parallel()
	ask := serveSessions(t)
	for _, row := range []struct {
		key      string
		from, to int
	}{{lastingKey, 0, 0}, {endingKey, 3500, 3600}} {
		begun, body := ask("POST", sessionPath, http.Header{"Authorization": {"Bearer " + row.key}})
		cookies := begun.Cookies()
		if begun.StatusCode != http.StatusOK || len(cookies) != 1 || strings.Contains(body, row.key) {
			t.Fatalf("begun: %d %v %s", begun.StatusCode, cookies, body)
		}
		cookie := cookies[0]
		if cookie.Name != "__Host-platform" || cookie.Path != "/" || cookie.Domain != "" || !cookie.HttpOnly || !cookie.Secure ||
			cookie.SameSite != http.SameSiteStrictMode || cookie.MaxAge < row.from || cookie.MaxAge > row.to {
			t.Errorf("the cookie is %+v", cookie)
		}
		if caching := begun.Header.Get("Cache-Control"); caching != "no-cache, private" {
			t.Errorf("the answer may be cached: %q", caching)
		}
		header := http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}, "Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/json"}}
		if answer, body := ask("POST", selvesPath, header); answer.StatusCode != http.StatusCreated || !strings.Contains(body, `"name":"ana"`) {
			t.Errorf("with the cookie: %d %s", answer.StatusCode, body)
		}
		// Clusters send no cookies.
		if answer, _ := ask("POST", reviewsPath, header); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("a review with the cookie: %d", answer.StatusCode)
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"} {
			foreign := header.Clone()
			foreign.Set(name, value)
			if answer, _ := ask("POST", selvesPath, foreign); answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("with %s %s: %d", name, value, answer.StatusCode)
			}
		}
	}
	if answer, _ := ask("POST", sessionPath, http.Header{"Authorization": {"Bearer " + strings.Repeat("x", 40)}}); answer.StatusCode != http.StatusUnauthorized || len(answer.Cookies()) > 0 {
		t.Errorf("with an unknown key: %d %v", answer.StatusCode, answer.Cookies())
	}
	ended, _ := ask("DELETE", sessionPath, http.Header{})
	if cookies := ended.Cookies(); ended.StatusCode != http.StatusOK || len(cookies) != 1 || cookies[0].Name != auth.SessionCookie ||
		cookies[0].MaxAge >= 0 || cookies[0].Value != "" || ended.Header.Get("Clear-Site-Data") != `"cache", "storage"` {
		t.Errorf("ended: %d %v", ended.StatusCode, ended.Header)
	}
}

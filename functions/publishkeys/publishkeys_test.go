package publishkeys

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/process"
)

// Verifiers without a credential get each document below the base path and at the root. They may cache it and revalidate
// it cheaply. Source: OpenID Connect Discovery 1.0, sections 3 and 4.
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	handler := process.NewServer(w.Env).Mount(Function)
	asked := http.MethodGet
	ask := func(path, tag string) *http.Response {
		request := httptest.NewRequest(asked, path, nil)
		request.Header.Set("If-None-Match", tag)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Result()
	}
	for path, row := range map[string]struct{ mediaType, caching string }{
		issuer.ConfigurationPath: {"application/json", "public, max-age=300"},
		issuer.KeysPath:          {"application/jwk-set+json", "public, max-age=300"},
		issuer.RevokedPath:       {"application/json", "public, max-age=60"},
	} {
		for _, base := range []string{"", frame.BasePath} {
			first := ask(base+path, "")
			tag := first.Header.Get("ETag")
			if first.StatusCode != http.StatusOK || first.Header.Get("Content-Type") != row.mediaType || first.Header.Get("Cache-Control") != row.caching || tag == "" {
				t.Errorf("%s: %d, %v", base+path, first.StatusCode, first.Header)
			}
			if again := ask(base+path, tag); again.StatusCode != http.StatusNotModified || again.Header.Get("ETag") != tag || again.Header.Get("Cache-Control") != row.caching {
				t.Errorf("%s again: %d, %v", base+path, again.StatusCode, again.Header)
			}
			asked = http.MethodHead
			head, unchanged := ask(base+path, ""), ask(base+path, tag)
			asked = http.MethodGet
			for _, name := range []string{"Content-Type", "Cache-Control", "ETag", "Content-Length"} {
				if head.Header.Get(name) != first.Header.Get(name) {
					t.Errorf("HEAD %s: %s is %q, want %q", base+path, name, head.Header.Get(name), first.Header.Get(name))
				}
			}
			if body, err := io.ReadAll(head.Body); head.StatusCode != http.StatusOK || len(body) > 0 || err != nil {
				t.Errorf("HEAD %s: %d, %q, %v", base+path, head.StatusCode, body, err)
			}
			if unchanged.StatusCode != http.StatusNotModified {
				t.Errorf("HEAD %s again: %d", base+path, unchanged.StatusCode)
			}
		}
	}
	if _, err := Do(t.Context(), open(w.Env), Input{Path: "/openid/v1/other"}); accesskeytest.Code(err) != http.StatusNotFound {
		t.Errorf("another path: %v", err)
	}
	// A platform without an issuer does not publish a wrong one, and its response may not be cached.
	w.Env.Tokens.Issuer = ""
	handler = process.NewServer(w.Env).Mount(Function)
	if answer := ask(issuer.ConfigurationPath, ""); answer.StatusCode != http.StatusInternalServerError || strings.Contains(answer.Header.Get("Cache-Control"), "public") {
		t.Errorf("without an issuer: %d, %v", answer.StatusCode, answer.Header)
	}
}

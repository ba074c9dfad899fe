package process

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
)

// An issuer is reached if its metadata can be fetched with its certificates, and can be used to sign in. Addresses of
// this machine are for the local runner. Source: ADR-0024; OpenID Connect Discovery 1.0, 4.3.
func TestIssuers(t *testing.T) {
	t.Parallel()
	var server *httptest.Server
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, found := strings.CutSuffix(r.URL.Path, "/.well-known/openid-configuration")
		if !found || from == "" {
			http.Redirect(w, r, "/good/.well-known/openid-configuration", http.StatusFound)
			return
		}
		endpoint := server.URL + "/endpoint"
		metadata := map[string]any{"scopes_supported": []string{"openid", "groups"}, "issuer": server.URL + from, "authorization_endpoint": endpoint, "token_endpoint": endpoint, "jwks_uri": endpoint}
		switch from {
		case "/other":
			metadata["issuer"] = server.URL + "/good"
		case "/list":
			metadata["issuer"] = []string{server.URL + from}
		case "/open":
			metadata["token_endpoint"] = "http://127.0.0.1/token"
		case "/bare":
			delete(metadata, "jwks_uri")
		case "/page":
			_, _ = w.Write([]byte("<html>sign in</html>"))
			return
		case "/huge":
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxMetadata))
		case "/cut":
			w.Header().Set("Content-Length", "1000000")
		}
		_ = json.NewEncoder(w).Encode(metadata)
	}))
	defer server.Close()
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	provider := func(path string) model.OIDCProvider {
		return model.OIDCProvider{IssuerURL: server.URL + path, CAFile: "ca.crt"}
	}
	for sentence, row := range map[string]struct {
		local    bool
		provider model.OIDCProvider
		// problem is a part of the error. Empty: the issuer is reached.
		problem string
	}{
		"with its certificate":     {true, provider("/good"), ""},
		"without verification":     {true, model.OIDCProvider{IssuerURL: server.URL + "/good", InsecureCA: true}, ""},
		"with a slash at its end":  {true, provider("/good/"), "another issuer"},
		"without its certificate":  {true, model.OIDCProvider{IssuerURL: server.URL + "/good"}, "its certificate cannot be verified"},
		"without its metadata":     {true, provider(""), "answers 302"},
		"on the machine of others": {false, provider("/good"), "cannot be reached from here"},
		"nobody listens":           {true, model.OIDCProvider{IssuerURL: "https://127.0.0.1:1"}, "cannot be reached from here"},
		"another issuer":           {true, provider("/other"), "another issuer"},
		"a list of issuers":        {true, provider("/list"), "not the metadata"},
		"an endpoint without TLS":  {true, provider("/open"), "https URL as token_endpoint"},
		"without keys":             {true, provider("/bare"), "https URL as jwks_uri"},
		"a page":                   {true, provider("/page"), "not the metadata"},
		"a huge answer":            {true, provider("/huge"), "not the metadata"},
		"an answer that ends":      {true, provider("/cut"), "cannot be reached from here"},
	} {
		scopes, err := (issuers{row.local}).reach(t.Context(), &row.provider, roots)
		if row.problem == "" && (err != nil || !slices.Equal(scopes, []string{"openid", "groups"})) || row.problem != "" && (err == nil || !strings.Contains(err.Error(), row.problem)) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

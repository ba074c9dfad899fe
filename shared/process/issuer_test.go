package process

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"management.platform.sh/shared/model"
)

// An issuer is reached if its metadata can be fetched with its certificates. Addresses of this machine are for the local
// runner. Source: ADR-0024.
func TestIssuers(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/good/.well-known/openid-configuration" {
			http.Redirect(w, r, "/good/.well-known/openid-configuration", http.StatusFound)
		}
	}))
	defer server.Close()
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for sentence, row := range map[string]struct {
		local    bool
		provider model.OIDCProvider
		reached  bool
	}{
		"with its certificate":     {true, model.OIDCProvider{IssuerURL: server.URL + "/good", CAFile: "ca.crt"}, true},
		"with a slash at its end":  {true, model.OIDCProvider{IssuerURL: server.URL + "/good/", CAFile: "ca.crt"}, true},
		"without verification":     {true, model.OIDCProvider{IssuerURL: server.URL + "/good", InsecureCA: true}, true},
		"without its certificate":  {true, model.OIDCProvider{IssuerURL: server.URL + "/good"}, false},
		"without its metadata":     {true, model.OIDCProvider{IssuerURL: server.URL, CAFile: "ca.crt"}, false},
		"on the machine of others": {false, model.OIDCProvider{IssuerURL: server.URL + "/good", CAFile: "ca.crt"}, false},
		"nobody listens":           {true, model.OIDCProvider{IssuerURL: "https://127.0.0.1:1"}, false},
	} {
		if err := (issuers{row.local}).reach(t.Context(), &row.provider, roots); (err == nil) != row.reached {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

package signin_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"management.platform.sh/functions/describelogin"
	"management.platform.sh/functions/endlogin"
	"management.platform.sh/local/client"
	"management.platform.sh/shared/model"
)

// A browser ends its session at the provider, and comes back to the address in the configuration alone.
// Source: OpenID Connect RP-Initiated Logout 1.0; Spec 2.7 (postLogoutRedirectURI); ADR-0031.
func TestLogoutAtTheProvider(t *testing.T) {
	t.Parallel()
	const after = "https://platform.example/console"
	for about, row := range map[string]struct {
		metadata string
		after    string
		path     string
		status   int
		want     url.Values
	}{
		"the configuration says where to":  {"/end?tenant=1", after, "oidc", http.StatusSeeOther, url.Values{"tenant": {"1"}, "client_id": {clientID}, "post_logout_redirect_uri": {after}}},
		"the configuration says nothing":   {"/end", "", "oidc", http.StatusSeeOther, url.Values{"client_id": {clientID}}},
		"the caller says where to":         {"/end", after, "oidc/logout?post_logout_redirect_uri=https://evil.example&id_token_hint=x", http.StatusSeeOther, url.Values{"client_id": {clientID}, "post_logout_redirect_uri": {after}}},
		"the provider has no such address": {"", after, "oidc", http.StatusOK, nil},
		"its address is without TLS":       {"http://provider.example/end", after, "oidc", http.StatusBadRequest, nil},
		"there is no such connector":       {"/end", after, "another", http.StatusNotFound, nil},
	} {
		w := newWorld(t)
		w.handler = w.server.Mount(endlogin.Function, describelogin.Function)
		w.config.Auth.OIDC.PostLogoutRedirectURI = row.after
		w.provider.metadata = func(metadata map[string]any) {
			if strings.HasPrefix(row.metadata, "/") {
				metadata["end_session_endpoint"] = w.provider.server.URL + row.metadata
			} else if row.metadata != "" {
				metadata["end_session_endpoint"] = row.metadata
			}
		}
		path := row.path
		if !strings.Contains(path, "/") {
			path += "/logout"
		}
		answer := w.browser().send(base+"/auth/"+path, nil)
		if answer.StatusCode != row.status {
			t.Errorf("%s: %d %s", about, answer.StatusCode, text(t, answer))
		}
		at, err := url.Parse(answer.Header.Get("Location"))
		if err != nil || row.want != nil && (at.Query().Encode() != row.want.Encode() || !strings.HasPrefix(at.String(), w.provider.server.URL+"/end?")) ||
			row.want == nil && at.String() != "" {
			t.Errorf("%s: the browser goes to %s, %v", about, at, err)
		}
	}
	w := newWorld(t)
	if info := text(t, w.browser().send(base+"/auth/info", nil)); !strings.Contains(info, `"logoutEndpoint":"`+base+`/auth/oidc/logout"`) {
		t.Errorf("%s", info)
	}
}

// The program says who somebody is, by the sign-in at a platform and by the kubeconfig. After the sign-out it says that nobody is signed
// in, and where the session at the provider ends. Source: ADR-0031.
func TestWhoAmICommand(t *testing.T) {
	s := serve(t)
	if err := s.login(func(address string) error { s.visit(s.browse(address, "allow")); return nil }).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", s.kubeconfig)
	ask := func(host, output string) (string, error) {
		var out bytes.Buffer
		command := &client.WhoAmI{Output: output, Out: &out}
		command.Host = host
		err := command.Run(t.Context())
		return out.String(), err
	}
	for _, host := range []string{s.server.URL, ""} {
		got, err := ask(host, "text")
		if err != nil || !strings.HasPrefix(got, "User       ana\n") || !strings.Contains(got, "dev") || !strings.Contains(got, " (Login)\n") {
			t.Errorf("%q: %s, %v", host, got, err)
		}
		for output, read := range map[string]func([]byte, any) error{
			"json": json.Unmarshal, "yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
		} {
			var self model.Self
			got, err := ask(host, output)
			if err != nil || read([]byte(got), &self) != nil || self.Status.User == nil || self.Status.User.Name != "ana" || self.Kind != "Self" || self.Spec.AccessKey != "" {
				t.Errorf("%q as %s: %s, %v", host, output, got, err)
			}
		}
	}
	files := s.keyFiles()
	if err := os.WriteFile(files[0], []byte("pak_unknown"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(s.server.URL, "text"); err == nil || !strings.Contains(err.Error(), "refuses the credential") || got != "" {
		t.Errorf("a key that is not one: %q, %v", got, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(s.server.URL, "text"); err == nil || !strings.Contains(err.Error(), "you are not signed in") || got != "" {
		t.Errorf("after the sign-out: %q, %v", got, err)
	}
	t.Setenv("KUBECONFIG", s.folder+"/none")
	if got, err := ask("", "text"); err == nil || got != "" {
		t.Errorf("without a kubeconfig: %q, %v", got, err)
	}
	if got, err := ask("http://platform.example", "text"); err == nil || !strings.Contains(err.Error(), "invalid platform") {
		t.Errorf("without TLS: %q, %v", got, err)
	}
}

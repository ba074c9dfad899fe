package signin_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
)

// idp1 makes the provider of a world the first identity provider, and its connector.
func (w *world) idp1() {
	w.config.Auth = &model.ConfigAuth{IdentityProviders: model.IdentityProviders{IDP1: &model.IDP1Provider{
		ClientID: clientID, ClientSecret: clientSecret, RedirectURI: base + "/auth/idp1/callback",
	}}}
	w.env.Endpoints.IDP1, w.env.Endpoints.CAFile = w.provider.server.URL, w.provider.caFile
	delete(w.provider.person, "preferred_username")
	delete(w.provider.person, "groups")
}

// directory makes the directory of the first identity provider, with 101 groups of the person on pages of their own size, and the file
// of the service account that may read it.
func (w *world) directory() {
	w.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		w.t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "robot@example.com", "private_key_id": "1", "token_uri": w.provider.server.URL + "/robot",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), "account.json")
	if err := os.WriteFile(path, account, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.config.Auth.IDP1.ServiceAccountFilePath, w.config.Auth.IDP1.AdminEmail = path, "root@example.com"
	w.env.Endpoints.IDP1Directory = w.provider.server.URL + "/dir"
	w.provider.serve["/robot"] = func(out http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		var claims map[string]any
		parts := strings.Split(r.PostForm.Get("assertion"), ".")
		if len(parts) != 3 || json.Unmarshal(decoded(parts[1]), &claims) != nil || claims["sub"] != "root@example.com" || claims["iss"] != "robot@example.com" {
			out.WriteHeader(http.StatusBadRequest)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write([]byte(`{"access_token":"of-the-robot","token_type":"Bearer"}`))
	}
	w.provider.serve["/dir/admin/directory/v1/groups"] = func(out http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.Header.Get("Authorization") != "Bearer of-the-robot" || query.Get("userKey") != "1001" {
			out.WriteHeader(http.StatusForbidden)
			return
		}
		var groups []map[string]string
		page := map[string]any{}
		if query.Get("pageToken") == "" {
			for i := range 100 {
				groups = append(groups, map[string]string{"email": fmt.Sprintf("g%d@example.com", i)})
			}
			page["nextPageToken"] = "second"
		} else {
			groups = []map[string]string{{"email": "last@example.com"}}
		}
		page["groups"] = groups
		_ = json.NewEncoder(out).Encode(page)
	}
}

// decoded is a part of a token.
func decoded(part string) []byte {
	text, _ := base64.RawURLEncoding.DecodeString(part)
	return text
}

// claim makes the provider say one claim more.
func (w *world) claim(name string, value any) {
	w.provider.claims = func(claims map[string]any) { claims[name] = value }
}

// A person signs in at the first identity provider. Source: Spec 2.7 (idp1).
func TestIDP1(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.idp1()
	settings := w.config.Auth.IDP1
	var asked url.Values
	login := func(location string) url.Values {
		if at, err := url.Parse(location); err == nil {
			asked = at.Query()
		}
		return w.provider.login(location)
	}
	user := w.admitted(connector.IDP1, login)
	if user.Name != "ana-example-com" || user.Spec.Subject != "1001" || len(user.Spec.SSOGroups) > 0 || asked.Get("scope") != "openid profile email" || asked.Has("hd") {
		t.Errorf("%s %+v, asked %v", user.Name, user.Spec, asked)
	}
	settings.HostedDomains, settings.Scopes = []string{"example.com"}, []string{"email"}
	w.claim("hd", "example.com")
	w.admitted(connector.IDP1, login)
	if asked.Get("hd") != "example.com" || asked.Get("scope") != "openid email" {
		t.Errorf("asked %v", asked)
	}
	w.directory()
	if user = w.admitted(connector.IDP1, login); len(user.Spec.SSOGroups) != 101 {
		t.Errorf("%d groups", len(user.Spec.SSOGroups))
	}
	settings.Groups = []string{"last@example.com"}
	if user = w.admitted(connector.IDP1, login); len(user.Spec.SSOGroups) != 101 {
		t.Errorf("%d groups", len(user.Spec.SSOGroups))
	}
}

const (
	tenant  = "11111111-2222-3333-4444-555555555555"
	account = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
	// personal is the tenant of accounts that belong to no organization.
	personal = "9188040d-6c67-4c5b-b112-36a304b66dad"
)

// idp2 makes the provider of a world the second identity provider, and its connector.
func (w *world) idp2(wanted string) {
	w.config.Auth = &model.ConfigAuth{IdentityProviders: model.IdentityProviders{IDP2: &model.IDP2Provider{
		ClientID: clientID, ClientSecret: clientSecret, RedirectURI: base + "/auth/idp2/callback", Tenant: wanted,
	}}}
	at := w.provider.server.URL
	w.env.Endpoints.IDP2, w.env.Endpoints.IDP2Directory, w.env.Endpoints.CAFile = at, at+"/graph", w.provider.caFile
	for _, segment := range []string{"common", "organizations", "consumers", tenant, "example.com"} {
		issuer := at + "/{tenantid}/v2.0"
		switch segment {
		case "consumers":
			issuer = at + "/" + personal + "/v2.0"
		case tenant, "example.com":
			issuer = at + "/" + tenant + "/v2.0"
		}
		w.provider.serve["/"+segment+"/v2.0/.well-known/openid-configuration"] = func(out http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(out).Encode(map[string]any{
				"issuer": issuer, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "jwks_uri": at + "/keys",
				"id_token_signing_alg_values_supported": []string{"ES256"},
			})
		}
	}
	w.of2(tenant, tenant)
	w.provider.serve["/graph/v1.0/me/getMemberGroups"] = func(out http.ResponseWriter, r *http.Request) {
		var asked struct {
			Security bool `json:"securityEnabledOnly"`
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil || r.Header.Get("Authorization") != "Bearer opaque" {
			out.WriteHeader(http.StatusForbidden)
			return
		}
		ids := []string{group(0)}
		if !asked.Security {
			// More than a token holds.
			for i := range 300 {
				ids = append(ids, group(i+1))
			}
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"value": ids})
	}
	w.provider.serve["/graph/v1.0/directoryObjects/getByIds"] = func(out http.ResponseWriter, r *http.Request) {
		var asked struct{ IDs []string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		var found []map[string]string
		for _, id := range asked.IDs {
			found = append(found, map[string]string{"id": id, "displayName": "name of " + id[len(id)-3:]})
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"value": found})
	}
}

// group is the ID of a group.
func group(i int) string { return fmt.Sprintf("99999999-0000-0000-0000-%012d", i) }

// of2 makes the person one of a tenant, with the issuer of a tenant.
func (w *world) of2(tid, issuer string) {
	w.provider.claims = func(claims map[string]any) {
		claims["tid"], claims["oid"], claims["iss"] = tid, account, w.provider.server.URL+"/"+issuer+"/v2.0"
		claims["email_verified"] = true
	}
}

// A person signs in at the second identity provider: the tenant and the account identify them. Source: Spec 2.7 (idp2).
func TestIDP2(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		wanted, tid string
		groups      int
		change      func(*model.IDP2Provider)
	}{
		{"", tenant, 0, nil},
		{"common", personal, 0, nil},
		{"organizations", tenant, 0, nil},
		{"consumers", personal, 0, nil},
		{"example.com", tenant, 1, func(p *model.IDP2Provider) { p.OnlySecurityGroups = true }},
		{tenant, tenant, 1, func(p *model.IDP2Provider) { p.Groups, p.UseGroupsAsWhitelist = []string{group(300)}, true }},
		{tenant, tenant, 1, func(p *model.IDP2Provider) { p.Groups, p.UseGroupsAsWhitelist = []string{"name of 007"}, true }},
		{tenant, tenant, 2, func(p *model.IDP2Provider) { p.Groups, p.OnlySecurityGroups = []string{"name of 000"}, true }},
	} {
		w := newWorld(t)
		w.idp2(row.wanted)
		w.of2(row.tid, row.tid)
		if row.change != nil {
			row.change(w.config.Auth.IDP2)
		}
		user := w.admitted(connector.IDP2, w.provider.login)
		if user.Name != "ana" || user.Spec.Subject != row.tid+"/"+account || len(user.Spec.SSOGroups) != row.groups {
			t.Errorf("%+v: %s %+v", row, user.Name, user.Spec)
		}
		for _, key := range w.stored("ownedaccesskeys") {
			if strings.Contains(string(key.Object), `"emailVerified":true`) {
				t.Errorf("%+v: the address is verified", row)
			}
		}
	}
}

// Whatever an identity provider answers instead of who somebody is: nobody is signed in, and nothing is stored.
func TestIdentityProviderRefused(t *testing.T) {
	t.Parallel()
	answers := func(path string, status int, body string) func(*world) {
		return func(w *world) {
			w.provider.serve[path] = func(out http.ResponseWriter, _ *http.Request) {
				out.WriteHeader(status)
				_, _ = out.Write([]byte(body))
			}
		}
	}
	const list = "/dir/admin/directory/v1/groups"
	const members = "/graph/v1.0/me/getMemberGroups"
	for about, row := range map[string]struct {
		prepare func(*world)
		change  func(*world)
		kind    string
		status  int
	}{
		"no hosted domain":      {(*world).idp1, func(w *world) { w.config.Auth.IDP1.HostedDomains = []string{"example.com"} }, connector.IDP1, 403},
		"another hosted domain": {(*world).idp1, func(w *world) { w.config.Auth.IDP1.HostedDomains = []string{"a.example"}; w.claim("hd", "example.com") }, connector.IDP1, 403},
		"a domain that is a list": {(*world).idp1, func(w *world) {
			w.config.Auth.IDP1.HostedDomains = []string{"example.com"}
			w.claim("hd", []string{"example.com"})
		}, connector.IDP1, 403},
		"in none of the groups":    {(*world).idp1, func(w *world) { w.directory(); w.config.Auth.IDP1.Groups = []string{"x@example.com"} }, connector.IDP1, 403},
		"no file":                  {(*world).idp1, func(w *world) { w.directory(); w.config.Auth.IDP1.ServiceAccountFilePath = "/nowhere" }, connector.IDP1, 400},
		"another administrator":    {(*world).idp1, func(w *world) { w.directory(); w.config.Auth.IDP1.AdminEmail = "x@example.com" }, connector.IDP1, 400},
		"a directory that refuses": {(*world).idp1, func(w *world) { w.directory(); answers(list, 401, "")(w) }, connector.IDP1, 400},
		"a directory that fails":   {(*world).idp1, func(w *world) { w.directory(); answers(list, 500, "")(w) }, connector.IDP1, 503},
		"garbage as directory":     {(*world).idp1, func(w *world) { w.directory(); answers(list, 200, "<html>")(w) }, connector.IDP1, 400},
		"endless groups":           {(*world).idp1, func(w *world) { w.directory(); answers(list, 200, `{"nextPageToken":"x"}`)(w) }, connector.IDP1, 400},
		"another tenant":           {func(w *world) { w.idp2(tenant) }, func(w *world) { w.of2(personal, personal) }, connector.IDP2, 403},
		"a tenant of another name": {func(w *world) { w.idp2("example.com") }, func(w *world) { w.of2(personal, personal) }, connector.IDP2, 403},
		"a swapped tenant":         {func(w *world) { w.idp2("common") }, func(w *world) { w.of2(tenant, personal) }, connector.IDP2, 403},
		"a swapped issuer":         {func(w *world) { w.idp2(tenant) }, func(w *world) { w.of2(tenant, personal) }, connector.IDP2, 403},
		"no tenant":                {func(w *world) { w.idp2("common") }, func(w *world) { w.of2("", "") }, connector.IDP2, 400},
		"a tenant that climbs":     {func(w *world) { w.idp2("common") }, func(w *world) { w.of2("../"+tenant, "../"+tenant) }, connector.IDP2, 400},
		"a personal account":       {func(w *world) { w.idp2("organizations") }, func(w *world) { w.of2(personal, personal) }, connector.IDP2, 403},
		"an organization":          {func(w *world) { w.idp2("consumers") }, func(w *world) { w.of2(tenant, tenant) }, connector.IDP2, 403},
		"no account": {func(w *world) { w.idp2(tenant) }, func(w *world) {
			before := w.provider.claims
			w.provider.claims = func(claims map[string]any) { before(claims); delete(claims, "oid") }
		}, connector.IDP2, 400},
		"in none of the required groups": {func(w *world) { w.idp2(tenant) }, func(w *world) { w.config.Auth.IDP2.Groups = []string{group(999)} }, connector.IDP2, 403},
		"not a security group": {func(w *world) { w.idp2(tenant) }, func(w *world) {
			w.config.Auth.IDP2.Groups, w.config.Auth.IDP2.OnlySecurityGroups = []string{group(5)}, true
		}, connector.IDP2, 403},
		"groups that fail":  {func(w *world) { w.idp2(tenant) }, answers(members, 500, ""), connector.IDP2, 503},
		"garbage as groups": {func(w *world) { w.idp2(tenant) }, answers(members, 200, "<html>"), connector.IDP2, 400},
		"a refused token":   {func(w *world) { w.idp2(tenant) }, answers(members, 401, ""), connector.IDP2, 400},
		"forbidden to read": {func(w *world) { w.idp2(tenant) }, answers(members, 403, ""), connector.IDP2, 400},
		"groups elsewhere":  {func(w *world) { w.idp2(tenant) }, answers(members, 307, ""), connector.IDP2, 400},
		"a broken directory": {func(w *world) { w.idp2(tenant) }, func(w *world) {
			w.config.Auth.IDP2.Groups = []string{"x"}
			answers("/graph/v1.0/directoryObjects/getByIds", 500, "")(w)
		}, connector.IDP2, 503},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			row.prepare(w)
			row.change(w)
			w.wantRefused(about, w.browser().proveAt(row.kind, w.provider.login), row.status)
		})
	}
}

// Nobody can sign in at a connector whose gate would be open. Source: ADR-0035.
func TestGatesFailClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for about, change := range map[string]func(){
		"groups without a directory": func() { w.idp1(); w.config.Auth.IDP1.Groups = []string{"x"} },
		"groups of any tenant":       func() { w.idp2("common"); w.config.Auth.IDP2.Groups = []string{"x"} },
	} {
		change()
		id := connector.All(w.config)[0].ID
		if answer := w.browser().send(base+"/auth/"+id+"/login?"+asked().Encode(), nil); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", about, answer.StatusCode)
		}
	}
	w.idp2(tenant)
	w.config.Auth.Connectors = []model.AuthConnector{
		{ID: "idp2", IdentityProviders: w.config.Auth.IdentityProviders}, {ID: "password", IdentityProviders: w.config.Auth.IdentityProviders},
	}
	if usable := slices.DeleteFunc(connector.All(w.config), func(one connector.Connector) bool { return !one.Usable() }); len(usable) != 1 {
		t.Errorf("%d connectors", len(usable))
	}
}

package signin_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/signin/oauth"
)

// codeHost is a code host on the server of the provider of a world. Its answers are as the providers document them.
type codeHost struct {
	w *world
	// web and api are the paths of its pages and of its API.
	web, api string
	// token answers a request for a token. It gets the form.
	token func(url.Values) (int, any)
	codes map[string]url.Values
	// denied tells that the API refuses the token.
	denied bool
	// asked is the latest query with which a browser came, and sent the latest request for a token.
	asked, sent url.Values
}

const hostToken = "token-of-the-host-7Zq"

// host makes a code host. Its lists have at most 100 entries on a page, and say where the next one is.
func (w *world) host(web, tokenPath, api string) *codeHost {
	h := &codeHost{w: w, web: web, api: api, codes: map[string]url.Values{}}
	w.provider.serve[web+tokenPath] = func(out http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		h.sent = r.PostForm
		status, answer := http.StatusOK, any(map[string]string{"access_token": hostToken, "token_type": "bearer", "scope": "x"})
		began := h.codes[r.PostForm.Get("code")]
		delete(h.codes, r.PostForm.Get("code"))
		switch {
		case h.token != nil:
			status, answer = h.token(r.PostForm)
		case began == nil || r.PostForm.Get("client_secret") != clientSecret || oauth.S256(r.PostForm.Get("code_verifier")) != began.Get("code_challenge"):
			answer = map[string]string{"error": "bad_verification_code", "error_description": "The code passed is incorrect or expired."}
		}
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(status)
		_ = json.NewEncoder(out).Encode(answer)
	}
	return h
}

// object makes the API answer with an object.
func (h *codeHost) object(path string, object any) {
	h.w.provider.serve[h.api+path] = func(out http.ResponseWriter, r *http.Request) {
		if h.denied || r.Header.Get("Authorization") != "Bearer "+hostToken {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(out).Encode(object)
	}
}

// list makes the API answer with a list, page by page.
func (h *codeHost) list(path string, entries []any) {
	h.w.provider.serve[h.api+path] = func(out http.ResponseWriter, r *http.Request) {
		if h.denied || r.Header.Get("Authorization") != "Bearer "+hostToken {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		page, size = max(page, 1), max(size, 1)
		from, to := min((page-1)*size, len(entries)), min(page*size, len(entries))
		if to < len(entries) {
			query := r.URL.Query()
			query.Set("page", strconv.Itoa(page+1))
			out.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next", <%s/x>; rel="last"`, h.w.provider.server.URL, r.URL.Path, query.Encode(), h.w.provider.server.URL))
		}
		_ = json.NewEncoder(out).Encode(append([]any{}, entries[from:to]...))
	}
}

// login is what a person does at the code host.
func (h *codeHost) login(location string) url.Values {
	at, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, h.w.provider.server.URL+h.web+"/") || at.Query().Get("code_challenge_method") != "S256" {
		h.w.t.Fatalf("the browser was sent to %s", location)
	}
	code := rand.Text()
	h.codes[code], h.asked = at.Query(), at.Query()
	return url.Values{"code": {code}, "state": {at.Query().Get("state")}}
}

// proveAt signs in at a connector, and returns the answer to the callback.
func (b *browser) proveAt(id string, login func(string) url.Values) *http.Response {
	b.w.t.Helper()
	answer := b.send(base+"/auth/"+id+"/login?"+asked().Encode(), nil)
	if answer.StatusCode != http.StatusSeeOther {
		b.w.t.Fatalf("start: %d %s", answer.StatusCode, text(b.w.t, answer))
	}
	return b.send(base+"/auth/"+id+"/callback?"+login(answer.Header.Get("Location")).Encode(), nil)
}

// admitted signs in at a connector, and returns the user.
func (w *world) admitted(id string, login func(string) url.Values) *model.User {
	w.t.Helper()
	b := w.browser()
	status, answer := w.fetch(b.confirm(b.proveAt(id, login), "allow").Get("code"), nil)
	name, _ := answer["user"].(string)
	if status != http.StatusOK {
		w.t.Fatalf("token: %d %v", status, answer)
	}
	return w.user(name)
}

// gitForge1 makes the first code host with one organization and a person in it, and its connector.
func (w *world) gitForge1() *codeHost {
	settings := &model.GitForge1Provider{ClientID: clientID, ClientSecret: clientSecret, RedirectURI: base + "/auth/gitforge1/callback"}
	w.config.Auth = &model.ConfigAuth{IdentityProviders: model.IdentityProviders{GitForge1: settings}}
	at := w.provider.server.URL
	w.env.Endpoints.GitForge1, w.env.Endpoints.GitForge1API, w.env.Endpoints.CAFile = at+"/forge1", at+"/forge1api", w.provider.caFile
	h := w.host("/forge1", "/login/oauth/access_token", "/forge1api")
	h.person("/user", 42, "ana")
	return h
}

// person makes the first code host answer for a person in the organization Acme, in 101 teams.
func (h *codeHost) person(path string, id int, login string) {
	h.object(path, map[string]any{"id": id, "login": login, "name": "Ana", "email": "public@example.com"})
	h.list(path+"/emails", []any{
		map[string]any{"email": "old@example.com", "primary": false, "verified": true},
		map[string]any{"email": "ana@example.com", "primary": true, "verified": true},
	})
	h.list(path+"/memberships/orgs", []any{
		map[string]any{"state": "active", "organization": map[string]any{"login": "Acme"}},
		map[string]any{"state": "pending", "organization": map[string]any{"login": "invited"}},
	})
	var teams []any
	for i := range 101 {
		teams = append(teams, map[string]any{"name": fmt.Sprint("Team ", i), "slug": fmt.Sprint("team-", i), "organization": map[string]any{"login": "Acme"}})
	}
	h.list(path+"/teams", append(teams, map[string]any{"name": "Ops", "slug": "ops", "organization": map[string]any{"login": "invited"}}))
}

// A person signs in at the first code host: the number of the account identifies them, and the teams of the organizations in the settings
// are their groups, of all pages. Source: Spec 2.7 (gitforge1).
func TestGitForge1(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.gitForge1()
	settings := w.config.Auth.GitForge1
	first := w.admitted(connector.GitForge1, h.login)
	if first.Name != "ana" || first.Spec.Subject != "42" || first.Spec.Connector != "gitforge1" || first.Spec.Email != "ana@example.com" || len(first.Spec.SSOGroups) > 0 {
		t.Errorf("%s %+v", first.Name, first.Spec)
	}
	// The name is given to another account, and the person gets a new one.
	h.person("/user", 43, "ana")
	if other := w.admitted(connector.GitForge1, h.login); other.Name == first.Name {
		t.Errorf("another account is %s", other.Name)
	}
	h.person("/user", 42, "anna")
	if renamed := w.admitted(connector.GitForge1, h.login); renamed.Name != first.Name {
		t.Errorf("the renamed account is %s", renamed.Name)
	}
	for _, row := range []struct {
		orgs   []model.GitForge1Org
		groups []string
		count  int
	}{
		{[]model.GitForge1Org{{Name: "acme"}}, []string{"acme:team-0", "acme:team-100"}, 101},
		{[]model.GitForge1Org{{Name: "other"}, {Name: "acme", Teams: []string{"Team 100", "team-7", "x"}}}, []string{"acme:Team 100", "acme:team-7"}, 2},
		{[]model.GitForge1Org{{Name: "acme", Teams: []string{"TEAM-7"}}}, []string{"acme:TEAM-7"}, 1},
	} {
		settings.Orgs = row.orgs
		user := w.admitted(connector.GitForge1, h.login)
		for _, group := range row.groups {
			if !slices.Contains(user.Spec.SSOGroups, group) {
				t.Errorf("%+v: %q is not in %q", row.orgs, group, user.Spec.SSOGroups)
			}
		}
		if len(user.Spec.SSOGroups) != row.count {
			t.Errorf("%+v: %d groups", row.orgs, len(user.Spec.SSOGroups))
		}
	}
}

// Addresses that the first code host has not verified are not shown, and those of the enterprise-hosted variant are never verified.
func TestGitForge1Email(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.gitForge1()
	h.list("/user/emails", []any{map[string]any{"email": "ana@example.com", "primary": true, "verified": false}})
	if user := w.admitted(connector.GitForge1, h.login); user.Spec.Email != "" {
		t.Errorf("%+v", user.Spec)
	}
	settings := w.config.Auth.GitForge1
	settings.HostName, settings.RootCA = strings.TrimPrefix(w.provider.server.URL, "https://"), w.provider.caFile
	enterprise := w.host("", "/login/oauth/access_token", "/api/v3")
	enterprise.person("/user", 44, "eve")
	if user := w.admitted(connector.GitForge1, enterprise.login); user.Spec.Email != "ana@example.com" || user.Spec.Subject != "44" {
		t.Errorf("%+v", user.Spec)
	}
	for _, key := range w.stored("ownedaccesskeys") {
		if strings.Contains(string(key.Object), `"userId":"44"`) && strings.Contains(string(key.Object), `"emailVerified":true`) {
			t.Errorf("the address is verified: %s", key.Object)
		}
	}
	settings.RootCA = ""
	if answer := w.browser().proveAt(connector.GitForge1, enterprise.login); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a certificate that nobody vouches for: %d", answer.StatusCode)
	}
}

// gitForge2 makes the second code host with a person, and its connector.
func (w *world) gitForge2() *codeHost {
	settings := &model.GitForge2Provider{
		ClientID: clientID, ClientSecret: clientSecret, RedirectURI: base + "/auth/gitforge2/callback", BaseURL: w.provider.server.URL + "/forge2/",
	}
	w.config.Auth = &model.ConfigAuth{IdentityProviders: model.IdentityProviders{GitForge2: settings}}
	w.env.Endpoints.CAFile = w.provider.caFile
	h := w.host("/forge2", "/oauth/token", "/forge2")
	h.account("active", "2020-01-01T00:00:00Z")
	h.object("/oauth/userinfo", map[string]any{"sub": "7", "groups": []string{"acme", "acme/dev", "acme/ops"}})
	return h
}

// account makes the second code host answer for a person.
func (h *codeHost) account(state string, confirmed any) {
	h.object("/api/v4/user", map[string]any{
		"id": 7, "username": "ana", "name": "Ana", "state": state, "email": "ana@example.com", "confirmed_at": confirmed,
	})
}

// A person signs in at the second code host. Source: Spec 2.7 (gitforge2).
func TestGitForge2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.gitForge2()
	user := w.admitted(connector.GitForge2, h.login)
	if user.Name != "ana" || user.Spec.Subject != "7" || user.Spec.Email != "ana@example.com" || !slices.Equal(user.Spec.SSOGroups, []string{"acme", "acme/dev", "acme/ops"}) {
		t.Errorf("%s %+v", user.Name, user.Spec)
	}
	w.config.Auth.GitForge2.Groups = []string{"acme/dev", "other"}
	h.account("active", nil)
	if user = w.admitted(connector.GitForge2, h.login); !slices.Equal(user.Spec.SSOGroups, []string{"acme/dev"}) || user.Spec.Email != "" {
		t.Errorf("%+v", user.Spec)
	}
	// A server whose UserInfo names no groups lists them in its API.
	h.object("/oauth/userinfo", map[string]any{"sub": "7"})
	var groups []any
	for i := range 101 {
		groups = append(groups, map[string]any{"full_path": fmt.Sprint("acme/", i)})
	}
	h.list("/api/v4/groups", groups)
	w.config.Auth.GitForge2.Groups = []string{"acme/100"}
	if user = w.admitted(connector.GitForge2, h.login); !slices.Equal(user.Spec.SSOGroups, []string{"acme/100"}) {
		t.Errorf("%+v", user.Spec)
	}
}

// Whatever a code host answers instead of who somebody is: nobody is signed in, and nothing is stored.
func TestCodeHostRefused(t *testing.T) {
	t.Parallel()
	answers := func(path string, handler http.HandlerFunc) func(*codeHost) {
		return func(h *codeHost) { h.w.provider.serve[path] = handler }
	}
	garbage := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
	huge := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"` + strings.Repeat("x", 2<<20) + `"}`))
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
	}
	never := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	fails := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	foreign := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `<https://evil.example/user/teams?page=2>; rel="next"`)
		_, _ = w.Write([]byte("[]"))
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "<https://"+r.Host+r.URL.Path+`?page=2>; rel="next"`)
		_, _ = w.Write([]byte("[]"))
	}
	orgs := func(orgs ...model.GitForge1Org) func(*codeHost) {
		return func(h *codeHost) { h.w.config.Auth.GitForge1.Orgs = orgs }
	}
	both := func(changes ...func(*codeHost)) func(*codeHost) {
		return func(h *codeHost) {
			for _, change := range changes {
				change(h)
			}
		}
	}
	says := func(status int, answer any) func(*codeHost) {
		return func(h *codeHost) { h.token = func(url.Values) (int, any) { return status, answer } }
	}
	acme := orgs(model.GitForge1Org{Name: "acme"})
	for about, row := range map[string]struct {
		kind   string
		change func(*codeHost)
		status int
	}{
		"not in the organization":          {connector.GitForge1, orgs(model.GitForge1Org{Name: "other"}), 403},
		"invited alone":                    {connector.GitForge1, orgs(model.GitForge1Org{Name: "invited"}), 403},
		"in none of the teams":             {connector.GitForge1, orgs(model.GitForge1Org{Name: "acme", Teams: []string{"x"}}), 403},
		"in a team elsewhere":              {connector.GitForge1, orgs(model.GitForge1Org{Name: "acme", Teams: []string{"ops"}}), 403},
		"no number":                        {connector.GitForge1, func(h *codeHost) { h.object("/user", map[string]any{"login": "ana"}) }, 400},
		"a number as text":                 {connector.GitForge1, func(h *codeHost) { h.object("/user", map[string]any{"id": "42"}) }, 400},
		"a refused token":                  {connector.GitForge1, func(h *codeHost) { h.denied = true }, 400},
		"an error as 200":                  {connector.GitForge1, says(200, map[string]string{"error": "bad_verification_code"}), 400},
		"a wrong client":                   {connector.GitForge1, says(200, map[string]string{"error": "incorrect_client_credentials"}), 400},
		"a MAC token":                      {connector.GitForge1, says(200, map[string]string{"access_token": hostToken, "token_type": "mac"}), 400},
		"a broken token endpoint":          {connector.GitForge1, says(502, "x"), 503},
		"garbage as token":                 {connector.GitForge1, answers("/forge1/login/oauth/access_token", garbage), 400},
		"a huge token":                     {connector.GitForge1, answers("/forge1/login/oauth/access_token", huge), 400},
		"a redirect for the token":         {connector.GitForge1, answers("/forge1/login/oauth/access_token", elsewhere), 400},
		"no token":                         {connector.GitForge1, answers("/forge1/login/oauth/access_token", never), 503},
		"garbage as account":               {connector.GitForge1, answers("/forge1api/user", garbage), 400},
		"a huge account":                   {connector.GitForge1, answers("/forge1api/user", huge), 400},
		"a redirect for the account":       {connector.GitForge1, answers("/forge1api/user", elsewhere), 400},
		"no account":                       {connector.GitForge1, answers("/forge1api/user", never), 503},
		"a suspended account":              {connector.GitForge1, answers("/forge1api/user", forbids("X-RateLimit-Remaining", "59")), 400},
		"too many requests, said by 403":   {connector.GitForge1, answers("/forge1api/user", forbids("X-RateLimit-Remaining", "0")), 503},
		"no addresses":                     {connector.GitForge1, answers("/forge1api/user/emails", fails), 503},
		"no memberships":                   {connector.GitForge1, both(acme, answers("/forge1api/user/memberships/orgs", fails)), 503},
		"no teams":                         {connector.GitForge1, both(acme, answers("/forge1api/user/teams", fails)), 503},
		"a page at another address":        {connector.GitForge1, both(acme, answers("/forge1api/user/teams", foreign)), 400},
		"endless pages":                    {connector.GitForge1, both(acme, answers("/forge1api/user/teams", endless)), 400},
		"a blocked account":                {connector.GitForge2, func(h *codeHost) { h.account("blocked", "2020-01-01T00:00:00Z") }, 403},
		"an account without state":         {connector.GitForge2, func(h *codeHost) { h.account("", nil) }, 403},
		"in none of the groups":            {connector.GitForge2, func(h *codeHost) { h.w.config.Auth.GitForge2.Groups = []string{"other"} }, 403},
		"a group by the end of its path":   {connector.GitForge2, func(h *codeHost) { h.w.config.Auth.GitForge2.Groups = []string{"dev"} }, 403},
		"UserInfo of another":              {connector.GitForge2, func(h *codeHost) { h.object("/oauth/userinfo", map[string]any{"sub": "8"}) }, 400},
		"garbage as UserInfo":              {connector.GitForge2, answers("/forge2/oauth/userinfo", garbage), 400},
		"no UserInfo":                      {connector.GitForge2, answers("/forge2/oauth/userinfo", never), 503},
		"a redirect for the second token":  {connector.GitForge2, answers("/forge2/oauth/token", elsewhere), 400},
		"a huge answer of the second host": {connector.GitForge2, answers("/forge2/api/v4/user", huge), 400},
		"no groups anywhere": {connector.GitForge2, func(h *codeHost) {
			h.w.config.Auth.GitForge2.Groups = []string{"acme"}
			h.object("/oauth/userinfo", map[string]any{"sub": "7"})
			h.w.provider.serve["/forge2/api/v4/groups"] = fails
		}, 503},
		"an address without TLS": {connector.GitForge2, func(h *codeHost) {
			h.w.config.Auth.GitForge2.BaseURL = "http://" + h.w.provider.server.Listener.Addr().String()
		}, 0},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			prepare := w.gitForge1
			if row.kind == connector.GitForge2 {
				prepare = w.gitForge2
			}
			h := prepare()
			row.change(h)
			if row.status == 0 {
				w.wantRefused(about, w.browser().send(base+"/auth/"+row.kind+"/login?"+asked().Encode(), nil), 400)
				return
			}
			w.wantRefused(about, w.browser().proveAt(row.kind, h.login), row.status)
		})
	}
}

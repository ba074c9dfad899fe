package signin_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/revalidate"
)

const (
	// userToken is the token of the person at the cluster manager, and ownToken that of the platform.
	userToken = "token-x7k2p:canary-of-the-person"
	ownToken  = "token-own:canary-of-the-platform"
)

// clusterManager is a cluster manager on the server of the provider of a world.
type clusterManager struct {
	w *world
	// user is the person. They have two groups, and know of one more.
	user map[string]any
	// asked are the queries for users, by token.
	asked map[string]url.Values
}

// clusterManager makes a cluster manager with one person, and its connector.
func (w *world) clusterManager() *clusterManager {
	m := &clusterManager{w: w, asked: map[string]url.Values{}, user: map[string]any{
		"id": "u-b4qkhsnliz", "username": "ana", "name": "Ana", "enabled": true, "principalIds": []string{"local://u-b4qkhsnliz"},
	}}
	w.config.PlatformHost = strings.TrimPrefix(base, "https://")
	w.config.Auth = &model.ConfigAuth{IdentityProviders: model.IdentityProviders{ClusterManager: &model.ClusterManagerProvider{
		Host: w.provider.server.Listener.Addr().String(), BearerToken: ownToken,
	}}}
	w.env.Endpoints.CAFile = w.provider.caFile
	w.provider.serve["/v3/users"] = func(out http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		m.asked[token] = r.URL.Query()
		switch found := map[string]any{}; {
		case token == userToken && r.URL.Query().Get("me") == "true":
			for name, value := range m.user {
				found[name] = value
			}
			found["me"] = true
			m.list(out, found)
		case token == ownToken && r.URL.Query().Get("id") == m.user["id"]:
			m.list(out, m.user)
		case token == ownToken:
			m.list(out)
		default:
			out.WriteHeader(http.StatusUnauthorized)
		}
	}
	w.provider.serve["/v3/principals"] = func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+userToken {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		m.list(out,
			map[string]any{"id": "local://u-b4qkhsnliz", "principalType": "user", "me": true},
			map[string]any{"id": "forge_team://12", "principalType": "group", "memberOf": true, "name": "platform:admins"},
			map[string]any{"id": "forge_org://7", "principalType": "group", "memberOf": true},
			map[string]any{"id": "forge_org://8", "principalType": "group", "memberOf": false})
	}
	return m
}

func (*clusterManager) list(out http.ResponseWriter, objects ...any) {
	_ = json.NewEncoder(out).Encode(map[string]any{"type": "collection", "data": append([]any{}, objects...), "pagination": map[string]any{"limit": 1000}})
}

// enterToken opens the page that asks for a token, and returns the answer to a form with one.
func (b *browser) enterToken(token string, change func(url.Values)) *http.Response {
	b.w.t.Helper()
	begun := b.send(base+"/auth/clustermanager/login?"+asked().Encode(), nil)
	location := begun.Header.Get("Location")
	at, err := url.Parse(location)
	if err != nil || begun.StatusCode != http.StatusSeeOther || !strings.HasPrefix(location, base+"/auth/clustermanager/callback?") {
		b.w.t.Fatalf("start: %d %s %s", begun.StatusCode, location, text(b.w.t, begun))
	}
	page := b.send(location, nil)
	if body := text(b.w.t, page); page.StatusCode != http.StatusOK || !strings.Contains(body, `action="/auth/clustermanager/callback"`) || !strings.Contains(body, `name="token"`) {
		b.w.t.Fatalf("page: %d %s", page.StatusCode, body)
	}
	form := url.Values{"state": {at.Query().Get("state")}, provider.TokenField: {token}, "action": {"login"}}
	if change != nil {
		change(form)
	}
	return b.send(base+"/auth/clustermanager/callback", form, "Sec-Fetch-Site", "same-origin")
}

// managed signs the person in with their token.
func (w *world) managed() kept {
	w.t.Helper()
	b := w.browser()
	status, answer := w.fetch(b.confirm(b.enterToken("  "+userToken+"\n", nil), "allow").Get("code"), nil)
	key, _ := answer["access_token"].(string)
	name, _ := answer["access_key"].(string)
	if status != http.StatusOK {
		w.t.Fatalf("token: %d %v", status, answer)
	}
	return kept{w, secret.String(key), name}
}

// A person signs in with their token of a cluster manager. It identifies them by their ID, their groups are those of the cluster manager,
// and nobody keeps the token. Source: Spec 2.7 (clustermanager); ADR-0035.
func TestClusterManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.clusterManager()
	level := int32(4)
	w.config.Audit = &model.ConfigAudit{Enabled: true, Path: "-", Level: &level}
	var events processtest.Log
	trail := audit.NewTrail(audit.Options{Config: w.env.Config, Openers: []audit.Opener{audit.Output(&events)}, Log: w.env.Log, Flush: true})
	t.Cleanup(func() { trail.Close(t.Context()) })
	w.server.Audit = trail
	k := w.managed()
	found := w.user("ana")
	if found.Spec.Subject != "u-b4qkhsnliz" || found.Spec.Connector != "clustermanager" || found.Spec.DisplayName != "Ana" ||
		!slices.Equal(found.Spec.SSOGroups, []string{"forge_org://7", "forge_team://12"}) {
		t.Errorf("the user is %+v", found.Spec)
	}
	if !k.works() || m.asked[userToken].Get("me") != "true" {
		t.Errorf("the key works: %v; asked was %v", k.works(), m.asked)
	}
	// Somebody else with the name later is somebody else here.
	m.user["id"] = "u-other"
	w.managed()
	if again := w.user("ana"); again.UID != found.UID || again.Spec.Subject != "u-b4qkhsnliz" {
		t.Errorf("the user is %+v", again.Spec)
	}
	kept := w.log.String() + w.everything() + events.String()
	if !strings.Contains(kept, "signin-outcome") || strings.Contains(kept, "canary-of-the") {
		t.Errorf("the log, the state or the audit has a token, or there is no event")
	}
}

// Whoever is disabled or gone at the cluster manager loses their credentials. What it does not say changes nothing. Source: ADR-0035.
func TestRenewedAtClusterManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.clusterManager()
	var k kept
	next := func(want revalidate.Counts, works bool) {
		t.Helper()
		w.clock.forward(13 * time.Hour)
		if done := w.run(); done != want || k.works() != works {
			t.Errorf("%+v, %v; want %+v, %v", done, k.works(), want, works)
		}
	}
	long := int64(0)
	w.config.Auth.LoginAccessKeyTTLSeconds = &long
	k = w.managed()
	next(revalidate.Counts{Kept: 1}, true)
	if groups := w.user("ana").Spec.SSOGroups; len(groups) != 2 || m.asked[ownToken].Get("id") != "u-b4qkhsnliz" {
		t.Errorf("the groups are %q; asked was %v", groups, m.asked)
	}
	// A token of the platform that is refused says nothing of the person.
	users := w.provider.serve["/v3/users"]
	w.provider.serve["/v3/users"] = func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusUnauthorized) }
	next(revalidate.Counts{Unanswered: 1}, true)
	w.provider.serve["/v3/users"] = func(out http.ResponseWriter, _ *http.Request) {
		_, _ = out.Write([]byte(`{"data":[],"pagination":{"next":"x"}}`))
	}
	next(revalidate.Counts{Unanswered: 1}, false) // a day without an answer
	w.provider.serve["/v3/users"] = users
	next(revalidate.Counts{Kept: 1}, true)
	m.user["enabled"] = false
	next(revalidate.Counts{Ended: 1}, false)

	m.user["enabled"] = true
	k = w.managed()
	m.user["id"] = "u-another"
	next(revalidate.Counts{Ended: 1}, false)

	// Without a token of the platform, nobody asks.
	w.config.Auth.ClusterManager.BearerToken = ""
	k = w.managed()
	m.user["id"] = "u-yet-another"
	next(revalidate.Counts{}, true)
}

// A cluster manager whose certificate nobody vouches for signs people in only if the configuration says so. Source: Spec 2.7 (insecure).
func TestClusterManagerInsecure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clusterManager()
	w.env.Endpoints.CAFile = ""
	w.wantRefused("unknown certificate", w.browser().enterToken(userToken, nil), 503)
	w.config.Auth.ClusterManager.Insecure = true
	w.managed()
}

func TestClusterManagerRefused(t *testing.T) {
	t.Parallel()
	answers := func(path string, handler http.HandlerFunc) func(*clusterManager) {
		return func(m *clusterManager) { m.w.provider.serve[path] = handler }
	}
	says := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	huge := says(`{"data":[{"id":"` + strings.Repeat("x", 2<<20) + `","me":true}]}`)
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
	}
	never := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	fails := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	for about, row := range map[string]struct {
		token  string
		change func(*clusterManager)
		status int
	}{
		"a wrong token":             {"token-x:wrong", nil, 400},
		"no token":                  {"", nil, 400},
		"a token of two lines":      {userToken + "\nHost: evil.example", nil, 400},
		"a huge token":              {strings.Repeat("x", 1025), nil, 400},
		"a disabled user":           {userToken, func(m *clusterManager) { m.user["enabled"] = false }, 403},
		"a user without an ID":      {userToken, func(m *clusterManager) { m.user["id"] = "" }, 400},
		"everybody":                 {userToken, answers("/v3/users", says(`{"data":[{"id":"u-1","me":true},{"id":"u-2"}]}`)), 400},
		"somebody else":             {userToken, answers("/v3/users", says(`{"data":[{"id":"u-2"}]}`)), 400},
		"nobody":                    {userToken, answers("/v3/users", says(`{"data":[]}`)), 400},
		"garbage":                   {userToken, answers("/v3/users", says("<html>")), 400},
		"a huge answer":             {userToken, answers("/v3/users", huge), 400},
		"a redirect":                {userToken, answers("/v3/users", elsewhere), 400},
		"no answer":                 {userToken, answers("/v3/users", never), 503},
		"a broken cluster manager":  {userToken, answers("/v3/users", fails), 503},
		"no groups":                 {userToken, answers("/v3/principals", fails), 503},
		"groups on many pages":      {userToken, answers("/v3/principals", says(`{"data":[],"pagination":{"next":"x"}}`)), 400},
		"a redirect for the groups": {userToken, answers("/v3/principals", elsewhere), 400},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.clusterManager()
			if row.change != nil {
				row.change(m)
			}
			w.wantRefused(about, w.browser().enterToken(row.token, nil), row.status)
		})
	}
}

// The form with the token belongs to the browser that began, and to the connector at which it began.
func TestClusterManagerForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clusterManager()
	b := w.browser()
	w.wantRefused("another state", b.enterToken(userToken, func(form url.Values) { form.Set("state", strings.Repeat("x", 43)) }), 400)
	began := w.browser().send(base+"/auth/clustermanager/login?"+asked().Encode(), nil).Header.Get("Location")
	w.wantRefused("the page of another browser", w.browser().send(began, nil), 400)
	// A token in an address is in histories and logs: the page asks for it.
	begun := b.send(base+"/auth/clustermanager/login?"+asked().Encode(), nil).Header.Get("Location")
	if answer := b.send(begun+"&token="+url.QueryEscape(userToken), nil); answer.StatusCode != http.StatusOK || answer.Header.Get("Location") != "" {
		t.Errorf("%d %s", answer.StatusCode, answer.Header.Get("Location"))
	}
	// Settings that have changed ask somebody else.
	w.config.Auth.ClusterManager.Host = "127.0.0.1:1"
	w.wantRefused("other settings", b.send(begun, nil), 400)
	// Without the address of the platform, nobody can sign in.
	w.config.PlatformHost = ""
	w.wantRefused("no address", b.send(base+"/auth/clustermanager/login?"+asked().Encode(), nil), 404)
}

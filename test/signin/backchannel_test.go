package signin_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/functions/approvedevice"
	"management.platform.sh/functions/confirmlogin"
	"management.platform.sh/functions/endlogin"
	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/requestdevice"
	"management.platform.sh/functions/revokecredentials"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/revalidate"
	"management.platform.sh/shared/signin/sessions"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/test/signin/providertest"
)

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// notified returns a platform that providers tell about ended sessions.
func notified(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.handler = w.server.Mount(
		startlogin.Function, finishlogin.Function, confirmlogin.Function, exchangetoken.Function, endlogin.Function, requestdevice.Function,
		approvedevice.Function, revokecredentials.Function)
	w.provider.person["sid"] = "session-1"
	return w
}

// logoutHeader is the header of a logout token.
func logoutHeader() map[string]any {
	return map[string]any{"alg": "ES256", "kid": "1", "typ": "logout+jwt"}
}

// logoutClaims are the claims of a logout token about a session.
func (p *fakeProvider) logoutClaims(sid string) map[string]any {
	return map[string]any{
		"iss": p.server.URL, "aud": clientID, "sub": "1001", "sid": sid, "jti": rand.Text(), "iat": p.now().Unix(), "exp": p.now().Add(2 * time.Minute).Unix(),
		"events": map[string]any{logoutEvent: map[string]any{}},
	}
}

// logout returns a logout token about a session.
func (p *fakeProvider) logout(sid string) string { return p.sign(logoutHeader(), p.logoutClaims(sid)) }

// tell sends logout tokens as a provider does, and returns the status and the error.
func (w *world) tell(connector string, tokens ...string) (int, string) {
	w.t.Helper()
	answer := w.browser().send(base+"/auth/"+connector+"/logout", url.Values{"logout_token": tokens}, "Accept", "*/*")
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	body := text(w.t, answer)
	if err := json.Unmarshal([]byte(body), &said); err != nil || answer.Header.Get("Content-Type") != "application/json" {
		w.t.Errorf("the answer is %q, %v", body, err)
	}
	if answer.StatusCode == http.StatusBadRequest && said.Description == "" {
		w.t.Errorf("the refusal says nothing: %s", body)
	}
	return answer.StatusCode, said.Error
}

// own makes a key of ana for a program of theirs.
func (w *world) own() kept {
	w.t.Helper()
	return w.ownOf("ana")
}

// ownOf makes a key of a user for a program of theirs.
func (w *world) ownOf(name string) kept {
	w.t.Helper()
	made, err := resource.Create(w.t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: &model.OwnedAccessKey{
		Spec: model.OwnedAccessKeySpec{User: name},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return kept{w, secret.String(made.Object.Spec.Key), made.Object.Name}
}

// A provider that ends a session ends the keys of that session at the next request, and one that ends all sessions of a person ends all
// their keys of sign-ins there. Other keys stay, and the person may sign in again.
// Source: OpenID Connect Back-Channel Logout 1.0, 2.4 to 2.8; ADR-0042.
func TestBackChannelLogout(t *testing.T) {
	t.Parallel()
	w := notified(t)
	var events processtest.Log
	w.audited(&events)
	one := w.keep("oidc", w.provider.login)
	w.provider.person["sid"] = "session-2"
	two := w.keep("oidc", w.provider.login)
	own := w.own()
	delete(w.provider.person, "sid")
	three := w.keep("oidc", w.provider.login)
	w.provider.person = map[string]any{"sub": "1002", "preferred_username": "ben", "sid": "session-3"}
	ben := w.keep("oidc", w.provider.login)
	for _, record := range append(w.stored(sessions.Resource), w.stored(logins.Resource)...) {
		if found := fmt.Sprint(string(record.Object), record.References); strings.Contains(found, "session-") {
			t.Errorf("the state has the name of a session: %s", found)
		}
	}
	want := func(about string, works ...bool) {
		t.Helper()
		if got := []bool{one.works(), two.works(), three.works(), own.works(), ben.works()}; !slices.Equal(got, works) {
			t.Errorf("%s: %v, want %v", about, got, works)
		}
	}
	for about, change := range map[string]func(map[string]any){
		"a session that is not known":         func(c map[string]any) { c["sid"] = "session-9" },
		"the session of somebody else":        func(c map[string]any) { c["sub"] = "1002" },
		"a person who has never signed in":    func(c map[string]any) { delete(c, "sid"); c["sub"] = "1003" },
		"a session with the name of a person": func(c map[string]any) { delete(c, "sub"); c["sid"] = "1001" },
	} {
		claims := w.provider.logoutClaims("session-1")
		change(claims)
		if status, _ := w.tell("oidc", w.provider.sign(logoutHeader(), claims)); status != http.StatusOK {
			t.Errorf("%s: %d", about, status)
		}
		want(about, true, true, true, true, true)
	}
	token := w.provider.logout("session-1")
	if status, _ := w.tell("oidc", token); status != http.StatusOK {
		t.Errorf("a session: %d", status)
	}
	want("a session", false, true, true, true, true)
	if events := events.String(); !strings.Contains(events, `signin-ended-keys":"`+one.name+`"`) || !strings.Contains(events, `signin-user":"ana"`) ||
		strings.Contains(events+w.log.String(), token) || strings.Contains(events+w.log.String(), "session-1") {
		t.Errorf("the audit is %s", events)
	}
	everywhere := func() {
		claims := w.provider.logoutClaims("")
		delete(claims, "sid")
		if status, _ := w.tell("oidc", w.provider.sign(map[string]any{"alg": "ES256", "kid": "1"}, claims)); status != http.StatusOK {
			t.Errorf("a person: %d", status)
		}
	}
	everywhere()
	want("a person", false, false, false, true, true)
	w.provider.person = map[string]any{"sub": "1001", "preferred_username": "ana", "sid": "session-1"}
	again := w.keep("oidc", w.provider.login)
	if !again.works() {
		t.Error("the next sign-in gives no key")
	}
	everywhere()
	if again.works() {
		t.Error("the key of the next sign-in works")
	}
	// The sessions of ended keys go with the next run.
	if done := w.run(); done.Forgotten != 4 || len(w.stored(sessions.Resource)) != 1 {
		t.Errorf("%+v, %d sessions", done, len(w.stored(sessions.Resource)))
	}
}

// Older servers send logout tokens that do not say when they expire. Such a token counts for two minutes.
func TestLogoutTokenWithoutExpiry(t *testing.T) {
	t.Parallel()
	w := notified(t)
	k := w.keep("oidc", w.provider.login)
	claims := w.provider.logoutClaims("session-1")
	delete(claims, "exp")
	claims["iat"] = w.clock.Now().Add(-time.Minute).Unix()
	if status, code := w.tell("oidc", w.provider.sign(logoutHeader(), claims)); status != http.StatusOK || k.works() {
		t.Errorf("%d %s, and the key works: %v", status, code, k.works())
	}
}

// audited lets a log have the events of the world.
func (w *world) audited(events *processtest.Log) {
	level := int32(4)
	w.config.Audit = &model.ConfigAudit{Enabled: true, Path: "-", Level: &level}
	trail := audit.NewTrail(audit.Options{Config: w.env.Config, Openers: []audit.Opener{audit.Output(events)}, Log: w.env.Log, Flush: true})
	w.t.Cleanup(func() { trail.Close(context.WithoutCancel(w.t.Context())) })
	w.server.Audit = trail
}

// A key within its grace period works, and ends with the session.
func TestBackChannelLogoutEndsGrace(t *testing.T) {
	t.Parallel()
	w := notified(t)
	k, grace := w.keep("oidc", w.provider.login), int64(60)
	_, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: k.name, GracePeriodSeconds: &grace})
	if err != nil || !k.works() {
		t.Fatalf("%v, %v", err, k.works())
	}
	if status, _ := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusOK || k.works() {
		t.Errorf("%d, %v", status, k.works())
	}
}

// Everything else that somebody can send: nothing ends, and the answer is 400 with an error. Nobody gets in by a logout token either.
// Source: OpenID Connect Back-Channel Logout 1.0, 2.6 and 2.8; ADR-0042.
func TestLogoutTokensRefused(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) func(*world) string {
		return func(w *world) string {
			claims := w.provider.logoutClaims("session-1")
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
			return w.provider.sign(logoutHeader(), claims)
		}
	}
	header := func(name string, value any) func(*world) string {
		return func(w *world) string {
			said := logoutHeader()
			said[name] = value
			return w.provider.sign(said, w.provider.logoutClaims("session-1"))
		}
	}
	at := func(name string, by time.Duration) func(*world) string {
		return func(w *world) string { return claim(name, w.clock.Now().Add(by).Unix())(w) }
	}
	tokens := map[string]func(*world) string{
		"nothing":                   func(*world) string { return "" },
		"garbage":                   func(*world) string { return "x" },
		"three parts of garbage":    func(*world) string { return "x.y.z" },
		"long garbage":              func(*world) string { return strings.Repeat("x.", 30<<10) },
		"an ID token":               func(w *world) string { return w.provider.idToken },
		"an ID token with an event": claim("nonce", "x"),
		"a nonce that is empty":     claim("nonce", ""),
		"a nonce that is null":      claim("nonce", json.RawMessage("null")),
		"an access token":           header("typ", "at+jwt"),
		"another signature":         func(w *world) string { raw := w.provider.logout("session-1"); return raw[:len(raw)-8] + "AAAAAAAA" },
		"a critical header":         header("crit", []string{"x"}),
		"another issuer":            claim("iss", "https://other.example"),
		"no issuer":                 claim("iss", nil),
		"another audience":          claim("aud", "other"),
		"no audience":               claim("aud", nil),
		"two audiences":             claim("aud", []string{clientID, "other"}),
		"expired":                   at("exp", -time.Second),
		"no end, issued three minutes ago": func(w *world) string {
			claims := w.provider.logoutClaims("session-1")
			delete(claims, "exp")
			claims["iat"] = w.clock.Now().Add(-3 * time.Minute).Unix()
			return w.provider.sign(logoutHeader(), claims)
		},
		"issued in the future":       at("iat", 2*time.Minute),
		"issued long ago":            at("iat", -time.Hour),
		"no time":                    claim("iat", nil),
		"no ID":                      claim("jti", nil),
		"no events":                  claim("events", nil),
		"another event":              claim("events", map[string]any{"http://schemas.openid.net/event/other": map[string]any{}}),
		"an event that is null":      claim("events", map[string]any{logoutEvent: nil}),
		"an event that is a text":    claim("events", map[string]any{logoutEvent: "{}"}),
		"events in a list":           claim("events", []string{logoutEvent}),
		"a session that is a number": claim("sid", 1),
		"neither session nor person": func(w *world) string {
			claims := w.provider.logoutClaims("")
			delete(claims, "sub")
			delete(claims, "sid")
			return w.provider.sign(logoutHeader(), claims)
		},
		"the token of another client": func(w *world) string {
			claims := w.provider.logoutClaims("session-1")
			claims["aud"] = "platform-2"
			return w.provider.sign(logoutHeader(), claims)
		},
	}
	for about := range newForger(notified(t)).forgeries() {
		tokens[about] = func(w *world) string { return newForger(w).forgeries()[about](payload(w.provider.logout("session-1"))) }
	}
	for about, token := range tokens {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := notified(t)
			var events processtest.Log
			w.audited(&events)
			k := w.keep("oidc", w.provider.login)
			token := token(w)
			if status, code := w.tell("oidc", token); status != http.StatusBadRequest || code != "invalid_request" || !k.works() {
				t.Errorf("%d %s, and the key works: %v", status, code, k.works())
			}
			last := events.String()[strings.LastIndex(events.String(), `"/auth/oidc/logout"`):]
			if !strings.Contains(last, `signin-outcome":"`) || strings.Contains(last, `signin-outcome":"ended"`) || len(token) > 10 && strings.Contains(events.String()+w.log.String(), token) {
				t.Errorf("the audit says %s", last)
			}
			if !strings.Contains(w.log.String(), `"cause":"signin-connector: oidc, signin-detail: `) {
				t.Errorf("the log has no cause: %s", w.log.String())
			}
			// What is wrong with the token has refused it, and nothing else.
			if status, _ := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusOK || k.works() {
				t.Errorf("a good token: %d, and the key works: %v", status, k.works())
			}
		})
	}
}

// Requests that are no notices, and connectors that send none.
func TestLogoutRequestsRefused(t *testing.T) {
	t.Parallel()
	w := notified(t)
	w.config.Auth.Connectors = []model.AuthConnector{
		{ID: "second", IdentityProviders: model.IdentityProviders{OIDC: &model.OIDCProvider{
			IssuerURL: w.provider.server.URL, ClientID: "platform-2", ClientSecret: clientSecret, RedirectURI: base + "/auth/second/callback", CAFile: w.provider.caFile,
		}}},
	}
	w.config.Auth.GitForge1 = &model.GitForge1Provider{ClientID: clientID, ClientSecret: clientSecret, RedirectURI: base + "/auth/gitforge1/callback"}
	k := w.keep("oidc", w.provider.login)
	send := func(path string, form url.Values, header ...string) *http.Response {
		return w.browser().send(base+path, form, append([]string{"Accept", "*/*"}, header...)...)
	}
	token := func() url.Values { return url.Values{"logout_token": {w.provider.logout("session-1")}} }
	for about, row := range map[string]struct {
		answer *http.Response
		status int
	}{
		"no form":                       {send("/auth/oidc/logout", token(), "Content-Type", "application/json"), http.StatusUnsupportedMediaType},
		"a form of another site":        {send("/auth/oidc/logout", token(), "Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"a huge form":                   {send("/auth/oidc/logout", url.Values{"logout_token": {strings.Repeat("x", 70<<10)}}), http.StatusRequestEntityTooLarge},
		"two tokens":                    {send("/auth/oidc/logout", url.Values{"logout_token": {w.provider.logout("session-1"), w.provider.logout("session-1")}}), http.StatusBadRequest},
		"no connector":                  {send("/auth/none/logout", token()), http.StatusNotFound},
		"a connector of another kind":   {send("/auth/gitforge1/logout", token()), http.StatusNotFound},
		"a connector of another client": {send("/auth/second/logout", token()), http.StatusBadRequest},
		"a token in the address":        {send("/auth/oidc/logout?"+token().Encode(), url.Values{}), http.StatusBadRequest},
	} {
		if row.answer.StatusCode != row.status || !k.works() {
			t.Errorf("%s: %d %s, and the key works: %v", about, row.answer.StatusCode, text(t, row.answer), k.works())
		}
	}
	// A session of another connector is another session, whatever its name is, and a person there is another person.
	for _, without := range []string{"", "sub", "sid"} {
		claims := w.provider.logoutClaims("session-1")
		claims["aud"] = "platform-2"
		delete(claims, without)
		if status, _ := w.tell("second", w.provider.sign(logoutHeader(), claims)); status != http.StatusOK || !k.works() {
			t.Errorf("of another connector, without %q: %d, and the key works: %v", without, status, k.works())
		}
	}
}

// A logout token counts once, also at the same moment. Its use is forgotten when it could not be accepted any more.
func TestLogoutTokenOnce(t *testing.T) {
	t.Parallel()
	w := notified(t)
	k := w.keep("oidc", w.provider.login)
	token := w.provider.logout("session-1")
	var accepted atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if status, _ := w.tell("oidc", token); status == http.StatusOK {
				accepted.Add(1)
			} else if status != http.StatusBadRequest {
				t.Errorf("%d", status)
			}
		})
	}
	group.Wait()
	if accepted.Load() != 1 || k.works() {
		t.Errorf("accepted %d times, and the key works: %v", accepted.Load(), k.works())
	}
	// The same session signs in again: a replay does not end the key.
	again := w.keep("oidc", w.provider.login)
	if status, code := w.tell("oidc", token); status != http.StatusBadRequest || code != "invalid_request" || !again.works() {
		t.Errorf("a replay: %d %s, and the key works: %v", status, code, again.works())
	}
	for _, record := range w.stored(logins.Resource) {
		if age := record.Expires.Sub(record.Created); record.Owner == "logout" && age <= provider.MaxLogoutTokenAge+time.Minute {
			t.Errorf("the use is forgotten after %s", age)
		}
	}
}

// failing is a state that cannot list while a switch is on.
type failing struct {
	store.Store
	on *atomic.Bool
}

func (f failing) List(ctx context.Context, query store.Query) (store.Page, error) {
	if f.on.Load() {
		return store.Page{}, store.ErrUnavailable
	}
	return f.Store.List(ctx, query)
}

// A provider that was not obeyed, because the state failed, may send the same token again.
func TestLogoutAfterFailure(t *testing.T) {
	t.Parallel()
	w := notified(t)
	var off atomic.Bool
	stores := w.env.Stores
	w.env.Stores = func(name string) store.Store {
		if name == sessions.Resource {
			return failing{stores(name), &off}
		}
		return stores(name)
	}
	w.handler = w.server.Mount(startlogin.Function, finishlogin.Function, confirmlogin.Function, exchangetoken.Function, endlogin.Function)
	k := w.keep("oidc", w.provider.login)
	token := w.provider.logout("session-1")
	off.Store(true)
	if status, _ := w.tell("oidc", token); status != http.StatusServiceUnavailable {
		t.Errorf("without the state: %d", status)
	}
	off.Store(false)
	if status, _ := w.tell("oidc", token); status != http.StatusOK || k.works() {
		t.Errorf("%d, and the key works: %v", status, k.works())
	}
}

// A provider that is not reached about its keys ends nothing, and is not asked for each token. Tokens with unknown keys make the platform
// ask once a minute. Source: ADR-0042.
func TestLogoutTokensAskOnceAMinute(t *testing.T) {
	t.Parallel()
	w := notified(t)
	k := w.keep("oidc", w.provider.login)
	asked := func() int {
		w.provider.mu.Lock()
		defer w.provider.mu.Unlock()
		return len(w.provider.asked)
	}
	storm := func() {
		for i := range 20 {
			header := logoutHeader()
			header["kid"] = fmt.Sprint("unknown-", i)
			if status, _ := w.tell("oidc", w.provider.sign(header, w.provider.logoutClaims("session-1"))); status != http.StatusBadRequest {
				t.Errorf("an unknown key: %d", status)
			}
		}
	}
	before := asked()
	storm()
	if got := asked() - before; got != 2 {
		t.Errorf("the provider was asked %d times, want its metadata and its keys", got)
	}
	w.clock.forward(time.Minute)
	storm()
	if got := asked() - before; got != 3 {
		t.Errorf("a minute later the provider was asked %d times", got)
	}
	if status, _ := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusOK || k.works() {
		t.Errorf("%d, and the key works: %v", status, k.works())
	}
	w = notified(t)
	k = w.keep("oidc", w.provider.login)
	w.provider.serve["/keys"] = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	if status, code := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusBadRequest || code != "invalid_request" || !k.works() {
		t.Errorf("no keys: %d %s, and the key works: %v", status, code, k.works())
	}
	delete(w.provider.serve, "/keys")
	w.clock.forward(time.Minute)
	if status, _ := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusOK || k.works() {
		t.Errorf("%d, and the key works: %v", status, k.works())
	}
}

// The notices of a provider have the rate of requests without a credential. Above it, no token is looked at. Source: ADR-0020.
func TestLogoutThrottled(t *testing.T) {
	t.Parallel()
	w := notified(t)
	k := w.keep("oidc", w.provider.login)
	w.server.Rates.Anonymous = fairness.NewRate("anonymous requests", 1, nil)
	for range limits.RateBurst {
		if status, _ := w.tell("oidc", "x"); status != http.StatusBadRequest {
			t.Fatalf("%d", status)
		}
	}
	if status, _ := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusTooManyRequests || !k.works() {
		t.Errorf("above the rate: %d, and the key works: %v", status, k.works())
	}
}

// A sign-in that is under way when its session ends leads to no key, at each stage, also if both happen at the same moment.
func TestLogoutDuringSignIn(t *testing.T) {
	t.Parallel()
	w := notified(t)
	logout := func() {
		t.Helper()
		if status, _ := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusOK {
			t.Errorf("%d", status)
		}
	}
	b := w.browser()
	callback := b.prove()
	logout()
	if answer := b.send(callback.Header.Get("Location"), nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("proven: %d %s", answer.StatusCode, text(t, answer))
	}
	b = w.browser()
	code := b.confirm(b.prove(), "allow").Get("code")
	logout()
	if status, answer := w.fetch(code, nil); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("confirmed: %d %v", status, answer)
	}
	device, typed := w.ask()
	b = w.browser()
	id, _ := b.toConfirm(typed)
	if answer := b.decide(id, "allow"); answer.StatusCode != http.StatusOK {
		t.Fatalf("the decision: %d", answer.StatusCode)
	}
	logout()
	w.wantPoll("a device", device, "invalid_grant")
	if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
		t.Errorf("%d keys", len(keys))
	}
	for range 20 {
		b = w.browser()
		code = b.confirm(b.prove(), "allow").Get("code")
		var group sync.WaitGroup
		group.Go(func() { _, _ = w.fetch(code, nil) })
		group.Go(logout)
		group.Wait()
		if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
			t.Fatalf("%d keys are left", len(keys))
		}
	}
}

// revocations are what a provider is asked to take back.
type revocations struct {
	mu    sync.Mutex
	forms []url.Values
	basic []string
}

// takesBack lets the provider of a world take tokens back, with an answer. Nil: 200.
func (w *world) takesBack(answer http.HandlerFunc) *revocations {
	var got revocations
	w.provider.metadata = func(m map[string]any) { m["revocation_endpoint"] = w.provider.server.URL + "/revoke" }
	w.provider.serve["/revoke"] = func(out http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		id, hidden, _ := r.BasicAuth()
		got.mu.Lock()
		got.forms, got.basic = append(got.forms, r.PostForm), append(got.basic, id+":"+hidden)
		got.mu.Unlock()
		if answer != nil {
			answer(out, r)
		}
	}
	return &got
}

// The refresh token of a sign-in goes back to the provider when its key has ended, in whatever way. Source: RFC 7009, 2.1; ADR-0042.
func TestTokensGivenBack(t *testing.T) {
	t.Parallel()
	for about, row := range map[string]struct {
		end     func(kept)
		forward time.Duration
	}{
		"a sign-out": {func(k kept) {
			body := `{"spec":{"credentials":["` + k.key.Reveal() + `"]}}`
			request := httptest.NewRequestWithContext(k.t.Context(), http.MethodPost, base+"/apis/management.platform.sh/v1/credentialrevocations", strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			k.handler.ServeHTTP(recorder, request)
			if recorder.Code != http.StatusAccepted {
				k.t.Errorf("%d %s", recorder.Code, recorder.Body)
			}
		}, 0},
		"a logout at the provider": {func(k kept) {
			if status, _ := k.tell("oidc", k.provider.logout("session-1")); status != http.StatusOK {
				k.t.Errorf("%d", status)
			}
		}, 0},
		"a deleted key": {func(k kept) {
			if _, err := resource.Delete(k.t.Context(), kinds.AccessKeys(k.env), resource.DeleteInput{Caller: root, Name: k.name}); err != nil {
				k.t.Error(err)
			}
		}, 15 * time.Minute},
		"a sign-out everywhere": {func(k kept) {
			if _, err := user.SignOutUser(k.t.Context(), kinds.Users(k.env), resource.SubresourceInput[*model.UserSignOut]{Caller: root, Name: "ana"}); err != nil {
				k.t.Error(err)
			}
		}, 13 * time.Hour},
		"a gate of the settings": {func(k kept) { k.config.Auth.OIDC.Groups = []string{"x"} }, 13 * time.Hour},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := notified(t)
			back := w.takesBack(nil)
			k := w.offline()
			row.end(k)
			w.clock.forward(row.forward)
			done := w.run()
			back.mu.Lock()
			defer back.mu.Unlock()
			w.provider.mu.Lock()
			defer w.provider.mu.Unlock()
			if done.Revoked != 1 || done.Unrevoked != 0 || len(back.forms) != 1 || back.forms[0].Get("token") != w.provider.refresh || k.works() ||
				back.forms[0].Get("token_type_hint") != "refresh_token" || back.basic[0] != clientID+":"+clientSecret || back.forms[0].Has("client_secret") {
				t.Errorf("%+v, %v, %q, and the key works: %v", done, back.forms, back.basic, k.works())
			}
			if left := w.stored(sessions.Resource); len(left) > 0 {
				t.Errorf("%d sessions are left", len(left))
			}
		})
	}
}

// A person is signed out whatever the provider answers. What it answers is counted for the audit, and no text has the token.
func TestTokensNotGivenBack(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.WriteHeader(code)
			_, _ = out.Write([]byte(strings.Repeat("x", 2<<20)))
		}
	}
	nothing := func(*world) {}
	for about, row := range map[string]struct {
		answer http.HandlerFunc
		change func(*world)
		want   revalidate.Counts
		asked  int
	}{
		"an error of the server": {status(500), nothing, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 1},
		"a wrong client":         {status(401), nothing, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 1},
		"too much":               {status(429), nothing, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 1},
		"a redirect": {func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, "https://evil.example/", http.StatusTemporaryRedirect)
		}, nothing, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 1},
		"a huge answer":   {status(200), nothing, revalidate.Counts{Forgotten: 1, Revoked: 1}, 1},
		"hung up":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nothing, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 1},
		"no answer":       {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nothing, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 1},
		"no such address": {nil, func(w *world) { w.provider.metadata = nil }, revalidate.Counts{Forgotten: 1}, 0},
		"an address without TLS": {nil, func(w *world) {
			w.provider.metadata = func(m map[string]any) { m["revocation_endpoint"] = "http://127.0.0.1:1/revoke" }
		}, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 0},
		"no connector": {nil, func(w *world) { w.config.Auth.OIDC = nil }, revalidate.Counts{Forgotten: 1}, 0},
		"a session of another record": {nil, func(w *world) {
			record := w.stored(sessions.Resource)[0]
			record.Object = []byte(strings.Replace(string(record.Object), `"sealed":"`, `"sealed":"x`, 1))
			if _, err := w.env.Stores(sessions.Resource).Update(w.t.Context(), record); err != nil {
				w.t.Fatal(err)
			}
		}, revalidate.Counts{Forgotten: 1, Unrevoked: 1}, 0},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := notified(t)
			back := w.takesBack(row.answer)
			k := w.offline()
			row.change(w)
			if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: k.name}); err != nil {
				t.Fatal(err)
			}
			// The metadata are read again.
			w.clock.forward(time.Hour)
			if done := w.run(); done != row.want || k.works() || len(w.stored(sessions.Resource)) > 0 {
				t.Errorf("%+v, want %+v", done, row.want)
			}
			back.mu.Lock()
			defer back.mu.Unlock()
			if len(back.forms) != row.asked {
				t.Errorf("the provider was asked %d times", len(back.forms))
			}
			if strings.Contains(w.log.String(), w.provider.refresh) || strings.Contains(w.log.String(), clientSecret) {
				t.Errorf("the log has a secret: %s", w.log.String())
			}
		})
	}
}

// A client without the method of basic authentication sends its secret in the form.
func TestTokensGivenBackInTheForm(t *testing.T) {
	t.Parallel()
	for _, hidden := range []secret.String{clientSecret, ""} {
		w := notified(t)
		back := w.takesBack(nil)
		address := w.provider.metadata
		w.provider.metadata = func(m map[string]any) {
			address(m)
			m["revocation_endpoint_auth_methods_supported"] = []string{"client_secret_post", "none"}
		}
		k := w.offline()
		w.config.Auth.OIDC.ClientSecret = hidden
		if status, _ := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusOK || k.works() {
			t.Fatalf("%d", status)
		}
		if done := w.run(); done != (revalidate.Counts{Forgotten: 1, Revoked: 1}) || back.forms[0].Get("client_id") != clientID ||
			back.forms[0].Get("client_secret") != hidden.Reveal() || back.forms[0].Has("client_secret") != (hidden != "") || back.basic[0] != ":" {
			t.Errorf("%+v, %v, %q", done, back.forms, back.basic)
		}
	}
}

// A provider may end all sign-ins of a person with one refresh token. So a token goes back with the last sign-in of the user there, and not
// while another one is under way. Source: ADR-0042.
func TestTokensAreKeptForOtherSignIns(t *testing.T) {
	t.Parallel()
	w := notified(t)
	back := w.takesBack(nil)
	end := func(keys ...kept) revalidate.Counts {
		t.Helper()
		for _, k := range keys {
			if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: k.name}); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.forward(15 * time.Minute)
		return w.run()
	}
	one, two, three := w.offline(), w.offline(), w.offline()
	if done := end(one); done.Forgotten != 1 || done.Revoked != 0 || len(back.forms) > 0 {
		t.Errorf("one of three: %+v", done)
	}
	// Of several that end at the same time, one is the last.
	if done := end(two, three); done.Forgotten != 2 || done.Revoked < 1 || len(back.forms) != done.Revoked {
		t.Errorf("all: %+v", done)
	}
	before := len(back.forms)
	last := w.offline()
	if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: last.name}); err != nil {
		t.Fatal(err)
	}
	w.clock.forward(15 * time.Minute)
	b := w.browser()
	code := b.confirm(b.prove(), "allow").Get("code")
	if done := w.run(); done != (revalidate.Counts{Forgotten: 1}) || len(back.forms) != before {
		t.Errorf("another sign-in is under way: %+v", done)
	}
	w.fetched(code)
}

// A person signs out at a provider that others have written: it tells the platform, over TLS, and their key ends. The refresh token of a
// sign-out here is dead at the provider afterwards. Source: ADR-0042.
func TestRealLogout(t *testing.T) {
	t.Parallel()
	w := notified(t)
	w.clock.forward(time.Since(w.clock.Now()))
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { w.handler.ServeHTTP(out, r) }))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProvider(t, providertest.Client{Logout: server.URL + "/auth/oidc/logout", Authority: authority})
	w.config.Auth.OIDC = &model.OIDCProvider{
		IssuerURL: p.Issuer, ClientID: clientID, ClientSecret: clientSecret, RedirectURI: p.callback, CAFile: p.CAFile,
		GroupsClaim: "groups", Scopes: []string{"profile", "email", "groups", "offline_access"},
	}
	long := int64(0)
	w.config.Auth.LoginAccessKeyTTLSeconds = &long
	visitor := p.visitor()
	signIn := func(visitor *http.Client) kept {
		t.Helper()
		// The provider asks anew whether the program may go on when the person is away.
		return w.keep("oidc", func(address string) url.Values { return p.loginIn(visitor, address+"&prompt=consent", "1001") })
	}
	here, elsewhere, own := signIn(visitor), signIn(p.visitor()), w.own()
	_, page := p.ask(visitor, w.browser().send(base+"/auth/oidc/logout", nil).Header.Get("Location"), nil)
	action, crossed := formAction.FindStringSubmatch(page), hiddenField.FindStringSubmatch(page)
	if action == nil || crossed == nil {
		t.Fatalf("the page of the sign-out is %s", page)
	}
	p.ask(visitor, action[1], url.Values{"xsrf": {crossed[1]}, "logout": {"yes"}})
	if here.works() || !elsewhere.works() || !own.works() {
		t.Errorf("after the sign-out at the provider: %v, %v, %v", here.works(), elsewhere.works(), own.works())
	}
	if done := w.run(); done.Forgotten != 1 || done.Revoked != 0 {
		t.Errorf("%+v", done)
	}
	// The refresh token of the other one works, and is dead once its key has ended.
	w.clock.forward(15 * time.Minute)
	elsewhere.used()
	w.clock.forward(time.Minute)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) {
		t.Errorf("%+v", done)
	}
	token := elsewhere.refreshToken()
	if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: elsewhere.name}); err != nil {
		t.Fatal(err)
	}
	w.clock.forward(15 * time.Minute)
	if done := w.run(); done != (revalidate.Counts{Forgotten: 1, Revoked: 1}) {
		t.Errorf("%+v", done)
	}
	answer, body := p.ask(p.visitor(), p.Issuer+"/token", url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {clientID}, "client_secret": {clientSecret},
	})
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, "invalid_grant") {
		t.Errorf("the refresh token: %d %s", answer.StatusCode, body)
	}
	if strings.Contains(w.log.String(), token) {
		t.Error("the log has the refresh token")
	}
}

// refreshToken returns the refresh token in the session of a key.
func (k kept) refreshToken() string {
	k.t.Helper()
	ring, err := k.env.Keyring(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	for _, record := range k.stored(sessions.Resource) {
		var stored struct{ Key, Sealed string }
		if err := json.Unmarshal(record.Object, &stored); err != nil {
			k.t.Fatal(err)
		}
		if stored.Key != k.name {
			continue
		}
		text, err := ring.Open(stored.Sealed, sessions.Resource+"/"+record.Name)
		var tokens struct{ Refresh string }
		if err != nil || json.Unmarshal(text, &tokens) != nil || tokens.Refresh == "" {
			k.t.Fatalf("the session has no refresh token: %v", err)
		}
		return tokens.Refresh
	}
	k.t.Fatal("the key has no session")
	return ""
}

// hiddenField finds the secret of a form of the provider.
var hiddenField = regexp.MustCompile(`name="xsrf" value="([^"]+)"`)

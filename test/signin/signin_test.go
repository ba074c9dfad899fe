// Package signin_test signs people in at a provider that keeps the protocol and at one that breaks it, through the functions as they
// are deployed. Source: Spec 5.4; ADR-0031.
package signin_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/confirmlogin"
	"management.platform.sh/functions/describelogin"
	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/expirekeys"
	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

const (
	base    = "https://platform.example"
	program = "http://127.0.0.1:4711/cb/x"
	// rootOfProgram is the address of a program that takes its code at the root.
	rootOfProgram = "http://127.0.0.1:4711/"
	verifier      = "8Kx20wQm57ZtLp93VrNc4Hd6ZyB1sFg8Kx20wQm57ZtLp"
	known         = "state-of-the-program"
)

// clock is the clock of a world. It is safe for concurrent use.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// world is a platform with a provider. Change its configuration and its provider between requests, never during one.
type world struct {
	t        testing.TB
	clock    *clock
	env      *platform.Environment
	handler  http.Handler
	config   *model.ConfigStatus
	provider *fakeProvider
	server   *frame.Server
	log      processtest.Log
	// redis is the address of the state.
	redis string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)}}
	w.provider = newProvider(t, w.clock.Now)
	w.redis = redistest.Embedded(t)
	client := redistest.Open(t, w.redis)
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	ttl := int64(3600)
	w.config = &model.ConfigStatus{Auth: &model.ConfigAuth{LoginAccessKeyTTLSeconds: &ttl}}
	w.config.Auth.OIDC = &model.OIDCProvider{
		IssuerURL: w.provider.server.URL, ClientID: clientID, ClientSecret: clientSecret, RedirectURI: base + "/auth/oidc/callback",
		CAFile: w.provider.caFile, GroupsClaim: "groups",
	}
	w.env = &platform.Environment{
		Stores: client.Resource, Now: w.clock.Now, Random: rand.Reader, Log: slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Config: func() *model.ConfigStatus { return sees(t, w.config) }, Version: "test", LocalSigners: true,
		Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
	}
	w.server = process.NewServer(w.env)
	w.handler = w.server.Mount(
		describelogin.Function, startlogin.Function, finishlogin.Function, confirmlogin.Function, exchangetoken.Function)
	return w
}

// browser is a browser with its cookies.
type browser struct {
	w       *world
	cookies map[string]*http.Cookie
}

func (w *world) browser() *browser { return &browser{w: w, cookies: map[string]*http.Cookie{}} }

// send sends a request, and keeps the cookies of the answer. A form makes it a POST.
func (b *browser) send(address string, form url.Values, header ...string) *http.Response {
	b.w.t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	request := httptest.NewRequestWithContext(b.w.t.Context(), method, address, strings.NewReader(body))
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Accept", "text/html,*/*;q=0.8")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	for _, cookie := range b.cookies {
		request.AddCookie(cookie)
	}
	recorder := httptest.NewRecorder()
	b.w.handler.ServeHTTP(recorder, request)
	answer := recorder.Result()
	for _, cookie := range answer.Cookies() {
		if !strings.HasPrefix(cookie.Name, "__Host-") || !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.Domain != "" || cookie.SameSite != http.SameSiteLaxMode {
			b.w.t.Errorf("the cookie is %v", cookie)
		}
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
			continue
		}
		b.cookies[cookie.Name] = cookie
	}
	if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("Referrer-Policy") != "no-referrer" ||
		!strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'") ||
		!strings.Contains(answer.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		b.w.t.Errorf("%s has the header %v", address, answer.Header)
	}
	return answer
}

func text(t testing.TB, answer *http.Response) string {
	t.Helper()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	return body.String()
}

// asked is the query with which the program sends the browser.
func asked() url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {oauth.ClientID}, "redirect_uri": {program}, "state": {known},
		"code_challenge": {oauth.S256(verifier)}, "code_challenge_method": {"S256"},
	}
}

// start begins a sign-in and returns the address at the provider.
func (b *browser) start() string {
	b.w.t.Helper()
	answer := b.send(base+"/auth/oidc/login?"+asked().Encode(), nil)
	if answer.StatusCode != http.StatusSeeOther {
		b.w.t.Fatalf("start: %d %s", answer.StatusCode, text(b.w.t, answer))
	}
	return answer.Header.Get("Location")
}

// prove signs in at the provider, and returns the answer to the callback.
func (b *browser) prove() *http.Response {
	b.w.t.Helper()
	return b.send(base+"/auth/oidc/callback?"+b.w.provider.login(b.start()).Encode(), nil)
}

// confirm allows the sign-in that a callback leads to, and returns the query that the program gets.
func (b *browser) confirm(callback *http.Response, decision string) url.Values {
	b.w.t.Helper()
	location := callback.Header.Get("Location")
	if callback.StatusCode != http.StatusSeeOther || !strings.HasPrefix(location, base+"/auth/confirm?id=") {
		b.w.t.Fatalf("callback: %d %s %s", callback.StatusCode, location, text(b.w.t, callback))
	}
	page := b.send(location, nil)
	if body := text(b.w.t, page); page.StatusCode != http.StatusOK || !strings.Contains(body, "http://127.0.0.1:4711") {
		b.w.t.Fatalf("confirm: %d %s", page.StatusCode, body)
	}
	at, err := url.Parse(location)
	if err != nil {
		b.w.t.Fatal(err)
	}
	decided := b.send(base+"/auth/confirm", url.Values{"id": {at.Query().Get("id")}, "decision": {decision}}, "Sec-Fetch-Site", "same-origin")
	back, err := url.Parse(decided.Header.Get("Location"))
	if err != nil || decided.StatusCode != http.StatusSeeOther || !strings.HasPrefix(back.String(), program+"?") && !strings.HasPrefix(back.String(), rootOfProgram+"?") {
		b.w.t.Fatalf("decision: %d %s %s", decided.StatusCode, back, text(b.w.t, decided))
	}
	return back.Query()
}

// fetch exchanges a code.
func (w *world) fetch(code string, change func(url.Values)) (status int, answer map[string]any) {
	w.t.Helper()
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {oauth.ClientID}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {program},
	}
	if change != nil {
		change(form)
	}
	response := w.browser().send(base+"/auth/token", form, "Accept", "application/json")
	answer = map[string]any{}
	if err := json.Unmarshal([]byte(text(w.t, response)), &answer); err != nil {
		w.t.Error(err)
	}
	return response.StatusCode, answer
}

// signIn signs the person of the provider in, and returns the caller of their key.
func (w *world) signIn() identity.Caller {
	w.t.Helper()
	b := w.browser()
	back := b.confirm(b.prove(), "allow")
	status, answer := w.fetch(back.Get("code"), nil)
	if status != http.StatusOK {
		w.t.Fatalf("token: %d %v", status, answer)
	}
	key, _ := answer["access_token"].(string)
	caller, err := accesskey.OpenAuthenticator(w.env).Bearer(w.t.Context(), secret.String(key))
	if err != nil {
		w.t.Fatal(err)
	}
	return caller
}

// stored returns the records of a resource.
func (w *world) stored(resource string) []store.Record {
	w.t.Helper()
	page, err := w.env.Stores(resource).List(w.t.Context(), store.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Records
}

// user returns a user.
func (w *world) user(name string) *model.User {
	w.t.Helper()
	found, err := resource.Get(w.t.Context(), kinds.Users(w.env), resource.GetInput{Caller: root, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

var root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// wantRefused fails the test unless an answer is a page with a status, and nobody has become a user.
func (w *world) wantRefused(about string, answer *http.Response, status int) {
	w.t.Helper()
	body := text(w.t, answer)
	if answer.StatusCode != status || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") || !strings.Contains(body, "<dt>Request</dt>") {
		w.t.Errorf("%s: %d %s", about, answer.StatusCode, body)
	}
	if users, attempts, keys := w.stored("users"), w.stored(logins.Resource), w.stored("ownedaccesskeys"); len(users)+len(attempts)+len(keys) > 0 {
		w.t.Errorf("%s: there are %d users, %d sign-ins and %d keys", about, len(users), len(attempts), len(keys))
	}
}

// A person signs in: nothing is stored before the provider has said who they are, and the key is made when the program fetches it.
func TestSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	location := b.start()
	if left := w.stored(logins.Resource); len(left) > 0 {
		t.Errorf("%d records before anybody is known", len(left))
	}
	callback := b.send(base+"/auth/oidc/callback?"+w.provider.login(location).Encode(), nil)
	if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
		t.Error("there is a key before the program asks for it")
	}
	back := b.confirm(callback, "allow")
	if back.Get("state") != known || back.Get("iss") != base || len(b.cookies) > 0 {
		t.Errorf("the program gets %v, and the browser keeps %v", back, b.cookies)
	}
	if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
		t.Error("there is a key before the program fetches it")
	}
	status, answer := w.fetch(back.Get("code"), nil)
	key, _ := answer["access_token"].(string)
	if status != http.StatusOK || answer["token_type"] != "Bearer" || answer["expires_in"] != 3600.0 || answer["user"] != "ana" {
		t.Fatalf("%d %v", status, answer)
	}
	caller, err := accesskey.OpenAuthenticator(w.env).Bearer(t.Context(), secret.String(key))
	if err != nil || caller.Owner != (identity.Owner{Kind: identity.User, Name: "ana"}) || caller.KeyType != model.AccessKeyTypeLogin || !caller.InGroup("dev") || caller.Admin() {
		t.Errorf("%+v, %v", caller, err)
	}
	made, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: caller.Key})
	if err != nil || made.Spec.Identity == nil || made.Spec.Identity.UserID != "1001" || made.Spec.Identity.Connector != "oidc" || made.Spec.TTLSeconds != 3600 {
		t.Errorf("%+v, %v", made, err)
	}
	if ana := w.user("ana"); ana.Spec.Connector != "oidc" || ana.Spec.Subject != "1001" || ana.Spec.Email != "ana@example.com" || ana.Spec.DisplayName != "Ana" {
		t.Errorf("the user is %+v", ana.Spec)
	}
	code := back.Get("code")
	for _, resource := range []string{logins.Resource, "users", "ownedaccesskeys"} {
		for _, record := range w.stored(resource) {
			for _, hidden := range []string{code, key, clientSecret, verifier} {
				if strings.Contains(string(record.Object)+record.Name+record.Digest, hidden) {
					t.Errorf("%s holds %q", resource, hidden)
				}
			}
		}
	}
	for _, hidden := range []string{code, key, clientSecret, verifier, known} {
		if strings.Contains(w.log.String(), hidden) {
			t.Errorf("the log has %q", hidden)
		}
	}
}

// Everything that a provider can answer instead of who somebody is: nobody is signed in, and nothing is stored.
func TestProviderRefused(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) func(*world) {
		return func(w *world) {
			w.provider.claims = func(claims map[string]any) {
				if claims[name] = value; value == nil {
					delete(claims, name)
				}
			}
		}
	}
	answers := func(path string, handler http.HandlerFunc) func(*world) {
		return func(w *world) { w.provider.serve[path] = handler }
	}
	garbage := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
	huge := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"` + strings.Repeat("x", 2<<20) + `"}`))
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
	}
	seconds := func(w *world, by time.Duration) int64 { return w.clock.Now().Add(by).Unix() }
	for about, row := range map[string]struct {
		change func(*world)
		status int
	}{
		"another nonce":           {claim("nonce", "x"), 400},
		"no nonce":                {claim("nonce", nil), 400},
		"another audience":        {claim("aud", "other"), 400},
		"two audiences":           {claim("aud", []string{clientID, "other"}), 400},
		"another party":           {claim("azp", "other"), 400},
		"another issuer":          {claim("iss", "https://other.example"), 400},
		"no end":                  {claim("exp", nil), 400},
		"no begin":                {claim("iat", nil), 400},
		"expired":                 {func(w *world) { claim("exp", seconds(w, -time.Minute))(w) }, 400},
		"of the future":           {func(w *world) { claim("iat", seconds(w, 5*time.Minute))(w) }, 400},
		"no subject":              {claim("sub", ""), 400},
		"a subject in parts":      {claim("sub", map[string]any{"a": 1}), 400},
		"nested groups":           {claim("groups", map[string]any{"a": 1}), 400},
		"groups of numbers":       {claim("groups", []int{1}), 400},
		"a control character":     {claim("sub", "10\x1b01"), 400},
		"a long ID":               {claim("sub", strings.Repeat("x", 300)), 400},
		"of another access token": {claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), 400},
		"unsigned":                {func(w *world) { w.provider.token = func(raw string) string { return w.provider.resigned(raw, "none") } }, 400},
		"signed by secret": {func(w *world) {
			w.provider.token = func(raw string) string { return w.provider.resigned(raw, "HS256") }
		}, 400},
		"wrong signature":   {func(w *world) { w.provider.token = func(raw string) string { return raw[:len(raw)-8] + "AAAAAAAA" } }, 400},
		"no token":          {func(w *world) { w.provider.token = func(string) string { return "" } }, 400},
		"an error":          {func(w *world) { w.provider.answer = func(q url.Values) { q.Set("error", "access_denied") } }, 400},
		"no code":           {func(w *world) { w.provider.answer = func(q url.Values) { q.Del("code") } }, 400},
		"another code":      {func(w *world) { w.provider.answer = func(q url.Values) { q.Set("code", "x") } }, 400},
		"of another issuer": {func(w *world) { w.provider.answer = func(q url.Values) { q.Set("iss", "https://other.example") } }, 400},
		"promised issuer": {func(w *world) {
			w.provider.metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }
		}, 400},
		"two states":      {func(w *world) { w.provider.answer = func(q url.Values) { q.Add("state", "x") } }, 400},
		"garbage":         {answers("/token", garbage), 400},
		"huge":            {answers("/token", huge), 400},
		"a redirect":      {answers("/token", elsewhere), 400},
		"garbage as keys": {answers("/keys", garbage), 400},
		"a token endpoint without TLS": {func(w *world) {
			w.provider.metadata = func(m map[string]any) { m["token_endpoint"] = w.plain() + "/token" }
		}, 400},
		"keys without TLS": {func(w *world) { w.provider.metadata = func(m map[string]any) { m["jwks_uri"] = w.plain() + "/keys" } }, 400},
		"a UserInfo without TLS": {func(w *world) {
			w.config.Auth.OIDC.GetUserInfo, w.provider.info = true, map[string]any{"sub": "1001"}
			w.provider.metadata = func(m map[string]any) { m["userinfo_endpoint"] = w.plain() + "/userinfo" }
		}, 400},
		"other UserInfo": {func(w *world) {
			w.config.Auth.OIDC.GetUserInfo = true
			w.provider.info = map[string]any{"sub": "1002", "email": "root@example.com"}
		}, 400},
		"not in a required group": {func(w *world) { w.config.Auth.OIDC.Groups = []string{"ops"} }, 403},
		"unknown person":          {func(w *world) { w.config.Auth.DisableUserCreation = true }, 403},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			row.change(w)
			w.wantRefused(about, w.atProvider("oidc", w.provider.login)(), row.status)
		})
	}
}

// plain returns the address of the provider without TLS, where it answers in the same way.
func (w *world) plain() string {
	server := httptest.NewServer(w.provider)
	w.t.Cleanup(server.Close)
	return server.URL
}

// The client sends its secret as the metadata say. Source: OpenID Connect Core 1.0, 9.
func TestClientAuthentication(t *testing.T) {
	t.Parallel()
	for _, posts := range []bool{false, true} {
		w := newWorld(t)
		w.provider.posts = posts
		w.signIn()
		if sent := w.provider.sent.Get("client_secret"); sent != map[bool]string{true: clientSecret}[posts] {
			t.Errorf("in the form: %v, and it has %q", posts, sent)
		}
	}
}

// An address is verified only if the provider says so, in the one way in which it can. Source: OpenID Connect Core 1.0, 5.1.
func TestEmailVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, value := range []any{true, false, "true", 1, nil} {
		w.provider.person["email_verified"] = value
		made, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: w.signIn().Key})
		if err != nil || made.Spec.Identity.EmailVerified != (i == 0) {
			t.Errorf("%v: %+v, %v", value, made.Spec.Identity, err)
		}
	}
	// The claim is about the claim email: neither about another one, nor about an address that the UserInfo gives instead.
	w.provider.person["email_verified"] = true
	for about, change := range map[string]func(*model.OIDCProvider){
		"another claim":    func(s *model.OIDCProvider) { s.EmailClaim = "mail" },
		"another UserInfo": func(s *model.OIDCProvider) { s.GetUserInfo = true },
	} {
		settings := *w.config.Auth.OIDC
		change(&settings)
		before := w.config.Auth.OIDC
		w.config.Auth.OIDC = &settings
		w.provider.person["mail"], w.provider.info = "boss@example.com", map[string]any{"sub": "1001", "email": "boss@example.com"}
		made, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: w.signIn().Key})
		if err != nil || made.Spec.Identity.Email != "boss@example.com" || made.Spec.Identity.EmailVerified {
			t.Errorf("%s: %+v, %v", about, made.Spec.Identity, err)
		}
		w.config.Auth.OIDC = before
	}
}

// A provider that cannot be asked at the start.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for about, row := range map[string]struct {
		change func(*world)
		status int
	}{
		"garbage": {func(w *world) {
			w.provider.serve["/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }
		}, 400},
		"a redirect": {func(w *world) {
			w.provider.serve["/.well-known/openid-configuration"] = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
			}
		}, 400},
		"another issuer": {func(w *world) { w.provider.metadata = func(m map[string]any) { m["issuer"] = "https://other.example" } }, 400},
		"plain HTTP": {func(w *world) {
			w.provider.metadata = func(m map[string]any) { m["authorization_endpoint"] = "http://x.example/a" }
		}, 400},
		"no connection":             {func(w *world) { w.provider.server.Close() }, 503},
		"an unknown certificate":    {func(w *world) { w.config.Auth.OIDC.CAFile = "" }, 503},
		"no file":                   {func(w *world) { w.config.Auth.OIDC.CAFile = "/nowhere" }, 400},
		"an address of the machine": {func(w *world) { w.env.LocalSigners = false }, 503},
		"no encryption key":         {func(w *world) { w.env.Encryption = nil }, 400},
		"no such connector":         {func(w *world) { w.config.Auth.OIDC = nil }, 404},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			row.change(w)
			w.wantRefused(about, w.browser().send(base+"/auth/oidc/login?"+asked().Encode(), nil), row.status)
		})
	}
}

// Where a program may get its code, and what it must bring.
func TestStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	try := func(about, name, value string, status int) {
		query := asked()
		query.Set(name, value)
		if answer := w.browser().send(base+"/auth/oidc/login?"+query.Encode(), nil); answer.StatusCode != status || status == 400 && answer.Header.Get("Location") != "" {
			t.Errorf("%s %q: %d to %s", about, value, answer.StatusCode, answer.Header.Get("Location"))
		}
	}
	for _, address := range []string{program, "http://[::1]:4711/cb", "http://127.0.0.1:4711/", "http://[::1]:4711/"} {
		try("an address", "redirect_uri", address, 303)
	}
	for _, address := range []string{
		"", "https://evil.example/cb", "http://localhost:4711/cb", "http://127.0.0.1.evil.example:4711/cb", "http://127.0.0.1/cb",
		"http://u@127.0.0.1:4711/cb", "http://127.0.0.1:4711/cb#x", "http://127.0.0.1:4711/cb?x=1", "http://127.0.0.1:4711/cb?", "//127.0.0.1:4711/cb",
		"http://0x7f.1:4711/cb", "http://[::ffff:127.0.0.1]:4711/cb", "http://127.0.0.1:4711", "http://127.0.0.1:4711/../x", "http://127.0.0.1:4711//x",
		"http://127.0.0.1:4711\\@evil.example/cb", "https://127.0.0.1:4711/cb", "http://127.0.0.1:4711/cb%0d%0a",
	} {
		try("an address", "redirect_uri", address, 400)
	}
	for name, values := range map[string][]string{
		"code_challenge_method": {"", "plain"}, "code_challenge": {"", "x", strings.Repeat("x", 44)}, "state": {"", "short", strings.Repeat("x", 129), "with space"},
		"client_id": {"", "other"}, "response_type": {"", "token"},
	} {
		for _, value := range values {
			try("a parameter "+name, name, value, 400)
		}
	}
	if left := w.stored(logins.Resource); len(left) > 0 {
		t.Errorf("%d records", len(left))
	}
}

// A callback counts once, in the browser that began, for the connector and the settings that it began with, within ten minutes.
func TestCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	callback := func(b *browser, query url.Values) *http.Response {
		return b.send(base+"/auth/oidc/callback?"+query.Encode(), nil)
	}
	mine := w.browser()
	query := w.provider.login(mine.start())
	w.wantRefused("another browser", callback(w.browser(), query), 400)
	other := w.browser()
	other.start()
	w.wantRefused("another attempt", callback(other, query), 400)
	late := w.browser()
	lateQuery := w.provider.login(late.start())
	w.clock.forward(10 * time.Minute)
	w.wantRefused("too late", callback(late, lateQuery), 400)
	changed := w.browser()
	changedQuery := w.provider.login(changed.start())
	before := *w.config.Auth.OIDC
	w.config.Auth.OIDC.ClientID = "other"
	w.wantRefused("other settings", callback(changed, changedQuery), 400)
	w.config.Auth.OIDC = &before
	second := *w.config.Auth.OIDC
	second.RedirectURI = base + "/auth/second/callback"
	w.config.Auth.Connectors = []model.AuthConnector{{ID: "second", IdentityProviders: model.IdentityProviders{OIDC: &second}}}
	w.wantRefused("another connector", changed.send(base+"/auth/second/callback?"+changedQuery.Encode(), nil), 400)

	// Each answer of the provider is good, and only the first of them counts.
	again := w.browser()
	location := again.start()
	cookies := again.cookies
	answer := w.provider.login(location)
	for _, header := range []string{"Sec-Purpose", "Purpose", "X-Moz"} {
		if early := again.send(base+"/auth/oidc/callback?"+answer.Encode(), nil, header, "prefetch;prerender"); early.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("in advance, by %s: %d", header, early.StatusCode)
		}
	}
	first := callback(again, answer)
	if first.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", first.StatusCode, text(t, first))
	}
	replayed := &browser{w: w, cookies: cookies}
	if answer := callback(replayed, w.provider.login(location)); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a replay: %d", answer.StatusCode)
	}
	if got := len(w.stored(logins.Resource)); got != 1 {
		t.Errorf("%d sign-ins", got)
	}
}

// The person decides, in the browser that began and on a page of the platform, once.
func TestConfirm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	callback := b.prove()
	at, err := url.Parse(callback.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"id": {at.Query().Get("id")}, "decision": {"allow"}}
	for about, row := range map[string]struct {
		by     *browser
		header []string
		status int
	}{
		"another site":         {b, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another origin":       {b, []string{"Origin", "https://evil.example"}, 403},
		"another browser":      {w.browser(), nil, 400},
		"another kind of form": {b, []string{"Content-Type", "application/json"}, 415},
		"no browser but a key": {w.browser(), []string{"Authorization", "Bearer x"}, 400},
	} {
		if answer := row.by.send(base+"/auth/confirm", form, row.header...); answer.StatusCode != row.status {
			t.Errorf("%s: %d", about, answer.StatusCode)
		}
	}
	// The settings of the connector change after the person was known.
	before := *w.config.Auth.OIDC
	w.config.Auth.OIDC.ClientSecret = "another"
	if asks := b.send(at.String(), nil); asks.StatusCode != http.StatusBadRequest {
		t.Errorf("after a change of the settings: %d", asks.StatusCode)
	}
	w.config.Auth.OIDC = &before
	cookies := map[string]*http.Cookie{}
	for name, cookie := range b.cookies {
		cookies[name] = cookie
	}
	if back := b.confirm(callback, "deny"); back.Get("code") != "" || back.Get("error") != "access_denied" || back.Get("state") != known {
		t.Errorf("a denial: %v", back)
	}
	b.cookies = cookies
	if answer := b.send(base+"/auth/confirm", form); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("after the decision: %d", answer.StatusCode)
	}
	if keys := w.stored("ownedaccesskeys"); len(keys) > 0 {
		t.Error("there is a key")
	}
}

// A code works once, for the program that asked, within a minute.
func TestExchange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := func() string {
		b := w.browser()
		return b.confirm(b.prove(), "allow").Get("code")
	}
	for about, change := range map[string]func(url.Values){
		"another verifier": func(form url.Values) { form.Set("code_verifier", strings.Repeat("x", 43)) },
		"another address":  func(form url.Values) { form.Set("redirect_uri", program+"y") },
		"another code":     func(form url.Values) { form.Set("code", "x") },
	} {
		given := code()
		if status, answer := w.fetch(given, change); status != 400 || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", about, status, answer)
		}
		if status, answer := w.fetch(given, nil); about != "another code" && (status != 400 || answer["error"] != "invalid_grant") {
			t.Errorf("after %s: %d %v", about, status, answer)
		}
	}
	for about, row := range map[string]struct {
		name, value, want string
	}{
		"no verifier":    {"code_verifier", "", "invalid_request"},
		"no grant":       {"grant_type", "", "invalid_request"},
		"another grant":  {"grant_type", "password", "unsupported_grant_type"},
		"another client": {"client_id", "x", "invalid_client"},
	} {
		if status, answer := w.fetch("x", func(form url.Values) { form.Set(row.name, row.value) }); status != 400 || answer["error"] != row.want {
			t.Errorf("%s: %d %v", about, status, answer)
		}
	}
	late := code()
	w.clock.forward(time.Minute)
	if status, answer := w.fetch(late, nil); status != 400 {
		t.Errorf("late: %d %v", status, answer)
	}
	before := len(w.stored("ownedaccesskeys"))
	once := code()
	var group sync.WaitGroup
	got := make([]int, 8)
	for i := range got {
		group.Go(func() { got[i], _ = w.fetch(once, nil) })
	}
	group.Wait()
	good := 0
	for _, status := range got {
		if status == http.StatusOK {
			good++
		}
	}
	// The others have used the code again, which ends its key.
	if left := len(w.stored("ownedaccesskeys")) - before; good > 1 || left != 0 {
		t.Errorf("%d answers and %d keys for one code", good, left)
	}
	users := kinds.Users(w.env)
	for about, change := range map[string]func(*model.User){
		"signed out": func(user *model.User) { user.Spec.TokenGeneration++ },
		"disabled":   func(user *model.User) { user.Spec.Disabled = true },
	} {
		given := code()
		user := w.user("ana")
		change(user)
		if _, err := resource.Update(t.Context(), users, resource.UpdateInput[*model.User]{Caller: root, Name: "ana", Object: user}); err != nil {
			t.Fatal(err)
		}
		if status, answer := w.fetch(given, nil); status != 400 || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", about, status, answer)
		}
		if user = w.user("ana"); user.Spec.Disabled {
			if answer := w.browser().prove(); answer.StatusCode != http.StatusForbidden {
				t.Errorf("a disabled user signs in: %d", answer.StatusCode)
			}
			user.Spec.Disabled = false
			if _, err := resource.Update(t.Context(), users, resource.UpdateInput[*model.User]{Caller: root, Name: "ana", Object: user}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The code of a user is not one of another user of the name, and nobody's without one.
	for _, again := range []bool{false, true} {
		given := code()
		if _, err := resource.Delete(t.Context(), users, resource.DeleteInput{Caller: root, Name: "ana"}); err != nil {
			t.Fatal(err)
		}
		if again {
			if _, err := resource.Create(t.Context(), users, resource.CreateInput[*model.User]{Caller: root, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: "ana"}}}); err != nil {
				t.Fatal(err)
			}
		}
		if status, answer := w.fetch(given, nil); status != 400 || answer["error"] != "invalid_grant" {
			t.Errorf("another user: %v: %d %v", again, status, answer)
		}
	}
}

// Only the identity at the connector identifies a person. Names that belong to somebody are never given to another.
func TestPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.signIn()
	if again := w.signIn(); again.Owner != first.Owner {
		t.Errorf("the same person is %v and %v", first.Owner, again.Owner)
	}
	w.provider.person["preferred_username"], w.provider.person["email"] = "anna", "anna@example.com"
	if renamed := w.signIn(); renamed.Owner != first.Owner || w.user("ana").Spec.Email != "anna@example.com" {
		t.Errorf("a renamed person is %v", renamed.Owner)
	}
	// Another person with the name and the email address of the first.
	w.provider.person["sub"], w.provider.person["preferred_username"] = "1002", "ana"
	second := w.signIn()
	if second.Owner == first.Owner || !strings.HasPrefix(second.Owner.Name, "ana-") {
		t.Errorf("another person is %v", second.Owner)
	}
	stored := kinds.Open(w.env)
	for i, take := range []func() error{
		func() error {
			_, err := resource.Create(t.Context(), stored.Teams, resource.CreateInput[*model.Team]{Caller: root, Object: &model.Team{
				ObjectMeta: metav1.ObjectMeta{Name: "ops"}, Spec: model.TeamSpec{Users: []string{"bob"}, ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}}},
			}})
			return err
		},
		func() error {
			_, err := resource.Create(t.Context(), stored.AccessKeys, resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: &model.OwnedAccessKey{
				Spec: model.OwnedAccessKeySpec{User: "eve"},
			}})
			return err
		},
		func() error {
			_, err := resource.Create(t.Context(), stored.Instances, resource.CreateInput[*model.VirtualClusterInstance]{
				Caller: root, Namespace: "p-shop", Object: &model.VirtualClusterInstance{
					ObjectMeta: metav1.ObjectMeta{Name: "dev"},
					Spec:       model.VirtualClusterInstanceSpec{Access: []model.InstanceAccess{{Verbs: []string{"*"}, Users: []string{"grace"}}}},
				},
			})
			return err
		},
		func() error {
			_, err := resource.Create(t.Context(), stored.Teams, resource.CreateInput[*model.Team]{Caller: root, Object: &model.Team{
				ObjectMeta: metav1.ObjectMeta{Name: "former"}, Spec: model.TeamSpec{Users: []string{"ivan"}, Disabled: true},
			}})
			return err
		},
		func() error {
			_, err := resource.Create(t.Context(), stored.Projects, resource.CreateInput[*model.Project]{Caller: root, Object: &model.Project{
				ObjectMeta: metav1.ObjectMeta{Name: "shop"},
				Spec:       model.ProjectSpec{Members: []model.ProjectMember{{Kind: model.ProjectMemberUser, Name: "dora", Role: model.ProjectRoleAdmin}}},
			}})
			return err
		},
	} {
		if err := take(); err != nil {
			t.Fatal(err)
		}
		name := []string{"bob", "eve", "grace", "ivan", "dora"}[i]
		w.provider.person["sub"], w.provider.person["preferred_username"] = "of "+name, name
		if caller := w.signIn(); caller.Owner.Name == name || caller.Admin() {
			t.Errorf("the person is %v, in %q", caller.Owner, caller.Groups)
		}
	}
	for i, name := range []string{"admin", "system:masters", "platform", "", "<script>"} {
		w.provider.person["sub"], w.provider.person["preferred_username"], w.provider.person["email"] = "odd "+string(rune('a'+i)), name, ""
		if caller := w.signIn(); caller.Owner.Name == name || caller.Admin() || caller.Owner.Reserved() != "" {
			t.Errorf("%q is %v, in %q", name, caller.Owner, caller.Groups)
		}
	}
}

// Two people whose IDs differ in the last digits of a long number are two people, and a group is its name with the space around it. A number
// that has several texts is no ID, and the mark of one address is not that of another. Source: ADR-0047.
func TestExactNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.OIDC.UsernameClaim = "uid"
	stored := kinds.Open(w.env)
	if _, err := resource.Create(t.Context(), stored.Teams, resource.CreateInput[*model.Team]{Caller: root, Object: &model.Team{
		ObjectMeta: metav1.ObjectMeta{Name: "opsadmins"},
		Spec:       model.TeamSpec{Groups: []string{"opsadmins"}, ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}}},
	}}); err != nil {
		t.Fatal(err)
	}
	person := func(id string) identity.Caller {
		w.provider.person["uid"] = json.Number(id)
		return w.signIn()
	}
	first, second := person("9007199254740992"), person("9007199254740993")
	if first.Owner == second.Owner {
		t.Errorf("two people are %v", first.Owner)
	}
	w.provider.person["groups"] = []string{" opsadmins", "opsadmins ", "\u00a0opsadmins"}
	if caller := person("9007199254740993"); caller.Admin() || caller.Owner != second.Owner {
		t.Errorf("the person is %v, in %q", caller.Owner, caller.Groups)
	}
	w.provider.person["groups"] = []string{"opsadmins"}
	if caller := person("9007199254740993"); !caller.Admin() {
		t.Errorf("the groups are %q", caller.Groups)
	}
}

// The groups of a person are those that the provider names now; none of them is one of the platform's own.
func TestGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.GroupsFilters = []string{"^x-[a-z]+$", "platform:", "system:"}
	w.config.Auth.OIDC.GroupsPrefix = "x-"
	w.provider.person["groups"] = []string{"dev", "ops", "ops", "dev7"}
	if caller := w.signIn(); !caller.InGroup("x-dev") || !caller.InGroup("x-ops") || caller.InGroup("x-dev7") || caller.InGroup("dev") {
		t.Errorf("the groups are %q", caller.Groups)
	}
	w.provider.person["groups"] = "ops"
	if caller := w.signIn(); caller.InGroup("x-dev") || !caller.InGroup("x-ops") {
		t.Errorf("the groups are %q", caller.Groups)
	}
	w.config.Auth.OIDC.GroupsPrefix = ""
	w.provider.person["groups"] = []string{identity.Admins, "system:masters", identity.TeamPrefix + "web", "x-dev"}
	if caller := w.signIn(); caller.Admin() || !caller.InGroup("x-dev") || len(w.user("ana").Spec.SSOGroups) != 1 {
		t.Errorf("the groups are %q", caller.Groups)
	}
}

// Filters come before limits. What decides nothing and does not fit is left out, and the event names it.
func TestWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.OIDC.AllowedExtraClaims = []string{"address", "dept"}
	var events processtest.Log
	w.audited(&events)
	groups := []string{"platform-a", "platform-b"}
	for i := range 600 {
		groups = append(groups, fmt.Sprintf("g-%03d", i))
	}
	long := strings.Repeat("x", 300)
	maps.Copy(w.provider.person, map[string]any{"groups": groups, "name": "Ana\u202eB", "email": long, "dept": "r&d", "address": "one\ntwo"})
	w.config.Auth.GroupsFilters = []string{"^platform-"}
	w.signIn()
	if user := w.user("ana"); !slices.Equal(user.Spec.SSOGroups, groups[:2]) || user.Spec.DisplayName != "" || user.Spec.Email != "" || len(user.Spec.ExtraClaims) != 1 {
		t.Errorf("%+v", user.Spec)
	}
	if want := `signin-left-out":"name, email, extra claim \"address\""`; !strings.Contains(events.String(), want) {
		t.Errorf("no %s in %s", want, events.String())
	}
	w.config.Auth.GroupsFilters = nil
	w.provider.person["groups"] = append([]string{long, "de\nv", "de\u202ev"}, groups...)
	w.signIn()
	if user := w.user("ana"); !slices.Equal(user.Spec.SSOGroups, groups[2:258]) {
		t.Errorf("%d groups: %q", len(user.Spec.SSOGroups), user.Spec.SSOGroups)
	}
	for _, want := range []string{`signin-dropped-groups":"349"`, `group \"xxx`, `group \"g-256\"`} {
		if !strings.Contains(events.String(), want) {
			t.Errorf("no %s in %s", want, events.String())
		}
	}
}

// How the settings of a provider map what it says.
func TestClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.config.Auth.OIDC
	settings.UsernameClaim, settings.PlatformUsernameClaim, settings.PreferredUsername, settings.EmailClaim = "uid", "login", "nick", "mail"
	settings.UsernamePrefix, settings.AllowedExtraClaims, settings.GetUserInfo = "corp-", []string{"dept", "levels"}, true
	w.provider.person["uid"], w.provider.person["login"], w.provider.person["nick"], w.provider.person["mail"] = 77, "Ana.B", "Annie", "ab@example.com"
	w.provider.person["other"] = "x"
	w.provider.info = map[string]any{"sub": "1001", "dept": "r&d", "levels": []int{1, 2}}
	caller := w.signIn()
	ana := w.user(caller.Owner.Name)
	if ana.Name != "corp-ana-b" || ana.Spec.Subject != "77" || ana.Spec.Email != "ab@example.com" || len(ana.Spec.ExtraClaims) != 2 ||
		ana.Spec.ExtraClaims["dept"] != "r&d" || ana.Spec.ExtraClaims["levels"] != "[1,2]" {
		t.Errorf("%s: %+v", ana.Name, ana.Spec)
	}
	made, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: caller.Key})
	if err != nil || made.Spec.Identity.PreferredUsername != "Annie" || made.Spec.Identity.Username != "Ana.B" {
		t.Errorf("%+v, %v", made.Spec.Identity, err)
	}
}

// A claim of nothing in the UserInfo does not take away what the ID token says.
func TestEmptyClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.OIDC.GetUserInfo = true
	w.provider.info = map[string]any{"sub": "1001", "email": "", "name": nil, "preferred_username": nil, "groups": nil}
	if caller := w.signIn(); !caller.InGroup("dev") || w.user("ana").Spec.Email != "ana@example.com" || w.user("ana").Spec.DisplayName != "Ana" {
		t.Errorf("%q, %+v", caller.Groups, w.user("ana").Spec)
	}
}

// Nothing depends on the lifetime of the provider's access token.
func TestLifetimeOfTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, lifetime := range []any{3600, "3600", 3599.5, 1e30, "soon", map[string]any{}, []int{}} {
		w.provider.lifetime = lifetime
		if caller := w.signIn(); !caller.InGroup("dev") {
			t.Errorf("%v: %q", lifetime, caller.Groups)
		}
	}
}

// Keys that cannot be read are left out, and the others sign people in and out. Source: RFC 7517, 5.
func TestUnreadableKeys(t *testing.T) {
	t.Parallel()
	w := notified(t)
	keys := w.provider.keys()
	w.provider.serve["/keys"] = func(out http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(out).Encode(map[string]any{"keys": append([]any{
			map[string]any{"kty": "EC", "crv": "secp256k1", "kid": "curve", "use": "sig", "x": "AAAA", "y": "AAAA"},
			map[string]any{"kty": "RSA", "kid": "modulus", "e": "AQAB"},
			map[string]any{"kty": "RSA", "kid": 7, "n": "AQAB", "e": "AQAB"},
			map[string]any{"kty": "RSA", "kid": "certificate", "n": "AQAB", "e": "AQAB", "x5c": []string{"x"}},
			map[string]any{"kty": "unknown", "kid": "kind"},
			"text", nil,
		}, keys...)})
	}
	k := w.keep("oidc", w.provider.login)
	if !k.works() {
		t.Error("the key does not work")
	}
	if status, code := w.tell("oidc", w.provider.logout("session-1")); status != http.StatusOK || k.works() {
		t.Errorf("%d %s, and the key works: %v", status, code, k.works())
	}
}

// The audit names the check that an ID token fails, with what is wanted and what came.
func TestMistakesOfIDTokens(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) func(*world) {
		return func(w *world) { w.provider.claims = func(claims map[string]any) { claims[name] = value } }
	}
	header := func(change func(w *world, raw string) string) func(*world) {
		return func(w *world) { w.provider.token = func(raw string) string { return change(w, raw) } }
	}
	for about, row := range map[string]struct {
		change func(*world)
		status int
		want   []string
	}{
		"another issuer":    {claim("iss", "https://other.example"), 400, []string{"names the issuer", "https://other.example"}},
		"another audience":  {claim("aud", "other"), 400, []string{"is not for the client", clientID}},
		"other audiences":   {claim("aud", []string{"a", "b"}), 400, []string{"is not for the client", clientID}},
		"expired":           {claim("exp", 1_000_000_000), 400, []string{"expired at 2001-09-09T01:46:40Z, and it is "}},
		"not valid yet":     {claim("nbf", 4_000_000_000), 400, []string{"is not valid yet"}},
		"HMAC":              {header(func(w *world, raw string) string { return w.provider.resigned(raw, "HS256") }), 400, []string{"an algorithm other than RS256"}},
		"no signature":      {header(func(w *world, raw string) string { return w.provider.resigned(raw, "none") }), 400, []string{"an algorithm other than RS256"}},
		"no token":          {header(func(*world, string) string { return "x" }), 400, []string{"is no signed token"}},
		"another signature": {header(func(_ *world, raw string) string { return raw[:len(raw)-8] + "AAAAAAAA" }), 400, []string{"is signed with no key of the provider"}},
		"keys out of reach": {func(w *world) {
			w.provider.serve["/keys"] = func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) }
		}, 503, []string{"provider_unreachable"}},
		"UserInfo out of reach": {func(w *world) {
			w.config.Auth.OIDC.GetUserInfo = true
			w.provider.serve["/userinfo"] = func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) }
		}, 503, []string{"provider_unreachable"}},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var events processtest.Log
			w.audited(&events)
			row.change(w)
			w.wantRefused(about, w.browser().prove(), row.status)
			for _, want := range row.want {
				if !strings.Contains(events.String(), want) {
					t.Errorf("the audit does not say %q: %s", want, events.String())
				}
			}
		})
	}
}

// Pages show texts as texts, and load and run nothing.
func TestPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const script = "<script>alert(1)</script>"
	w.config.UISettings = &model.ConfigUISettings{LogoURL: "https://cdn.example/logo.png", LegalTemplate: script, PrimaryColor: "red}*{x:url(//evil)"}
	w.provider.person["preferred_username"] = script
	b := w.browser()
	page := b.send(b.prove().Header.Get("Location"), nil)
	body, policy := text(t, page), page.Header.Get("Content-Security-Policy")
	if strings.Contains(body, "<script") || strings.Contains(body, "evil") || !strings.Contains(body, "&lt;script&gt;") ||
		!strings.Contains(body, `<iframe title="Legal notice" sandbox="allow-popups allow-popups-to-escape-sandbox" src="../console/legal">`) {
		t.Error(body)
	}
	for _, rule := range []string{"img-src https://cdn.example/logo.png;", "frame-src 'self'", "form-action 'self' http://127.0.0.1:4711", "base-uri 'none'"} {
		if !strings.Contains(policy, rule) {
			t.Errorf("%s is not in %s", rule, policy)
		}
	}
	if strings.Contains(policy, "script") || strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	w.config.UISettings.PrimaryColor = "#123456"
	if body := text(t, w.browser().send(base+"/auth/oidc/callback", nil)); !strings.Contains(body, "--primary:#123456") {
		t.Errorf("the page has another color: %s", body)
	}
}

// Programs learn how people can sign in. Hosts that a request names are in no address.
func TestInfo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.Connectors = []model.AuthConnector{{ID: "broken", IdentityProviders: model.IdentityProviders{OIDC: &model.OIDCProvider{IssuerURL: "https://x.example", RedirectURI: base + "/elsewhere"}}}}
	answer := w.browser().send("https://evil.example/auth/info", nil, "Accept", "application/json", "X-Forwarded-Host", "evil.example")
	var info describelogin.Output
	if err := json.Unmarshal([]byte(text(t, answer)), &info); err != nil {
		t.Fatal(err)
	}
	if len(info.Methods.SSO) != 1 || info.Methods.SSO[0].LoginEndpoint != base+"/auth/oidc/login" || info.Methods.SSO[0].TokenEndpoint != base+"/auth/token" {
		t.Errorf("%+v", info)
	}
}

// What is stored of a sign-in is removed once nothing can come of it.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.signIn()
	for _, row := range []struct {
		after time.Duration
		left  int
	}{{0, 1}, {11 * time.Minute, 0}} {
		w.clock.forward(row.after)
		if err := w.server.Run(t.Context(), expirekeys.Function); err != nil {
			t.Fatal(err)
		}
		if got := len(w.stored(logins.Resource)); got != row.left {
			t.Errorf("after %s: %d sign-ins are left", row.after, got)
		}
	}
}

// The console signs people in as a program does: its address below that of the platform gets the code, and no other address of the
// platform or of another host does. Source: ADR-0031.
func TestConsoleSignsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	query := asked()
	query.Set("redirect_uri", base+oauth.ConsolePath)
	begun := b.send(base+"/auth/oidc/login?"+query.Encode(), nil)
	callback := b.send(base+"/auth/oidc/callback?"+w.provider.login(begun.Header.Get("Location")).Encode(), nil)
	at, err := url.Parse(callback.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	if page := text(t, b.send(at.String(), nil)); !strings.Contains(page, "Sign in to the console?") {
		t.Errorf("%s", page)
	}
	decided := b.send(base+"/auth/confirm", url.Values{"id": {at.Query().Get("id")}, "decision": {"allow"}}, "Sec-Fetch-Site", "same-origin")
	back, err := url.Parse(decided.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), base+oauth.ConsolePath+"?") {
		t.Fatalf("%s, %v", back, err)
	}
	status, answer := w.fetch(back.Query().Get("code"), func(form url.Values) { form.Set("redirect_uri", base+oauth.ConsolePath) })
	if status != http.StatusOK || answer["user"] != "ana" {
		t.Errorf("%d %v", status, answer)
	}
	for _, other := range []string{
		base + "/console/", base + "/console?x=y", base + "/console#x", base + "/auth/confirm", base, "http://platform.example/console",
		"https://platform.example.evil.example/console", "https://evil.example/console", "/console", base + "/console/../x",
	} {
		query.Set("redirect_uri", other)
		w.wantStart(other, query)
	}
}

// wantStart fails the test unless a start with a query is a page with 400, which leads nowhere.
func (w *world) wantStart(about string, query url.Values) {
	w.t.Helper()
	answer := w.browser().send(base+"/auth/oidc/login?"+query.Encode(), nil)
	if answer.StatusCode != http.StatusBadRequest || answer.Header.Get("Location") != "" {
		w.t.Errorf("%s: %d %s", about, answer.StatusCode, answer.Header.Get("Location"))
	}
}

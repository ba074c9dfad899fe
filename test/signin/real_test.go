package signin_test

import (
	"crypto/tls"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/functions/confirmlogin"
	"management.platform.sh/functions/endlogin"
	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/shared/model"
	"management.platform.sh/test/signin/providertest"
)

// realProvider is a provider that others have written, and its client.
type realProvider struct {
	*providertest.Provider
	t               *testing.T
	callback, after string
}

func startProvider(t *testing.T, client providertest.Client) *realProvider {
	t.Helper()
	p := &realProvider{t: t, callback: base + "/auth/oidc/callback", after: base + "/console"}
	client.Secret, client.Callback, client.After = clientSecret, p.callback, p.after
	p.Provider = providertest.Start(t, "providertest", client)
	return p
}

// page loads a page of the provider.
func (p *realProvider) page(address string) string {
	p.t.Helper()
	_, found := p.ask(p.visitor(), address, nil)
	return found
}

// visitor is a browser with a session at the provider.
func (p *realProvider) visitor() *http.Client {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	browser := &http.Client{
		Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.Trusted, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(next *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(next.URL.String(), base) {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	p.t.Cleanup(browser.CloseIdleConnections)
	return browser
}

// ask sends a request of a browser to the provider. A form makes it a POST.
func (p *realProvider) ask(browser *http.Client, address string, form url.Values) (*http.Response, string) {
	p.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := browser.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer, text(p.t, answer)
}

var (
	formAction = regexp.MustCompile(`action="([^"]+)"`)
	formInput  = regexp.MustCompile(`<input[^>]*>`)
	inputName  = regexp.MustCompile(` name="([^"]+)"`)
	inputValue = regexp.MustCompile(` value="([^"]*)"`)
)

// typed is what a person enters at the pages of the providers, by the names of the inputs. The ID or the name of the person is added.
func typed(person string) map[string]string {
	return map[string]string{"login": person, "username": person, "password": "any"}
}

// inputs returns the form of a page as a person sends it.
func inputs(page, person string) url.Values {
	form := url.Values{}
	for _, input := range formInput.FindAllString(page, -1) {
		name := inputName.FindStringSubmatch(input)
		if name == nil {
			continue
		}
		if value := inputValue.FindStringSubmatch(input); value != nil {
			form.Set(name[1], html.UnescapeString(value[1]))
		}
		if text := typed(person)[name[1]]; text != "" {
			form.Set(name[1], text)
		}
	}
	return form
}

// login signs a person in at the pages of the provider, and returns the query with which the browser comes back.
func (p *realProvider) login(address, person string) url.Values {
	p.t.Helper()
	return p.loginIn(p.visitor(), address, person)
}

// loginIn is login in a browser.
func (p *realProvider) loginIn(browser *http.Client, address, person string) url.Values {
	p.t.Helper()
	var form url.Values
	// The provider asks who signs in, and then whether the client may know it.
	for range 4 {
		answer, page := p.ask(browser, address, form)
		if back := answer.Header.Get("Location"); back != "" {
			at, err := url.Parse(back)
			if err != nil {
				p.t.Fatal(err)
			}
			return at.Query()
		}
		action := formAction.FindStringSubmatch(page)
		if answer.StatusCode != http.StatusOK || action == nil {
			p.t.Fatalf("the provider answers %d %s", answer.StatusCode, page)
		}
		next, err := answer.Request.URL.Parse(action[1])
		if err != nil {
			p.t.Fatal(err)
		}
		address, form = next.String(), inputs(page, person)
	}
	p.t.Fatal("the provider does not end its questions")
	return nil
}

// A person signs in at a provider that others have written, over TLS: discovery, PKCE, the client secret, an RSA signature, iss, and the
// UserInfo endpoint. Their second sign-in finds the same user. Source: Spec 5.4; ADR-0031.
func TestRealProvider(t *testing.T) {
	t.Parallel()
	p := startProvider(t, providertest.Client{})
	w := newWorld(t)
	w.clock.forward(time.Since(w.clock.Now()))
	w.config.Auth.OIDC = &model.OIDCProvider{
		IssuerURL: p.Issuer, ClientID: clientID, ClientSecret: clientSecret, RedirectURI: p.callback, CAFile: p.CAFile,
		GroupsClaim: "groups", Scopes: []string{"profile", "email", "groups"},
	}
	signIn := func() {
		t.Helper()
		b := w.browser()
		back := p.login(b.start(), "1001")
		if back.Get("iss") != p.Issuer {
			t.Errorf("the provider comes back with %v", back)
		}
		caller := w.caller(w.fetched(b.confirm(b.send(base+"/auth/oidc/callback?"+back.Encode(), nil), "allow").Get("code")))
		if caller.Owner.Name != "ana" || !caller.InGroup("dev") || !caller.InGroup("ops") {
			t.Errorf("%+v", caller)
		}
	}
	signIn()
	w.config.Auth.OIDC.GetUserInfo = true
	signIn()
	ana := w.user("ana")
	if users := w.stored("users"); len(users) != 1 || ana.Spec.Subject != "1001" || ana.Spec.Email != "ana@example.com" || ana.Spec.DisplayName != "Ana" ||
		!slices.Equal(ana.Spec.SSOGroups, []string{"dev", "ops"}) {
		t.Errorf("%d users, %+v", len(users), ana.Spec)
	}
	// Their session at the provider ends where the metadata say.
	w.handler = w.server.Mount(endlogin.Function)
	w.config.Auth.OIDC.PostLogoutRedirectURI = p.after
	end := w.browser().send(base+"/auth/oidc/logout", nil)
	if page := p.page(end.Header.Get("Location")); !strings.Contains(page, `name="logout"`) {
		t.Errorf("the sign-out is %s", page)
	}
	w.config.Auth.OIDC.PostLogoutRedirectURI = "https://evil.example"
	if page := p.page(w.browser().send(base+"/auth/oidc/logout", nil).Header.Get("Location")); !strings.Contains(page, "post_logout_redirect_uri not registered") {
		t.Errorf("another address is %s", page)
	}
	w.handler = w.server.Mount(startlogin.Function, finishlogin.Function, confirmlogin.Function, exchangetoken.Function)
	// A code works once, and not with the secret of somebody else.
	b := w.browser()
	back := p.login(b.start(), "1001")
	w.config.Auth.OIDC.ClientSecret = "another"
	if answer := b.send(base+"/auth/oidc/callback?"+back.Encode(), nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the settings have changed: %d", answer.StatusCode)
	}
	b = w.browser()
	back = p.login(b.start(), "1001")
	if answer := b.send(base+"/auth/oidc/callback?"+back.Encode(), nil); answer.StatusCode/100 != 4 {
		t.Errorf("a wrong secret: %d", answer.StatusCode)
	}
	// Nobody can sign in at a provider whose certificate no authority has signed.
	w.config.Auth.OIDC.CAFile = w.provider.caFile
	if answer := w.browser().send(base+"/auth/oidc/login?"+asked().Encode(), nil); answer.StatusCode < 500 {
		t.Errorf("another authority: %d", answer.StatusCode)
	}
}

// fetched exchanges a code for a key.
func (w *world) fetched(code string) map[string]any {
	w.t.Helper()
	status, answer := w.fetch(code, nil)
	if status != http.StatusOK {
		w.t.Fatalf("token: %d %v", status, answer)
	}
	return answer
}

// A person signs in at providers that others have written in Go, and is asked about again with the refresh token, until the provider has ended it.
// The one has claims in the UserInfo alone. The other has a path in its issuer, knows no PKCE, and names nobody.
// Source: OpenID Connect Core 1.0, 5.3 and 12; ADR-0035.
func TestGoProviders(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("they compile for minutes when cold")
	}
	for name, row := range map[string]struct {
		change      func(*model.OIDCProvider)
		user, email string
		groups      []string
		// replaces tells that a sign-in replaces the refresh token of the one before.
		replaces bool
	}{
		providertest.Zitadel: {
			change: func(settings *model.OIDCProvider) { settings.GetUserInfo = true },
			user:   "ana", email: "ana@example.com", groups: []string{"dev", "ops"},
		},
		providertest.Dex: {
			change: func(*model.OIDCProvider) {},
			user:   "kilgore", email: "kilgore@kilgore.trout", groups: []string{"authors"}, replaces: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &realProvider{t: t, callback: base + "/auth/oidc/callback"}
			p.Provider = providertest.StartGo(t, "../providers", name, providertest.Client{Secret: clientSecret, Callback: p.callback})
			w := newWorld(t)
			w.clock.forward(time.Since(w.clock.Now()))
			w.config.Auth.OIDC = &model.OIDCProvider{
				IssuerURL: p.Issuer, ClientID: clientID, ClientSecret: clientSecret, RedirectURI: p.callback, CAFile: p.CAFile,
				GroupsClaim: "groups", Scopes: []string{"profile", "email", "groups", "offline_access"},
			}
			row.change(w.config.Auth.OIDC)
			login := func(address string) url.Values { return p.login(address, "ana") }
			first := w.keep("oidc", login)
			w.clock.forward(time.Second)
			second := w.keep("oidc", login)
			person := w.user(row.user)
			if users := w.stored("users"); len(users) != 1 || person.Spec.Email != row.email || person.Spec.Subject == "" || !slices.Equal(person.Spec.SSOGroups, row.groups) {
				t.Errorf("%d users, %+v", len(users), person.Spec)
			}
			for _, group := range row.groups {
				if !first.callerOf().InGroup(group) || !second.callerOf().InGroup(group) {
					t.Errorf("not in %s", group)
				}
			}
			own := w.ownOf(row.user)
			for range 2 {
				w.clock.forward(16 * time.Minute)
				second.used()
				if first.works() {
					first.used()
				}
				if done := w.run(); done.Kept == 0 || first.works() == row.replaces || !second.works() || !own.works() {
					t.Errorf("%+v, the keys work: %v, %v, %v", done, first.works(), second.works(), own.works())
				}
			}
			if answer, page := p.ask(p.visitor(), strings.TrimSuffix(p.Issuer, "/dex")+"/leave", url.Values{}); answer.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", answer.StatusCode, page)
			}
			w.clock.forward(16 * time.Minute)
			second.used()
			if done := w.run(); done.Ended == 0 || first.works() || second.works() || own.works() {
				t.Errorf("after the end at the provider: %+v, the keys work: %v, %v, %v", done, first.works(), second.works(), own.works())
			}
		})
	}
}

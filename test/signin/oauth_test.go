package signin_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/requestdevice"
	"management.platform.sh/functions/revokecredentials"
	"management.platform.sh/shared/credentials/tokenexchange"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/metadata"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/token"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/test/signin/providertest"
)

// RoundTrip serves a request of a program. It implements http.RoundTripper.
func (w *world) RoundTrip(request *http.Request) (*http.Response, error) {
	got := request.Clone(request.Context())
	got.RemoteAddr = "203.0.113.9:1234"
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, got)
	return recorder.Result(), nil
}

// raw sends a request of a program, and returns the answer with its fields. It fails the test unless the answer is a JSON object.
func (w *world) raw(method, path, body string, header ...string) (*http.Response, map[string]any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, _ := w.RoundTrip(request)
	fields := map[string]any{}
	if body := text(w.t, answer); json.Unmarshal([]byte(body), &fields) != nil {
		w.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, body)
	}
	return answer, fields
}

// metadata returns the metadata of the platform.
func (w *world) metadata() metadata.Metadata {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, base+"/.well-known/oauth-authorization-server", nil))
	var found metadata.Metadata
	if err := json.Unmarshal(recorder.Body.Bytes(), &found); err != nil || recorder.Code != http.StatusOK || recorder.Header().Get("Content-Type") != "application/json" {
		w.t.Fatalf("%d %s", recorder.Code, recorder.Body)
	}
	return found
}

// library is a program that uses a library of others, with the metadata of the platform and without any setting for it.
func (w *world) library(scopes ...string) (context.Context, *oauth2.Config) {
	found := w.metadata()
	return context.WithValue(w.t.Context(), oauth2.HTTPClient, &http.Client{Transport: w}), &oauth2.Config{
		ClientID: oauth.ClientID, RedirectURL: program, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: found.AuthorizationEndpoint, TokenURL: found.TokenEndpoint, DeviceAuthURL: found.DeviceAuthorizationEndpoint},
	}
}

// backFrom signs the person of the provider in at the authorization endpoint, and returns the query with which the browser comes back.
func (w *world) backFrom(address string) url.Values {
	w.t.Helper()
	b := w.browser()
	offered := b.send(address, nil)
	page := text(w.t, offered)
	var begin string
	for _, found := range links.FindAllStringSubmatch(page, -1) {
		if at := html.UnescapeString(found[1]); strings.HasPrefix(at, "/auth/oidc/login?") {
			begin = base + at
		}
	}
	if offered.StatusCode != http.StatusOK || begin == "" || !strings.Contains(page, "/auth/password/login?") {
		w.t.Fatalf("%d %s", offered.StatusCode, page)
	}
	begun := b.send(begin, nil)
	back := b.confirm(b.send(base+"/auth/oidc/callback?"+w.provider.login(begun.Header.Get("Location")).Encode(), nil), "allow")
	if back.Get("iss") != w.metadata().Issuer {
		w.t.Errorf("the program gets %v", back)
	}
	return back
}

// A client library of others signs a person in, with a code and as a device, and renews the key: it knows the metadata, sends the scopes where
// the standards have them, and finds out by itself how it authenticates. Source: RFC 6749, 4.1 and 6; RFC 7636; RFC 8414; RFC 8628.
func TestOAuthLibrary(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	ctx, config := w.library("openid", "profile", oauth.OfflineAccess)
	renew := func(about string, token *oauth2.Token) {
		t.Helper()
		for range 2 {
			if scope := token.Extra("scope"); token.RefreshToken == "" || scope != oauth.OfflineAccess || !(kept{w, secret.String(token.AccessToken), ""}).works() {
				t.Fatalf("%s: %v, scope %q", about, token, scope)
			}
			next, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
			if err != nil {
				t.Fatalf("%s: %v", about, err)
			}
			token = next
		}
	}
	token, err := config.Exchange(ctx, w.backFrom(config.AuthCodeURL(known, oauth2.S256ChallengeOption(verifier))).Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	renew("a code", token)

	// The library remembers how it authenticates. It learns that anew for the device.
	ctx, config = w.library("openid", "profile", oauth.OfflineAccess)
	device, err := config.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	id, _ := b.toConfirm(device.UserCode)
	b.decide(id, "allow")
	device.Interval = 1
	if token, err = config.DeviceAccessToken(ctx, device, oauth2.VerifierOption(verifier)); err != nil {
		t.Fatal(err)
	}
	renew("a device", token)
}

// A client that others have written signs a person in, with the address of the platform and the ID of the client alone: it compares the
// metadata, iss and state with what it expects. Source: RFC 8414; RFC 9207.
func TestOpenIDClient(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	w.wantTokens(providertest.RunClient)
}

// Authlib does the same. It has no part for devices: it sends the grant of RFC 8628 as any other one. Source: RFC 7009; RFC 8414.
func TestAuthlib(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	w.wantTokens(providertest.RunAuthlib)
}

// wantTokens runs a program that signs people in with a code and as a device, renews both keys, and revokes the refresh token of a second
// sign-in with a code.
func (w *world) wantTokens(run func(t *testing.T, folder, issuer, platform, browser string) []byte) {
	w.t.Helper()
	t, isTest := w.t.(*testing.T)
	if !isTest {
		w.t.Fatal("only a test runs a program")
	}
	server := httptest.NewServer(w.handler)
	defer server.Close()
	browser := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if address := r.FormValue("address"); address != "" {
			_, _ = io.WriteString(out, rootOfProgram+"?"+w.backFrom(address).Encode())
			return
		}
		b := w.browser()
		id, _ := b.toConfirm(r.FormValue("code"))
		b.decide(id, "allow")
		// The program may have asked before.
		w.clock.forward(time.Minute)
	}))
	defer browser.Close()
	type tokens struct {
		Scopes, Keys []string
		// After is the error that the refresh token has in the end. Empty: it was not used again.
		After string
	}
	var got map[string]tokens
	if err := json.Unmarshal(run(t, "providertest", base, server.URL, browser.URL), &got); err != nil {
		t.Fatal(err)
	}
	for about, after := range map[string]string{"code": "", "device": "", "revoked": "invalid_grant"} {
		one := got[about]
		if !slices.Equal(one.Scopes, []string{oauth.OfflineAccess, oauth.OfflineAccess}) || len(one.Keys) != 2 || one.Keys[0] == one.Keys[1] || one.After != after {
			t.Errorf("%s: %d keys, %v, %q", about, len(one.Keys), one.Scopes, one.After)
			continue
		}
		if works := (kept{w, secret.String(one.Keys[1]), ""}).works(); works != (after == "") {
			t.Errorf("%s: the key works: %v", about, works)
		}
	}
}

// The scopes of the request for a code count, unless the request for the key names others. Of these, the program gets those that there are,
// and the answer says which. Source: RFC 6749, 3.3, 4.1.1 and 5.1; RFC 8628, 3.1.
func TestScope(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	byCode := func(scope string, change func(url.Values)) (int, map[string]any) {
		b := w.browser()
		query := asked()
		query.Set("scope", scope)
		begun := b.send(base+"/auth/oidc/login?"+query.Encode(), nil)
		return w.fetch(b.confirm(b.send(base+"/auth/oidc/callback?"+w.provider.login(begun.Header.Get("Location")).Encode(), nil), "allow").Get("code"), change)
	}
	byDevice := func(scope string, change func(url.Values)) (int, map[string]any) {
		form := askedByDevice()
		form.Set("scope", scope)
		_, answer := w.postForm("/auth/device/code", "203.0.113.9", form)
		code, _ := answer["user_code"].(string)
		device, _ := answer["device_code"].(string)
		b := w.browser()
		id, _ := b.toConfirm(code)
		b.decide(id, "allow")
		return w.poll(device, change)
	}
	for about, sign := range map[string]func(string, func(url.Values)) (int, map[string]any){"a code": byCode, "a device": byDevice} {
		for _, row := range []struct {
			before, with string
			want         any
		}{
			{"", "", nil},
			{"openid profile email", "", ""},
			{"openid offline_access", "", "offline_access"},
			{"offline_access", "openid", ""},
			{"", "email offline_access", "offline_access"},
			{"admin", strings.Repeat("openid ", 100) + "offline_access", "offline_access"},
		} {
			status, answer := sign(row.before, func(form url.Values) { form.Set("scope", row.with) })
			if scope := answer["scope"]; status != http.StatusOK || scope != row.want || (answer["refresh_token"] != nil) != (row.want == "offline_access") {
				t.Errorf("%s, %q and %q: %d %v", about, row.before, row.with, status, answer)
			}
		}
	}
	query := asked()
	query["scope"] = []string{"openid", "offline_access"}
	w.wantStart("two scopes", query)
}

// The authorization endpoint offers the ways to sign in for a program that asks rightly. A browser that has one way goes on in it.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := func(query url.Values) *http.Response {
		return w.browser().send(base+oauth.AuthorizePath+"?"+query.Encode(), nil)
	}
	w.config.Auth.Password = &model.PasswordAuth{Disabled: true}
	if only := at(asked()); only.StatusCode != http.StatusSeeOther || only.Header.Get("Location") != "/auth/oidc/login?"+asked().Encode() {
		t.Errorf("one way: %d %s", only.StatusCode, only.Header.Get("Location"))
	}
	for name, value := range map[string]string{"redirect_uri": "https://evil.example/cb", "client_id": "x", "code_challenge_method": "plain", "response_type": "token", "state": "x"} {
		query := asked()
		query.Set(name, value)
		if answer := at(query); answer.StatusCode != http.StatusBadRequest || answer.Header.Get("Location") != "" {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
	// An answer at another address of the platform would name another issuer.
	w.config.PlatformHost = "other.example"
	if none := at(asked()); none.StatusCode != http.StatusBadRequest || w.metadata().AuthorizationEndpoint != "" {
		t.Errorf("no way at the address: %d, %+v", none.StatusCode, w.metadata())
	}
}

// The metadata say what there is, and nothing else. Source: RFC 8414, 2 and 3.
func TestMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	grants := []string{"refresh_token", tokenexchange.GrantType, "authorization_code", oauth.DeviceGrant}
	got := w.metadata()
	if got.Issuer != base || got.AuthorizationEndpoint != base+"/auth/authorize" || got.TokenEndpoint != base+"/auth/token" ||
		got.DeviceAuthorizationEndpoint != base+"/auth/device/code" || got.RevocationEndpoint != base+"/auth/revoke" || !got.IssParameterSupported || !slices.Equal(got.GrantTypesSupported, grants) ||
		!slices.Equal(got.CodeChallengeMethodsSupported, []string{"S256"}) || !slices.Equal(got.ScopesSupported, []string{oauth.OfflineAccess}) ||
		!slices.Equal(got.ResponseTypesSupported, []string{"code"}) || !slices.Equal(got.TokenEndpointAuthMethodsSupported, []string{"none", "client_secret_basic"}) ||
		!slices.Equal(got.RevocationEndpointAuthMethodsSupported, []string{"none", "client_secret_basic"}) {
		t.Errorf("%+v", got)
	}
	w.env.DeviceLogin = settings.Off
	if got := w.metadata(); got.DeviceAuthorizationEndpoint != "" || !slices.Equal(got.GrantTypesSupported, grants[:3]) {
		t.Errorf("without devices: %+v", got)
	}
	w.config.Auth.OIDC, w.config.Auth.Password, w.config.PlatformHost = nil, &model.PasswordAuth{Disabled: true}, "platform.example"
	if got := w.metadata(); got.AuthorizationEndpoint != "" || got.IssParameterSupported || got.Issuer != base || !slices.Equal(got.GrantTypesSupported, grants[:2]) ||
		len(got.ResponseTypesSupported)+len(got.CodeChallengeMethodsSupported) > 0 {
		t.Errorf("without a way to sign in: %+v", got)
	}
	w.config.PlatformHost = ""
	if answer, _ := w.raw(http.MethodGet, "/.well-known/oauth-authorization-server", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("without an address: %d", answer.StatusCode)
	}
}

// A client says who it is in the form, by HTTP Basic authentication, or in both, at each grant. One that uses Basic and is wrong reads so as
// RFC 6749 says, before its code is looked at. Source: RFC 6749, 2.3.1 and 5.2.
func TestClients(t *testing.T) {
	t.Parallel()
	w := deviceWorld(t)
	basic := func(name, password string) string {
		request := http.Request{Header: http.Header{}}
		request.SetBasicAuth(name, password)
		return request.Header.Get("Authorization")
	}
	b := w.browser()
	code := b.confirm(b.prove(), "allow").Get("code")
	grants := map[string]url.Values{
		"a code":    {"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {program}},
		"a device":  {"grant_type": {oauth.DeviceGrant}, "device_code": {"x"}, "code_verifier": {verifier}},
		"a refresh": {"grant_type": {"refresh_token"}, "refresh_token": {"x"}},
		"a job":     {"grant_type": {tokenexchange.GrantType}, "subject_token": {"x"}, "subject_token_type": {tokenexchange.TypeJWT}},
		"codes":     {"code_challenge": {oauth.S256(verifier)}, "code_challenge_method": {"S256"}},
		"an end":    {"token": {"x"}},
	}
	for about, form := range grants {
		path := map[string]string{"codes": "/auth/device/code", "an end": oauth.RevokePath}[about]
		if path == "" {
			path = "/auth/token"
		}
		send := func(header, id string) (*http.Response, map[string]any) {
			sent := url.Values{}
			for name, values := range form {
				sent[name] = values
			}
			if id != "" {
				sent.Set("client_id", id)
			}
			return w.raw(http.MethodPost, path, sent.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Authorization", header)
		}
		for header, id := range map[string]string{
			basic(oauth.ClientID, "hush"): "", basic("x", ""): oauth.ClientID, basic(oauth.ClientID, ""): "x", "Basic": oauth.ClientID, "basic ?": "", basic("", ""): "",
		} {
			answer, fields := send(header, id)
			if challenge := answer.Header.Get("WWW-Authenticate"); answer.StatusCode != http.StatusUnauthorized || fields["error"] != "invalid_client" ||
				!strings.HasPrefix(challenge, "Basic realm=") || answer.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, %q and %q: %d %q %v", about, header, id, answer.StatusCode, challenge, fields)
			}
		}
		if answer, fields := send("", "x"); answer.StatusCode != http.StatusBadRequest || fields["error"] != "invalid_client" {
			t.Errorf("%s of another client: %d %v", about, answer.StatusCode, fields)
		}
		// What is in another scheme is no authentication of a client.
		if _, fields := send("Bearer x", ""); (fields["error"] == "invalid_client") != (about != "a job" && about != "an end") {
			t.Errorf("%s without a client: %v", about, fields)
		}
		for _, id := range []string{"", oauth.ClientID} {
			if answer, fields := send(basic(oauth.ClientID, ""), id); answer.StatusCode == http.StatusUnauthorized || fields["error"] == "invalid_client" {
				t.Errorf("%s by Basic with %q: %d %v", about, id, answer.StatusCode, fields)
			}
			if about == "a code" {
				break
			}
		}
	}
	if keys := w.stored("ownedaccesskeys"); len(keys) != 1 {
		t.Errorf("the code that was left has made %d keys", len(keys))
	}
}

// unavailable is a state that cannot be reached.
type unavailable struct{ store.Store }

func (unavailable) GetByDigest(context.Context, string) (store.Record, error) {
	return store.Record{}, store.ErrUnavailable
}

// Every error at and below an endpoint for clients of OAuth is one of OAuth, with the status that it has elsewhere. Source: RFC 6749, 5.2.
func TestOAuthErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stores, broken := w.env.Stores, false
	w.env.Stores = func(name string) store.Store {
		if broken {
			return unavailable{stores(name)}
		}
		return stores(name)
	}
	w.handler = w.server.Mount(exchangetoken.Function, requestdevice.Function, revokecredentials.Function)
	const form, token, device = "application/x-www-form-urlencoded", "/auth/token", "/auth/device/code"
	code := asked()
	code.Set("grant_type", "authorization_code")
	code.Set("code", "x")
	code.Set("code_verifier", verifier)
	for about, row := range map[string]struct {
		method, path, kind, body, accept string
		status                           int
		want                             string
	}{
		"no type":            {"POST", token, "", "x=y", "", 415, "invalid_request"},
		"JSON":               {"POST", token, "application/json", "{}", "", 415, "invalid_request"},
		"a type with a text": {"POST", token, `a"\` + "\u00e4", "x", "", 415, "invalid_request"},
		"no form":            {"POST", token, form, "%zz", "", 400, "invalid_request"},
		"no form, as a page": {"POST", token, form, "%zz", "text/html", 400, "invalid_request"},
		"no form, as YAML":   {"POST", token, form, "%zz", "application/yaml", 400, "invalid_request"},
		"a large form":       {"POST", token, form, strings.Repeat("x", limits.FormBytes+1), "", 413, "invalid_request"},
		"a GET":              {"GET", token, "", "", "text/html", 405, "invalid_request"},
		"a PUT":              {"PUT", device, form, "", "", 405, "invalid_request"},
		"a path below":       {"POST", token + "/x", form, "", "", 404, "invalid_request"},
		"a slash":            {"POST", device + "/", form, "", "", 404, "invalid_request"},
		"a path of the API":  {"POST", "/kubernetes/management/auth/token/x", form, "", "", 404, "invalid_request"},
		"the API":            {"GET", "/kubernetes/management/auth/token", "", "", "", 405, "invalid_request"},
		"a query":            {"POST", device + "?%zz", form, "", "", 400, "invalid_request"},
		"no token":           {"POST", oauth.RevokePath, form, "", "", 400, "invalid_request"},
		"two tokens":         {"POST", oauth.RevokePath, form, "token=x&token=y", "", 400, "invalid_request"},
		"an end as JSON":     {"POST", oauth.RevokePath, "application/json", `{"token":"x"}`, "", 415, "invalid_request"},
		"a GET of an end":    {"GET", oauth.RevokePath, "", "", "", 405, "invalid_request"},
	} {
		answer, fields := w.raw(row.method, row.path, row.body, "Content-Type", row.kind, "Accept", row.accept)
		w.wantOAuthError(about, answer, fields, row.status, row.want)
	}
	asks := func() (*http.Response, map[string]any) {
		return w.raw(http.MethodPost, device, askedByDevice().Encode(), "Content-Type", form)
	}
	for range limits.DeviceRequestsOfAddress {
		asks()
	}
	answer, fields := asks()
	w.wantOAuthError("throttled", answer, fields, http.StatusTooManyRequests, "temporarily_unavailable")
	if answer.Header.Get("Retry-After") == "" {
		t.Errorf("the answer does not say when to try again: %v", answer.Header)
	}
	broken = true
	w.handler = w.server.Mount(exchangetoken.Function)
	code.Set("client_id", oauth.ClientID)
	answer, fields = w.raw(http.MethodPost, token, code.Encode(), "Content-Type", form)
	w.wantOAuthError("no state", answer, fields, http.StatusServiceUnavailable, "temporarily_unavailable")
	// Other paths have a Status.
	if _, fields := w.raw(http.MethodPost, "/auth/tokens", "x", "Content-Type", form); fields["kind"] != "Status" {
		t.Errorf("another path: %v", fields)
	}
}

// wantOAuthError fails the test unless an answer is an error of OAuth with a status.
func (w *world) wantOAuthError(about string, answer *http.Response, fields map[string]any, status int, want string) {
	w.t.Helper()
	why, _ := fields["error_description"].(string)
	odd := strings.ContainsFunc(why, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
	if answer.StatusCode != status || fields["error"] != want || why == "" || odd || len(fields) != 2 ||
		answer.Header.Get("Content-Type") != "application/json" || answer.Header.Get("Cache-Control") != "no-store" {
		w.t.Errorf("%s: %d %v %v", about, answer.StatusCode, fields, answer.Header)
	}
	if status == http.StatusMethodNotAllowed && answer.Header.Get("Allow") != http.MethodPost {
		w.t.Errorf("%s: it allows %q", about, answer.Header.Get("Allow"))
	}
}

// A code that its program uses twice ends what it has given. Somebody who has the code alone ends nothing. Source: RFC 6749, 4.1.2.
func TestCodeReused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var events processtest.Log
	w.audited(&events)
	for about, scope := range map[string]string{"a key": "", "a refresh key": oauth.OfflineAccess} {
		b := w.browser()
		code := b.confirm(b.prove(), "allow").Get("code")
		wants := func(form url.Values) { form.Set("scope", scope) }
		_, answer := w.fetch(code, wants)
		got := (&refreshing{kept: kept{world: w}}).with(answer)
		for stranger, change := range map[string]func(url.Values){
			"no verifier": func(form url.Values) { form.Set("code_verifier", strings.Repeat("x", 43)) },
			"an address":  func(form url.Values) { form.Set("redirect_uri", program+"y") },
		} {
			if status, answer := w.fetch(code, change); status != http.StatusBadRequest || answer["error"] != "invalid_grant" || !got.works() {
				t.Errorf("%s, %s: %d %v, and the key works: %v", about, stranger, status, answer, got.works())
			}
		}
		for range 2 {
			if status, answer := w.fetch(code, wants); status != http.StatusBadRequest || answer["error"] != "invalid_grant" || got.works() {
				t.Errorf("%s: %d %v, and the key works: %v", about, status, answer, got.works())
			}
		}
		if scope != "" {
			got.wantEnded(about)
		}
		if left := w.stored("ownedaccesskeys"); len(left) > 0 {
			t.Errorf("%s: %d keys are left", about, len(left))
		}
		key := got.name
		if scope != "" {
			key = got.family
		}
		if !strings.Contains(events.String(), `"code_reused"`) || !strings.Contains(events.String(), `signin-key":"`+key+`"`) ||
			!strings.Contains(w.log.String(), "a code was used twice, and its key has ended") {
			t.Errorf("%s: the audit and the log do not say so: %s", about, events.String())
		}
	}
}

// interrupted is a state in which something happens before the write that notes the key of a sign-in, or after it.
type interrupted struct {
	store.Store
	before, after *func()
}

func (i interrupted) Update(ctx context.Context, record store.Record) (int64, error) {
	run := func(what *func()) {
		if then := *what; then != nil && strings.Contains(string(record.Object), `"key":`) {
			*what = nil
			then()
		}
	}
	run(i.before)
	revision, err := i.Store.Update(ctx, record)
	run(i.after)
	return revision, err
}

// A code that is used again while its key is being made, or just after that, leaves no key.
func TestCodeReusedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for _, scope := range []string{"", oauth.OfflineAccess} {
			w := newWorld(t)
			b := w.browser()
			code := b.confirm(b.prove(), "allow").Get("code")
			var again func()
			var never func()
			happened := 0
			again = func() {
				happened++
				if status, answer := w.fetch(code, nil); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
					t.Errorf("the second time: %d %v", status, answer)
				}
			}
			before, after := &again, &never
			if late {
				before, after = &never, &again
			}
			env := &platform.Environment{
				Stores: func(name string) store.Store {
					if name == logins.Resource {
						return interrupted{w.env.Stores(name), before, after}
					}
					return w.env.Stores(name)
				},
				Now: w.env.Now, Random: w.env.Random, Log: w.env.Log, Config: w.env.Config, Encryption: w.env.Encryption,
			}
			wanted, _ := token.ParseRequest(scope, "")
			granted, err := token.Open(env, kinds.AccessKeys(env)).RedeemCode(t.Context(), code, verifier, program, wanted)
			if happened != 1 || err == nil && (!late || (kept{w, granted.Key, ""}).works()) || err != nil && !errors.Is(err, token.ErrInvalidGrant) {
				t.Errorf("late %v, scope %q: %d times, %v", late, scope, happened, err)
			}
			if left := w.stored("ownedaccesskeys"); len(left) > 0 {
				t.Errorf("late %v, scope %q: %d keys are left", late, scope, len(left))
			}
		}
	}
}

// A client at a provider is registered for one way to authenticate, which the metadata need not name. The platform finds it out without
// spending a code, and knows it from then on. Source: RFC 6749, 2.3.1; OpenID Connect Core 1.0, 9.
func TestRegisteredMethod(t *testing.T) {
	t.Parallel()
	for about, row := range map[string]struct {
		methods []string
		// requests are those to the token endpoint: of a first sign-in, and of a second one.
		requests [2]int64
		status   int
	}{
		"no methods":   {nil, [2]int64{2, 1}, http.StatusSeeOther},
		"both":         {[]string{"client_secret_basic", "client_secret_post"}, [2]int64{2, 1}, http.StatusSeeOther},
		"basic alone":  {[]string{"client_secret_basic", "private_key_jwt"}, [2]int64{1, 1}, http.StatusBadRequest},
		"post alone":   {[]string{"client_secret_post"}, [2]int64{1, 1}, http.StatusSeeOther},
		"wrong secret": {nil, [2]int64{2, 2}, http.StatusBadRequest},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.Auth.OIDC.Scopes = []string{"offline_access"}
			w.provider.posts = true
			w.provider.metadata = func(metadata map[string]any) {
				delete(metadata, "token_endpoint_auth_methods_supported")
				if row.methods != nil {
					metadata["token_endpoint_auth_methods_supported"] = row.methods
				}
			}
			if about == "wrong secret" {
				w.config.Auth.OIDC.ClientSecret = "another"
			}
			var requests atomic.Int64
			w.provider.counts = &requests
			for i, want := range row.requests {
				if answer := w.browser().prove(); answer.StatusCode != row.status || requests.Swap(0) != want {
					t.Errorf("sign-in %d: %d", i, answer.StatusCode)
				}
				// The metadata are read again.
				w.clock.forward(11 * time.Minute)
			}
		})
	}
	// The settings have changed since the sign-in: the platform finds it out when it asks about somebody.
	w := newWorld(t)
	w.provider.posts = true
	w.provider.metadata = func(metadata map[string]any) { delete(metadata, "token_endpoint_auth_methods_supported") }
	w.config.Auth.OIDC.Scopes = []string{"offline_access"}
	k := w.keep("oidc", w.provider.login)
	w.config.Auth.OIDC.EmailClaim = "email"
	w.clock.forward(16 * time.Minute)
	k.works()
	if done := w.run(); done.Kept != 1 {
		t.Errorf("%+v", done)
	}
}

// Package oidc asks an OpenID Connect provider who somebody is: the authorization code flow with PKCE, a nonce, and everything that a
// client must check of the answer. Source: Spec 2.7 (oidc); OpenID Connect Core 1.0; RFC 7636, 9207, 9700; ADR-0031.
//
// It checks the tokens of jobs, and those with which a provider signs people out. Source: ADR-0036, ADR-0042.
package oidc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/lazyregexp"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin"
	"management.platform.sh/shared/signin/upstream"
)

const (
	// metadataFor is how long the metadata of a provider is kept.
	metadataFor = 10 * time.Minute
	// maxKept is how many providers a process keeps.
	maxKept = 64
	// skew is how much the clock of a provider may be ahead.
	skew = time.Minute
)

// algorithms are those with which a provider may sign an ID token: a shared secret or no signature proves nothing.
var algorithms = []string{
	goidc.RS256, goidc.RS384, goidc.RS512, goidc.PS256, goidc.PS384, goidc.PS512, goidc.ES256, goidc.ES384, goidc.ES512, goidc.EdDSA,
}

// Providers are the OpenID Connect providers of an environment. It implements signin.Provider.
type Providers struct {
	env *platform.Environment

	mu    sync.Mutex
	known map[string]*provider
}

// Open returns the providers of an environment. It connects to none of them yet.
//
//go:noinline
func Open(env *platform.Environment) *Providers {
	return platform.Single(env, func(env *platform.Environment) *Providers {
		return &Providers{env: env, known: map[string]*provider{}}
	})
}

// provider is a provider with its metadata.
type provider struct {
	*goidc.Provider
	client *http.Client
	// namesIssuer tells that answers to browsers name the issuer. Source: RFC 9207, 3.
	namesIssuer bool
	// style is how the client authenticates at the token endpoint, and otherStyle is the other way that the metadata permit.
	// oauth2.AuthStyleAutoDetect: there is no other one.
	style, otherStyle oauth2.AuthStyle
	// keys is the address of the keys.
	keys string
	// issuer is what the metadata name as issuer. With many tenants, {tenantid} stands in it for the tenant.
	issuer string
	// logout is where the session of a person ends, and revocation where tokens are given back. Empty: the provider has no such address.
	logout, revocation string
	// revocationStyle is how the client authenticates there.
	revocationStyle oauth2.AuthStyle
	read            time.Time
}

// source is an OpenID Connect provider, and what is special about it.
type source struct {
	*model.OIDCProvider
	// tenants tells that the provider has many tenants, each with an issuer of its own.
	tenants bool
	// options are sent along at the start.
	options []oauth2.AuthCodeOption
}

// get returns the provider of a connector. Its metadata are at most ten minutes old. Errors: signin.Refusal.
func (p *Providers) get(ctx context.Context, settings source, key string) (*provider, error) {
	p.mu.Lock()
	found := p.known[key]
	p.mu.Unlock()
	if found != nil && p.env.Now().Sub(found.read) < metadataFor {
		return found, nil
	}
	client, err := upstream.Client(p.env, upstream.Trust{CAFile: settings.CAFile, Insecure: settings.InsecureCA})
	if err != nil {
		return nil, err
	}
	ctx = goidc.ClientContext(ctx, client)
	if settings.tenants {
		// The issuer of a tenant is compared with that of each token.
		ctx = goidc.InsecureIssuerURLContext(ctx, settings.IssuerURL)
	}
	metadata, err := goidc.NewProvider(ctx, settings.IssuerURL)
	if err != nil {
		return nil, upstream.Unanswered(err)
	}
	var said struct {
		Issuer      string   `json:"issuer"`
		Keys        string   `json:"jwks_uri"`
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
		Logout      string   `json:"end_session_endpoint"`
		Revocation  string   `json:"revocation_endpoint"`
		// RevocationMethods are the methods at the address of Revocation.
		RevocationMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	}
	if err := metadata.Claims(&said); err != nil {
		return nil, signin.Misconfigured("the metadata of the provider cannot be read")
	}
	endpoints := map[string]string{"token endpoint": metadata.Endpoint().TokenURL, "address of the keys": said.Keys}
	if settings.GetUserInfo {
		endpoints["UserInfo endpoint"] = metadata.UserInfoEndpoint()
	}
	for name, address := range endpoints {
		if at, err := url.Parse(address); err != nil || at.Scheme != "https" || at.Host == "" {
			return nil, signin.Misconfigured("the " + name + " of the provider is not an https URL")
		}
	}
	made := &provider{
		Provider: metadata, client: client, namesIssuer: said.NamesIssuer, style: style(settings, said.Methods), otherStyle: otherStyle(settings, said.Methods), logout: said.Logout,
		revocation: said.Revocation, revocationStyle: style(settings, said.RevocationMethods), keys: said.Keys, issuer: said.Issuer, read: p.env.Now(),
	}
	if found != nil && found.style == made.otherStyle {
		made = made.otherwise()
	}
	p.keep(key, made)
	return made, nil
}

// keep keeps a provider for later requests.
func (p *Providers) keep(key string, made *provider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxKept {
		clear(p.known)
	}
	p.known[key] = made
}

// otherwise returns the provider with its styles exchanged.
func (p *provider) otherwise() *provider {
	other := *p
	other.style, other.otherStyle = p.otherStyle, p.style
	return &other
}

// retrieve asks the token endpoint of a provider, which is kept with a key. Metadata name the methods of a provider, and not the one for which a
// client is registered: if the provider does not accept the client, the other style is tried once, and comes first from then on if it
// works. A provider looks at the client before it looks at a code or a token. Errors: those of ask.
// Source: RFC 6749, 2.3.1 and 5.2; OpenID Connect Core 1.0, 9.
func (p *Providers) retrieve(
	found *provider, settings source, key string, ask func(*oauth2.Config) (*oauth2.Token, error),
) (*oauth2.Token, error) {
	tokens, err := ask(found.config(settings.OIDCProvider))
	if found.otherStyle == oauth2.AuthStyleAutoDetect || !errors.Is(err, upstream.ErrClient) {
		return tokens, err
	}
	other := found.otherwise()
	if tokens, err = ask(other.config(settings.OIDCProvider)); err == nil {
		p.keep(key, other)
	}
	return tokens, err
}

// style returns how the client authenticates at an address of a provider that accepts some methods. Without methods, it is as RFC 8414
// says.
func style(settings source, methods []string) oauth2.AuthStyle {
	if settings.ClientSecret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// otherStyle returns another way than style to authenticate at an address of a provider that accepts some methods. AuthStyleAutoDetect: there is
// none. Without methods, a provider may accept client_secret_post as well.
func otherStyle(settings source, methods []string) oauth2.AuthStyle {
	if style(settings, methods) == oauth2.AuthStyleInHeader && (len(methods) == 0 || slices.Contains(methods, "client_secret_post")) {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleAutoDetect
}

// config returns the settings of a connector as a client of OAuth.
func (p *provider) config(settings *model.OIDCProvider) *oauth2.Config {
	endpoint := p.Endpoint()
	endpoint.AuthStyle = p.style
	scopes := settings.Scopes
	if len(scopes) == 0 {
		scopes = []string{"profile", "email"}
	}
	if !slices.Contains(scopes, goidc.ScopeOpenID) {
		scopes = append([]string{goidc.ScopeOpenID}, scopes...)
	}
	return &oauth2.Config{
		ClientID: settings.ClientID, ClientSecret: settings.ClientSecret.Reveal(), Endpoint: endpoint, RedirectURL: settings.RedirectURI, Scopes: scopes,
	}
}

// Begin implements signin.Provider.
func (p *Providers) Begin(ctx context.Context, connector signin.Connector, request signin.Request) (string, error) {
	return p.begin(ctx, source{OIDCProvider: connector.Settings.OIDC}, connector.Fingerprint(), request)
}

// begin returns the address at which a person signs in.
func (p *Providers) begin(ctx context.Context, settings source, key string, request signin.Request) (string, error) {
	found, err := p.get(ctx, settings, key)
	if err != nil {
		return "", err
	}
	at, err := url.Parse(found.Endpoint().AuthURL)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return "", signin.Misconfigured("the authorization endpoint of the provider is not an https URL")
	}
	options := append([]oauth2.AuthCodeOption{goidc.Nonce(request.Nonce), oauth2.S256ChallengeOption(request.Verifier)}, settings.options...)
	return found.config(settings.OIDCProvider).AuthCodeURL(request.State, options...), nil
}

// End implements signin.Provider. Source: OpenID Connect RP-Initiated Logout 1.0, 2.
func (p *Providers) End(ctx context.Context, connector signin.Connector) (string, error) {
	found, err := p.get(ctx, source{OIDCProvider: connector.Settings.OIDC}, connector.Fingerprint())
	if err != nil || found.logout == "" {
		return "", err
	}
	at, err := url.Parse(found.logout)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return "", signin.Misconfigured("the logout endpoint of the provider is not an https URL")
	}
	query := at.Query()
	query.Set("client_id", connector.Settings.OIDC.ClientID)
	if back := connector.Settings.OIDC.PostLogoutRedirectURI; back != "" {
		query.Set("post_logout_redirect_uri", back)
	}
	at.RawQuery = query.Encode()
	return at.String(), nil
}

// Finish implements signin.Provider.
func (p *Providers) Finish(ctx context.Context, connector signin.Connector, answer signin.Answer) (signin.Person, error) {
	said, err := p.finish(ctx, source{OIDCProvider: connector.Settings.OIDC}, connector.Fingerprint(), answer)
	if err != nil {
		return signin.Person{}, err
	}
	who, err := said.person(connector.Settings.OIDC)
	if len(who.Absent) > 0 && !connector.Settings.OIDC.GetUserInfo && said.found.UserInfoEndpoint() != "" {
		who.Absent = append(who.Absent, "getUserInfo is false, and the provider has a UserInfo endpoint")
	}
	return who, err
}

// claimSet are claims of a provider. Numbers keep their digits.
type claimSet map[string]any

// UnmarshalJSON implements json.Unmarshaler.
func (c *claimSet) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(c))
}

// whole matches a whole number as JSON writes it.
var whole = lazyregexp.New(`^(0|-?[1-9][0-9]*)$`)

// said is what a provider says of somebody.
type said struct {
	claims claimSet
	tokens *oauth2.Token
	found  *provider
}

// person returns who the claims name, with what asks the provider again.
func (s said) person(settings *model.OIDCProvider) (signin.Person, error) {
	who, err := person(settings, s.claims)
	who.Claims = slices.Sorted(maps.Keys(s.claims))
	session, _ := s.claims["sid"].(string)
	subject, _ := s.claims["sub"].(string)
	who.Session = signin.Session{Refresh: secret.String(s.tokens.RefreshToken), ID: session, Subject: subject}
	return who, err
}

// finish exchanges the code of an answer, and checks everything that comes for it.
func (p *Providers) finish(ctx context.Context, settings source, key string, answer signin.Answer) (said, error) {
	code, issuer, err := answer.Code()
	if err != nil {
		return said{}, err
	}
	found, err := p.get(ctx, settings, key)
	if err != nil {
		return said{}, err
	}
	// The code is for the issuer that the answer names, and goes to no other.
	if issuer != "" && issuer != found.issuer || issuer == "" && found.namesIssuer {
		return said{}, signin.Refused("the answer is that of another issuer")
	}
	ctx = goidc.ClientContext(ctx, found.client)
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(answer.Verifier)}
	if settings.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", settings.Resource))
	}
	tokens, err := p.retrieve(found, settings, key, func(config *oauth2.Config) (*oauth2.Token, error) {
		tokens, err := config.Exchange(ctx, code, options...)
		if err != nil {
			return nil, upstream.Unanswered(err)
		}
		return tokens, nil
	})
	if err != nil {
		return said{}, err
	}
	raw, given := tokens.Extra("id_token").(string)
	if !given {
		return said{}, signin.Misconfigured("the provider gave no ID token")
	}
	return p.read(ctx, found, settings, tokens, raw, answer.Nonce)
}

// Renew implements signin.Renewer.
func (p *Providers) Renew(ctx context.Context, connector signin.Connector, session signin.Session, keep func(signin.Session) error) (signin.Person, error) {
	said, err := p.renew(ctx, source{OIDCProvider: connector.Settings.OIDC}, connector.Fingerprint(), session, keep)
	if err != nil {
		return signin.Person{}, err
	}
	return said.person(connector.Settings.OIDC)
}

// renew exchanges a refresh token. A provider that gives no new ID token for it names the person in its UserInfo.
func (p *Providers) renew(ctx context.Context, settings source, key string, session signin.Session, keep func(signin.Session) error) (said, error) {
	found, err := p.get(ctx, settings, key)
	if err != nil {
		return said{}, err
	}
	tokens, err := p.retrieve(found, settings, key, func(config *oauth2.Config) (*oauth2.Token, error) {
		return upstream.Refresh(ctx, found.client, config, session, keep)
	})
	if err != nil {
		return said{}, err
	}
	ctx = goidc.ClientContext(ctx, found.client)
	if raw, given := tokens.Extra("id_token").(string); given {
		return p.read(ctx, found, settings, tokens, raw, "")
	}
	info, err := found.userInfo(ctx, tokens)
	if err != nil {
		return said{}, err
	}
	claims := claimSet{}
	if err := info.Claims(&claims); err != nil || info.Subject == "" {
		return said{}, signin.Misconfigured("the UserInfo cannot be read")
	}
	return said{claims, tokens, found}, nil
}

// read returns the claims of an ID token and, if the settings say so, of the UserInfo. With an empty nonce, none is expected.
func (p *Providers) read(ctx context.Context, found *provider, settings source, tokens *oauth2.Token, raw, nonce string) (said, error) {
	token, err := p.verify(ctx, found, settings, raw, nonce)
	if err != nil {
		return said{}, err
	}
	if token.AccessTokenHash != "" && token.VerifyAccessToken(tokens.AccessToken) != nil {
		return said{}, signin.Misconfigured("the access token does not belong to the ID token")
	}
	claims := claimSet{}
	if err := token.Claims(&claims); err != nil {
		return said{}, signin.Misconfigured("the claims of the ID token cannot be read")
	}
	if settings.GetUserInfo {
		info, err := found.userInfo(ctx, tokens)
		if err != nil {
			return said{}, err
		}
		more := claimSet{}
		if err := info.Claims(&more); err != nil || info.Subject != token.Subject || more["sub"] != token.Subject {
			return said{}, signin.Misconfigured("the UserInfo is that of another subject")
		}
		// A claim of nothing says nothing.
		maps.DeleteFunc(more, func(_ string, value any) bool { return value == nil || value == "" })
		if _, another := more["email"]; another {
			delete(claims, "email_verified")
		}
		maps.Copy(claims, more)
	}
	return said{claims, tokens, found}, nil
}

// userInfo asks a provider about the person of an access token. Errors: signin.Refusal, definite if the provider refuses the token.
// Source: OpenID Connect Core 1.0, 5.3; RFC 6750, 3.1.
func (p *provider) userInfo(ctx context.Context, tokens *oauth2.Token) (*goidc.UserInfo, error) {
	answered := &readableInfo{next: p.client.Transport}
	client := *p.client
	client.Transport = answered
	info, err := p.UserInfo(goidc.ClientContext(ctx, &client), oauth2.StaticTokenSource(tokens))
	switch {
	case err == nil:
		return info, nil
	case answered.status == http.StatusUnauthorized:
		return nil, signin.Refused("the provider refuses its own token")
	default:
		return nil, upstream.Unanswered(err)
	}
}

// readableInfo leaves claims out of a UserInfo that decide nothing and have a type which the library does not read, since the library refuses the
// UserInfo for them. It notes the status of the last answer, which the errors of the library do not have.
type readableInfo struct {
	next   http.RoundTripper
	status int
}

// RoundTrip implements http.RoundTripper.
func (r *readableInfo) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	r.status = answer.StatusCode
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		// The library refuses the beginning of a UserInfo that is too large.
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil //nolint:nilerr // the library says what is wrong
	}
	claims := map[string]json.RawMessage{}
	if json.Unmarshal(text, &claims) == nil {
		maps.DeleteFunc(claims, func(name string, value json.RawMessage) bool {
			switch name {
			case "email", "profile":
				return json.Unmarshal(value, new(string)) != nil
			case "email_verified":
				return !slices.Contains([]string{"true", "false", `"true"`, `"false"`}, string(value))
			}
			return false
		})
		if text, err = json.Marshal(claims); err != nil {
			return nil, err
		}
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}

// verify checks an ID token. The library checks its signature, issuer, audience and expiry. With an empty nonce, none is expected: the
// token comes from a refresh, not from a browser.
func (p *Providers) verify(ctx context.Context, found *provider, settings source, raw, nonce string) (*goidc.IDToken, error) {
	published := newKeySet(ctx, found.client, found.keys)
	keys := &asked{KeySet: published}
	token, err := goidc.NewVerifier(found.issuer, keys, &goidc.Config{
		ClientID: settings.ClientID, SupportedSigningAlgs: algorithms, Now: p.env.Now, SkipIssuerCheck: settings.tenants,
	}).Verify(ctx, raw)
	switch {
	case err == nil:
	case keys.unanswered():
		return nil, upstream.Unanswered(keys.failed)
	case keys.failed != nil && published.mistake != "":
		return nil, signin.Misconfigured("the keys of the provider cannot be read: " + published.mistake)
	default:
		return nil, signin.Misconfigured("the ID token " + mistakeOf(raw, found.issuer, settings, p.env.Now(), keys.failed != nil, err))
	}
	var claims struct {
		Party string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return nil, signin.Misconfigured("the claims of the ID token cannot be read")
	}
	switch {
	case nonce != "" && subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return nil, signin.Refused("the ID token is that of another sign-in")
	case len(token.Audience) > 1 && claims.Party == "", claims.Party != "" && claims.Party != settings.ClientID:
		return nil, signin.Misconfigured("the ID token is for another client")
	case token.Expiry.IsZero() || token.IssuedAt.Unix() <= 0 || token.IssuedAt.After(p.env.Now().Add(skew)):
		return nil, signin.Misconfigured("the ID token has no usable time")
	}
	return token, nil
}

// person returns who the claims name. Source: Spec 2.7 (usernameClaim, platformUsernameClaim, preferredUsername, emailClaim,
// groupsClaim, allowedExtraClaims).
func person(settings *model.OIDCProvider, claims claimSet) (signin.Person, error) {
	var wrong error
	var absent, left []string
	// text returns the text of a claim. One that is none is wrong without a label, and otherwise left out with its label.
	text := func(field, name, instead, label string) string {
		if name == "" {
			field, name = "", instead
		}
		switch value := claims[name].(type) {
		case nil:
			absent = append(absent, claims.without(field, name))
			return ""
		case string:
			return value
		case json.Number:
			// The IDs of some providers are numbers. A whole number has one text.
			if whole().MatchString(value.String()) {
				return value.String()
			}
		}
		if label == "" {
			wrong = signin.Misconfigured("the claim " + name + " is not a text")
		} else {
			left = append(left, label)
		}
		return ""
	}
	found := signin.Person{
		Subject:           text("usernameClaim", settings.UsernameClaim, "sub", ""),
		PreferredUsername: text("preferredUsername", settings.PreferredUsername, "preferred_username", "preferred username"),
		DisplayName:       text("", "", "name", "name"), Email: text("emailClaim", settings.EmailClaim, "email", "email"),
		Username: text("platformUsernameClaim", settings.PlatformUsernameClaim, "preferred_username", "username"),
	}
	found.LeftOut = left
	if found.Subject == "" && wrong == nil {
		wrong = signin.Misconfigured("the ID of the person is absent: the provider did not send " + claims.without("", cmp.Or(settings.UsernameClaim, "sub")))
	}
	// The claim is about the claim email alone. Source: OpenID Connect Core 1.0, 5.1.
	found.EmailVerified = claims["email_verified"] == true && (settings.EmailClaim == "" || settings.EmailClaim == "email")
	if settings.GroupsClaim != "" {
		switch value := claims[settings.GroupsClaim].(type) {
		case nil:
			absent = append(absent, claims.without("groupsClaim", settings.GroupsClaim))
		case string:
			found.Groups = []string{value}
		case []any:
			for _, entry := range value {
				group, isText := entry.(string)
				if !isText {
					return signin.Person{}, signin.Misconfigured("the claim with the groups has an entry that is not a text")
				}
				found.Groups = append(found.Groups, group)
			}
		default:
			return signin.Person{}, signin.Misconfigured("the claim with the groups is neither a text nor a list")
		}
	}
	for _, name := range settings.AllowedExtraClaims {
		value, given := claims[name]
		if !given {
			continue
		}
		if found.Extra == nil {
			found.Extra = map[string]string{}
		}
		if simple, isText := value.(string); isText {
			found.Extra[name] = simple
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return signin.Person{}, fmt.Errorf("encoding a claim: %w", err)
		}
		found.Extra[name] = string(encoded)
	}
	slices.Sort(absent)
	found.Absent = slices.Compact(absent)
	return found, wrong
}

// without names a claim that did not come, and the setting that names it. Empty field: the claim is the usual one.
func (c claimSet) without(field, name string) string {
	text := strings.TrimSpace(fmt.Sprintf("%s %.64q", field, name))
	outer, _, dotted := strings.Cut(name, ".")
	if _, given := c[outer]; dotted && given {
		text += fmt.Sprintf(" (the claim %.64q came: settings name whole claims, not what is in them)", outer)
	}
	return text
}

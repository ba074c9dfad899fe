// Package oidc asks an OpenID Connect provider who a person is: with the authorization code flow, PKCE, a nonce, and all checks
// that a client must make of the answer. Source: Spec 2.7 (oidc); OpenID Connect Core 1.0; RFC 7636, 9207, 9700; ADR-0031.
//
// It also checks the tokens of jobs, and the logout tokens with which a provider signs people out. Source: ADR-0036, ADR-0042.
package oidc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
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
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/upstream"
)

const (
	// metadataLifetime is how long the metadata of a provider is kept.
	metadataLifetime = 10 * time.Minute
	// maxCached is how many providers a process keeps.
	maxCached = 64
	// skew is how much the clock of a provider may be ahead.
	skew = time.Minute
)

// algorithms are the accepted signature algorithms of ID tokens: a shared secret or no signature proves nothing.
var algorithms = []string{
	goidc.RS256, goidc.RS384, goidc.RS512, goidc.PS256, goidc.PS384, goidc.PS512, goidc.ES256, goidc.ES384, goidc.ES512, goidc.EdDSA,
}

// Providers are the OpenID Connect providers of an environment.
type Providers struct {
	env *platform.Environment

	mu     sync.Mutex
	cached map[string]*discoveredProvider
}

// Open returns the providers of an environment. It connects to none of them yet.
//
//go:noinline
func Open(env *platform.Environment) *Providers {
	return platform.Single(env, func(env *platform.Environment) *Providers {
		return &Providers{env: env, cached: map[string]*discoveredProvider{}}
	})
}

// discoveredProvider is a provider with its metadata.
type discoveredProvider struct {
	*goidc.Provider
	client *http.Client
	// issParameterSupported reports whether answers to browsers name the issuer. Source: RFC 9207, 3.
	issParameterSupported bool
	// authStyle is how the client authenticates at the token endpoint, and alternativeAuthStyle is the other way that the metadata permit.
	// oauth2.AuthStyleAutoDetect: there is no other way.
	authStyle, alternativeAuthStyle oauth2.AuthStyle
	// jwksURI is the address of the keys.
	jwksURI string
	// issuer is what the metadata name as issuer. With many tenants, {tenantid} stands in it for the tenant.
	issuer string
	// endSessionEndpoint is the address at which the session of a person ends, and revocationEndpoint is the address at which
	// tokens are revoked. Empty: the provider has no such address.
	endSessionEndpoint, revocationEndpoint string
	// revocationAuthStyle is how the client authenticates at revocationEndpoint.
	revocationAuthStyle oauth2.AuthStyle
	fetchedAt           time.Time
}

// providerConfig is the configuration of an OpenID Connect provider, with its peculiarities.
type providerConfig struct {
	*model.OIDCProvider
	// multiTenant means that the provider has many tenants, each with an issuer of its own.
	multiTenant bool
	// authOptions are sent along at the start.
	authOptions []oauth2.AuthCodeOption
}

// discover returns the provider of a connector. Its metadata are at most ten minutes old. Errors: refusal.Refusal.
func (p *Providers) discover(ctx context.Context, config providerConfig, key string) (*discoveredProvider, error) {
	p.mu.Lock()
	cached := p.cached[key]
	p.mu.Unlock()
	if cached != nil && p.env.Now().Sub(cached.fetchedAt) < metadataLifetime {
		return cached, nil
	}
	client, err := upstream.NewClient(p.env, upstream.Trust{CAFile: config.CAFile, Insecure: config.InsecureCA})
	if err != nil {
		return nil, err
	}
	ctx = goidc.ClientContext(ctx, client)
	if config.multiTenant {
		// The check of each token compares its issuer with the issuer of its tenant.
		ctx = goidc.InsecureIssuerURLContext(ctx, config.IssuerURL)
	}
	metadata, err := goidc.NewProvider(ctx, config.IssuerURL)
	if err != nil {
		return nil, upstream.TranslateError(err)
	}
	var metadataClaims struct {
		Issuer      string   `json:"issuer"`
		Keys        string   `json:"jwks_uri"`
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
		Logout      string   `json:"end_session_endpoint"`
		Revocation  string   `json:"revocation_endpoint"`
		// RevocationMethods are the methods at the address of Revocation.
		RevocationMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	}
	if err := metadata.Claims(&metadataClaims); err != nil {
		return nil, refusal.Misconfigured("the metadata of the provider cannot be read")
	}
	endpoints := []struct{ name, address string }{{"token endpoint", metadata.Endpoint().TokenURL}, {"address of the keys", metadataClaims.Keys}}
	if config.GetUserInfo {
		endpoints = append(endpoints, struct{ name, address string }{"UserInfo endpoint", metadata.UserInfoEndpoint()})
	}
	for _, endpoint := range endpoints {
		if parsed, err := url.Parse(endpoint.address); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
			return nil, refusal.Misconfigured("the " + endpoint.name + " of the provider is not an https URL")
		}
	}
	discovered := &discoveredProvider{
		Provider: metadata, client: client, issParameterSupported: metadataClaims.NamesIssuer, authStyle: authStyle(config, metadataClaims.Methods), alternativeAuthStyle: alternativeAuthStyle(config, metadataClaims.Methods), endSessionEndpoint: metadataClaims.Logout,
		revocationEndpoint: metadataClaims.Revocation, revocationAuthStyle: authStyle(config, metadataClaims.RevocationMethods), jwksURI: metadataClaims.Keys, issuer: metadataClaims.Issuer, fetchedAt: p.env.Now(),
	}
	if cached != nil && cached.authStyle == discovered.alternativeAuthStyle {
		discovered = discovered.swapAuthStyle()
	}
	p.cache(key, discovered)
	return discovered, nil
}

// cache keeps a provider for later requests.
func (p *Providers) cache(key string, discovered *discoveredProvider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.cached) >= maxCached {
		clear(p.cached)
	}
	p.cached[key] = discovered
}

// swapAuthStyle returns the provider with its authentication styles swapped.
func (p *discoveredProvider) swapAuthStyle() *discoveredProvider {
	swapped := *p
	swapped.authStyle, swapped.alternativeAuthStyle = p.alternativeAuthStyle, p.authStyle
	return &swapped
}

// requestTokens sends a request to the token endpoint of a provider, which is cached by key. Metadata name the authentication methods of a
// provider, and not the method for which a client is registered: if the provider refuses the client, the alternative style is tried once,
// and is used first from then on if it works. A provider checks the client before a code or a token. It returns the errors of the
// request. Source: RFC 6749, 2.3.1 and 5.2; OpenID Connect Core 1.0, 9.
func (p *Providers) requestTokens(
	idp *discoveredProvider, config providerConfig, key string, request func(*oauth2.Config) (*oauth2.Token, error),
) (*oauth2.Token, error) {
	tokens, err := request(idp.config(config.OIDCProvider))
	if idp.alternativeAuthStyle == oauth2.AuthStyleAutoDetect || !errors.Is(err, upstream.ErrClient) {
		return tokens, err
	}
	swapped := idp.swapAuthStyle()
	if tokens, err = request(swapped.config(config.OIDCProvider)); err == nil {
		p.cache(key, swapped)
	}
	return tokens, err
}

// authStyle returns how the client authenticates at an endpoint that accepts some methods. Without methods, the default of RFC 8414
// applies.
func authStyle(config providerConfig, methods []string) oauth2.AuthStyle {
	if config.ClientSecret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// alternativeAuthStyle returns another style than authStyle for an endpoint that accepts some methods. AuthStyleAutoDetect: there is none.
// Without methods, a provider may accept client_secret_post as well.
func alternativeAuthStyle(config providerConfig, methods []string) oauth2.AuthStyle {
	if authStyle(config, methods) == oauth2.AuthStyleInHeader && (len(methods) == 0 || slices.Contains(methods, "client_secret_post")) {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleAutoDetect
}

// config returns the settings of a connector as a client of OAuth.
func (p *discoveredProvider) config(settings *model.OIDCProvider) *oauth2.Config {
	endpoint := p.Endpoint()
	endpoint.AuthStyle = p.authStyle
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

func (p *Providers) AuthorizationURL(ctx context.Context, conn provider.Connector, request provider.Request) (string, error) {
	return p.authorizationURL(ctx, providerConfig{OIDCProvider: conn.Settings.OIDC}, conn.Fingerprint(), request)
}

// authorizationURL returns the address at which a person signs in.
func (p *Providers) authorizationURL(ctx context.Context, config providerConfig, key string, request provider.Request) (string, error) {
	idp, err := p.discover(ctx, config, key)
	if err != nil {
		return "", err
	}
	endpoint, err := url.Parse(idp.Endpoint().AuthURL)
	if err != nil || endpoint.Scheme != "https" || endpoint.Host == "" {
		return "", refusal.Misconfigured("the authorization endpoint of the provider is not an https URL")
	}
	options := append([]oauth2.AuthCodeOption{goidc.Nonce(request.Nonce), oauth2.S256ChallengeOption(request.Verifier)}, config.authOptions...)
	return idp.config(config.OIDCProvider).AuthCodeURL(request.State, options...), nil
}

// EndSessionURL returns the end_session_endpoint with its parameters. Source: OpenID Connect RP-Initiated Logout 1.0, 2.
func (p *Providers) EndSessionURL(ctx context.Context, conn provider.Connector) (string, error) {
	idp, err := p.discover(ctx, providerConfig{OIDCProvider: conn.Settings.OIDC}, conn.Fingerprint())
	if err != nil || idp.endSessionEndpoint == "" {
		return "", err
	}
	endpoint, err := url.Parse(idp.endSessionEndpoint)
	if err != nil || endpoint.Scheme != "https" || endpoint.Host == "" {
		return "", refusal.Misconfigured("the logout endpoint of the provider is not an https URL")
	}
	query := endpoint.Query()
	query.Set("client_id", conn.Settings.OIDC.ClientID)
	if back := conn.Settings.OIDC.PostLogoutRedirectURI; back != "" {
		query.Set("post_logout_redirect_uri", back)
	}
	endpoint.RawQuery = query.Encode()
	return endpoint.String(), nil
}

func (p *Providers) HandleCallback(ctx context.Context, conn provider.Connector, callback provider.Response) (provider.Person, error) {
	response, err := p.redeemCode(ctx, providerConfig{OIDCProvider: conn.Settings.OIDC}, conn.Fingerprint(), callback)
	if err != nil {
		return provider.Person{}, err
	}
	person, err := response.person(conn.Settings.OIDC)
	if len(person.Absent) > 0 && !conn.Settings.OIDC.GetUserInfo && response.idp.UserInfoEndpoint() != "" {
		person.Absent = append(person.Absent, "getUserInfo is false, and the provider has a UserInfo endpoint")
	}
	return person, err
}

// claimSet are claims of a provider. Numbers keep their digits.
type claimSet map[string]any

func (c *claimSet) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(c))
}

// wholeNumber matches an integer in JSON.
var wholeNumber = lazyregexp.New(`^(0|-?[1-9][0-9]*)$`)

// providerResponse has the claims of a person, the tokens, and their provider.
type providerResponse struct {
	claims claimSet
	tokens *oauth2.Token
	idp    *discoveredProvider
}

// person returns the person of the claims, with the session to refresh them.
func (r providerResponse) person(settings *model.OIDCProvider) (provider.Person, error) {
	person, err := mapClaims(settings, r.claims)
	person.Claims = slices.Sorted(maps.Keys(r.claims))
	session, _ := r.claims["sid"].(string)
	subject, _ := r.claims["sub"].(string)
	person.Session = provider.Session{RefreshToken: secret.String(r.tokens.RefreshToken), ID: session, Subject: subject}
	return person, err
}

// redeemCode redeems the code of a response, and verifies the answer.
func (p *Providers) redeemCode(ctx context.Context, config providerConfig, key string, callback provider.Response) (providerResponse, error) {
	code, issuer, err := callback.Code()
	if err != nil {
		return providerResponse{}, err
	}
	idp, err := p.discover(ctx, config, key)
	if err != nil {
		return providerResponse{}, err
	}
	// The code is for the issuer that the answer names, and goes to no other.
	if issuer != "" && issuer != idp.issuer || issuer == "" && idp.issParameterSupported {
		return providerResponse{}, refusal.ByProvider("the answer is that of another issuer")
	}
	ctx = goidc.ClientContext(ctx, idp.client)
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(callback.Verifier)}
	if config.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", config.Resource))
	}
	tokens, err := p.requestTokens(idp, config, key, func(config *oauth2.Config) (*oauth2.Token, error) {
		tokens, err := config.Exchange(ctx, code, options...)
		if err != nil {
			return nil, upstream.TranslateError(err)
		}
		return tokens, nil
	})
	if err != nil {
		return providerResponse{}, err
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return providerResponse{}, refusal.Misconfigured("the provider gave no ID token")
	}
	return p.readClaims(ctx, idp, config, tokens, raw, callback.Nonce)
}

func (p *Providers) Refresh(ctx context.Context, conn provider.Connector, session provider.Session, save func(provider.Session) error) (provider.Person, error) {
	response, err := p.refresh(ctx, providerConfig{OIDCProvider: conn.Settings.OIDC}, conn.Fingerprint(), session, save)
	if err != nil {
		return provider.Person{}, err
	}
	return response.person(conn.Settings.OIDC)
}

// refresh redeems a refresh token. Where the provider returns no new ID token, its UserInfo identifies the person.
func (p *Providers) refresh(ctx context.Context, config providerConfig, key string, session provider.Session, save func(provider.Session) error) (providerResponse, error) {
	idp, err := p.discover(ctx, config, key)
	if err != nil {
		return providerResponse{}, err
	}
	tokens, err := p.requestTokens(idp, config, key, func(config *oauth2.Config) (*oauth2.Token, error) {
		return upstream.RefreshTokens(ctx, idp.client, config, session, save)
	})
	if err != nil {
		return providerResponse{}, err
	}
	ctx = goidc.ClientContext(ctx, idp.client)
	if raw, ok := tokens.Extra("id_token").(string); ok {
		return p.readClaims(ctx, idp, config, tokens, raw, "")
	}
	info, err := idp.userInfo(ctx, tokens)
	if err != nil {
		return providerResponse{}, err
	}
	claims := claimSet{}
	if err := info.Claims(&claims); err != nil || info.Subject == "" {
		return providerResponse{}, refusal.Misconfigured("the UserInfo cannot be read")
	}
	return providerResponse{claims, tokens, idp}, nil
}

// readClaims returns the claims of an ID token and, if the settings say so, of the UserInfo. An empty nonce is not checked.
func (p *Providers) readClaims(ctx context.Context, idp *discoveredProvider, config providerConfig, tokens *oauth2.Token, raw, nonce string) (providerResponse, error) {
	token, err := p.verifyIDToken(ctx, idp, config, raw, nonce)
	if err != nil {
		return providerResponse{}, err
	}
	if token.AccessTokenHash != "" && token.VerifyAccessToken(tokens.AccessToken) != nil {
		return providerResponse{}, refusal.Misconfigured("the access token does not belong to the ID token")
	}
	claims := claimSet{}
	if err := token.Claims(&claims); err != nil {
		return providerResponse{}, refusal.Misconfigured("the claims of the ID token cannot be read")
	}
	if config.GetUserInfo {
		info, err := idp.userInfo(ctx, tokens)
		if err != nil {
			return providerResponse{}, err
		}
		infoClaims := claimSet{}
		if err := info.Claims(&infoClaims); err != nil || info.Subject != token.Subject || infoClaims["sub"] != token.Subject {
			return providerResponse{}, refusal.Misconfigured("the UserInfo is that of another subject")
		}
		// A claim of nothing says nothing.
		maps.DeleteFunc(infoClaims, func(_ string, value any) bool { return value == nil || value == "" })
		if _, ok := infoClaims["email"]; ok {
			delete(claims, "email_verified")
		}
		maps.Copy(claims, infoClaims)
	}
	return providerResponse{claims, tokens, idp}, nil
}

// userInfo fetches the UserInfo of an access token. Errors: refusal.Refusal, definite if the provider refuses the token. Source: OpenID
// Connect Core 1.0, 5.3; RFC 6750, 3.1.
func (p *discoveredProvider) userInfo(ctx context.Context, tokens *oauth2.Token) (*goidc.UserInfo, error) {
	client, latest := upstream.Observe(p.client, upstream.UserInfo)
	info, err := p.UserInfo(goidc.ClientContext(ctx, client), oauth2.StaticTokenSource(tokens))
	switch {
	case err == nil:
		return info, nil
	case latest.Status == http.StatusUnauthorized:
		return nil, refusal.ByProvider("the provider refuses its own token")
	default:
		return nil, upstream.TranslateError(err)
	}
}

// verifyIDToken verifies an ID token. The library checks its signature, issuer, audience and expiry. An empty nonce is not checked: the
// token comes from a refresh, not from a browser.
func (p *Providers) verifyIDToken(ctx context.Context, idp *discoveredProvider, config providerConfig, raw, nonce string) (*goidc.IDToken, error) {
	published := newKeySet(ctx, idp.client, idp.jwksURI)
	keys := &tracedKeySet{KeySet: published}
	token, err := goidc.NewVerifier(idp.issuer, keys, &goidc.Config{
		ClientID: config.ClientID, SupportedSigningAlgs: algorithms, Now: p.env.Now, SkipIssuerCheck: config.multiTenant,
	}).Verify(ctx, raw)
	switch {
	case err == nil:
	case keys.isUnreachable():
		return nil, upstream.TranslateError(keys.failure)
	case keys.failure != nil && published.latest.Mistake != "":
		return nil, refusal.Misconfigured("the keys of the provider cannot be read: " + published.latest.Mistake)
	default:
		return nil, refusal.Misconfigured("the ID token " + explainTokenError(raw, idp.issuer, config, p.env.Now(), keys.failure != nil, err))
	}
	var claims struct {
		Party string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return nil, refusal.Misconfigured("the claims of the ID token cannot be read")
	}
	switch {
	case nonce != "" && subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return nil, refusal.ByProvider("the ID token is that of another sign-in")
	case len(token.Audience) > 1 && claims.Party == "", claims.Party != "" && claims.Party != config.ClientID:
		return nil, refusal.Misconfigured("the ID token is for another client")
	case token.Expiry.IsZero() || token.IssuedAt.Unix() <= 0 || token.IssuedAt.After(p.env.Now().Add(skew)):
		return nil, refusal.Misconfigured("the ID token has no usable time")
	}
	return token, nil
}

// mapClaims returns the person of the claims. Source: Spec 2.7 (usernameClaim, platformUsernameClaim, preferredUsername, emailClaim,
// groupsClaim, allowedExtraClaims).
func mapClaims(settings *model.OIDCProvider, claims claimSet) (provider.Person, error) {
	var problem error
	var absent, omitted []string
	// text returns the text of a claim. One that is none is wrong without a label, and otherwise left out with its label.
	text := func(field, name, fallback, label string) string {
		if name == "" {
			field, name = "", fallback
		}
		switch value := claims[name].(type) {
		case nil:
			absent = append(absent, claims.describeAbsent(field, name))
			return ""
		case string:
			return value
		case json.Number:
			// The IDs of some providers are numbers. A whole number has one text.
			if wholeNumber().MatchString(value.String()) {
				return value.String()
			}
		}
		if label == "" {
			problem = refusal.Misconfigured("the claim " + name + " is not a text")
		} else {
			omitted = append(omitted, label)
		}
		return ""
	}
	person := provider.Person{
		Subject:           text("usernameClaim", settings.UsernameClaim, "sub", ""),
		PreferredUsername: text("preferredUsername", settings.PreferredUsername, "preferred_username", "preferred username"),
		DisplayName:       text("", "", "name", "name"), Email: text("emailClaim", settings.EmailClaim, "email", "email"),
		Username: text("platformUsernameClaim", settings.PlatformUsernameClaim, "preferred_username", "username"),
	}
	person.LeftOut = omitted
	if person.Subject == "" && problem == nil {
		problem = refusal.Misconfigured("the ID of the person is absent: the provider did not send " + claims.describeAbsent("", cmp.Or(settings.UsernameClaim, "sub")))
	}
	// The claim is about the claim email alone. Source: OpenID Connect Core 1.0, 5.1.
	person.EmailVerified = claims["email_verified"] == true && (settings.EmailClaim == "" || settings.EmailClaim == "email")
	if settings.GroupsClaim != "" {
		switch value := claims[settings.GroupsClaim].(type) {
		case nil:
			absent = append(absent, claims.describeAbsent("groupsClaim", settings.GroupsClaim))
		case string:
			person.Groups = []string{value}
		case []any:
			for _, entry := range value {
				group, isText := entry.(string)
				if !isText {
					return provider.Person{}, refusal.Misconfigured("the claim with the groups has an entry that is not a text")
				}
				person.Groups = append(person.Groups, group)
			}
		default:
			return provider.Person{}, refusal.Misconfigured("the claim with the groups is neither a text nor a list")
		}
	}
	for _, name := range settings.AllowedExtraClaims {
		value, ok := claims[name]
		if !ok {
			continue
		}
		if person.Extra == nil {
			person.Extra = map[string]string{}
		}
		if valueText, isText := value.(string); isText {
			person.Extra[name] = valueText
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return provider.Person{}, fmt.Errorf("encoding a claim: %w", err)
		}
		person.Extra[name] = string(encoded)
	}
	slices.Sort(absent)
	person.Absent = slices.Compact(absent)
	return person, problem
}

// describeAbsent names a claim that is absent, and the setting that names it. Empty field: the claim is the default.
func (c claimSet) describeAbsent(field, name string) string {
	text := strings.TrimSpace(fmt.Sprintf("%s %.64q", field, name))
	outer, _, dotted := strings.Cut(name, ".")
	if _, ok := c[outer]; dotted && ok {
		text += fmt.Sprintf(" (the claim %.64q came: settings name whole claims, not what is in them)", outer)
	}
	return text
}

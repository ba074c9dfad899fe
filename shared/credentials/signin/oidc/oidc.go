// Package oidc asks an OpenID Connect provider who somebody is: the authorization code flow with PKCE, a nonce, and everything that a
// client must check of the answer. It follows no redirect, reads no more than a bounded answer, and connects to no address at which
// a cloud serves credentials. Source: Spec 2.7 (oidc); OpenID Connect Core 1.0; RFC 7636, 9207, 9700; ADR-0031.
package oidc

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"management.platform.sh/shared/credentials/signin"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/destination"
	"management.platform.sh/shared/platform"
)

const (
	// within bounds each request to a provider.
	within = 5 * time.Second
	// maxAnswer is the largest answer of a provider that is read, in bytes.
	maxAnswer = 1 << 20
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
	style       oauth2.AuthStyle
	// logout is where the session of a person ends. Empty: the provider has no such address.
	logout string
	read   time.Time
}

// get returns the provider of a connector. Its metadata are at most ten minutes old. Errors: signin.Refusal.
func (p *Providers) get(ctx context.Context, settings *model.OIDCProvider, key string) (*provider, error) {
	p.mu.Lock()
	found := p.known[key]
	p.mu.Unlock()
	if found != nil && p.env.Now().Sub(found.read) < metadataFor {
		return found, nil
	}
	client, err := newClient(settings, p.env.LocalSigners)
	if err != nil {
		return nil, err
	}
	metadata, err := goidc.NewProvider(goidc.ClientContext(ctx, client), settings.IssuerURL)
	if err != nil {
		return nil, unanswered(err)
	}
	var said struct {
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
		Logout      string   `json:"end_session_endpoint"`
	}
	if err := metadata.Claims(&said); err != nil {
		return nil, signin.Misconfigured("the metadata of the provider cannot be read")
	}
	made := &provider{Provider: metadata, client: client, namesIssuer: said.NamesIssuer, style: oauth2.AuthStyleInHeader, logout: said.Logout, read: p.env.Now()}
	if len(said.Methods) > 0 && !slices.Contains(said.Methods, "client_secret_basic") {
		made.style = oauth2.AuthStyleInParams
	}
	if settings.ClientSecret == "" {
		made.style = oauth2.AuthStyleInParams
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxKept {
		clear(p.known)
	}
	p.known[key] = made
	return made, nil
}

// newClient returns a client for a provider.
func newClient(settings *model.OIDCProvider, local bool) (*http.Client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: settings.InsecureCA} //nolint:gosec // the configuration says so
	if settings.CAFile != "" {
		roots, err := os.ReadFile(settings.CAFile)
		trust.RootCAs = x509.NewCertPool()
		if err != nil || !trust.RootCAs.AppendCertsFromPEM(roots) {
			return nil, signin.Misconfigured("caFile cannot be read here, or has no certificate")
		}
	}
	return &http.Client{
		Timeout: within,
		Transport: bounded{&http.Transport{
			TLSClientConfig: trust, Proxy: http.ProxyFromEnvironment, DialContext: destination.Dialer(within, local).DialContext,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: within,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// bounded reads no more than maxAnswer of each answer, and sends nothing without TLS.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errors.New("an endpoint of the provider is not an https URL")
	}
	answer, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	answer.Body = &limited{ReadCloser: answer.Body, left: maxAnswer}
	return answer, nil
}

// limited is an answer that ends with an error if it is too large.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(into []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the answer of the provider is too large")
	}
	if int64(len(into)) > l.left {
		into = into[:l.left]
	}
	n, err := l.ReadCloser.Read(into)
	l.left -= int64(n)
	return n, err
}

// unanswered says why a request to a provider has no good answer. The text of the error may quote the answer: it is for nobody.
func unanswered(err error) error {
	var sent *url.Error
	var retrieved *oauth2.RetrieveError
	switch {
	case errors.As(err, &retrieved):
		return signin.Refused(retrieved.ErrorCode)
	case errors.As(err, &sent):
		return signin.Unreachable(errors.New(reason(err)))
	default:
		return signin.Misconfigured("an answer of the provider breaks the protocol")
	}
}

// reason says why a request has no answer, without its URL.
func reason(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "the certificate of the provider cannot be verified"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer of the provider in time"
	default:
		return "no connection to the provider"
	}
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
	found, err := p.get(ctx, connector.OIDC, connector.Fingerprint())
	if err != nil {
		return "", err
	}
	at, err := url.Parse(found.Endpoint().AuthURL)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return "", signin.Misconfigured("the authorization endpoint of the provider is not an https URL")
	}
	return found.config(connector.OIDC).AuthCodeURL(request.State, goidc.Nonce(request.Nonce), oauth2.S256ChallengeOption(request.Verifier)), nil
}

// End implements signin.Provider. Source: OpenID Connect RP-Initiated Logout 1.0, 2.
func (p *Providers) End(ctx context.Context, connector signin.Connector) (string, error) {
	found, err := p.get(ctx, connector.OIDC, connector.Fingerprint())
	if err != nil || found.logout == "" {
		return "", err
	}
	at, err := url.Parse(found.logout)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return "", signin.Misconfigured("the logout endpoint of the provider is not an https URL")
	}
	query := at.Query()
	query.Set("client_id", connector.OIDC.ClientID)
	if back := connector.OIDC.PostLogoutRedirectURI; back != "" {
		query.Set("post_logout_redirect_uri", back)
	}
	at.RawQuery = query.Encode()
	return at.String(), nil
}

// Finish implements signin.Provider.
func (p *Providers) Finish(ctx context.Context, connector signin.Connector, answer signin.Answer) (signin.Person, error) {
	settings := connector.OIDC
	found, err := p.get(ctx, settings, connector.Fingerprint())
	if err != nil {
		return signin.Person{}, err
	}
	// The code is for the issuer that the answer names, and goes to no other.
	if answer.Issuer != "" && answer.Issuer != settings.IssuerURL || answer.Issuer == "" && found.namesIssuer {
		return signin.Person{}, signin.Refused("the answer is that of another issuer")
	}
	ctx = goidc.ClientContext(ctx, found.client)
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(answer.Verifier)}
	if settings.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", settings.Resource))
	}
	tokens, err := found.config(settings).Exchange(ctx, answer.Code, options...)
	if err != nil {
		return signin.Person{}, unanswered(err)
	}
	raw, given := tokens.Extra("id_token").(string)
	if !given {
		return signin.Person{}, signin.Misconfigured("the provider gave no ID token")
	}
	token, err := p.verify(ctx, found, settings, raw, answer.Nonce)
	if err != nil {
		return signin.Person{}, err
	}
	if token.AccessTokenHash != "" && token.VerifyAccessToken(tokens.AccessToken) != nil {
		return signin.Person{}, signin.Misconfigured("the access token does not belong to the ID token")
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return signin.Person{}, signin.Misconfigured("the claims of the ID token cannot be read")
	}
	if settings.GetUserInfo {
		info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil {
			return signin.Person{}, unanswered(err)
		}
		more := map[string]any{}
		if err := info.Claims(&more); err != nil || info.Subject != token.Subject || more["sub"] != token.Subject {
			return signin.Person{}, signin.Misconfigured("the UserInfo is that of another subject")
		}
		maps.Copy(claims, more)
	}
	return person(settings, claims)
}

// verify checks an ID token. The library checks signature, issuer, audience and expiry.
func (p *Providers) verify(ctx context.Context, found *provider, settings *model.OIDCProvider, raw, nonce string) (*goidc.IDToken, error) {
	token, err := found.VerifierContext(ctx, &goidc.Config{
		ClientID: settings.ClientID, SupportedSigningAlgs: algorithms, Now: p.env.Now,
	}).Verify(ctx, raw)
	if err != nil {
		return nil, signin.Misconfigured("the ID token is not valid")
	}
	var claims struct {
		Party string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return nil, signin.Misconfigured("the claims of the ID token cannot be read")
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
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
func person(settings *model.OIDCProvider, claims map[string]any) (signin.Person, error) {
	var wrong error
	text := func(name, instead string) string {
		if name == "" {
			name = instead
		}
		switch value := claims[name].(type) {
		case nil:
			return ""
		case string:
			return value
		case float64:
			// The IDs of some providers are numbers.
			if value == float64(int64(value)) {
				return strconv.FormatInt(int64(value), 10)
			}
		}
		wrong = signin.Misconfigured("the claim " + name + " is not a text")
		return ""
	}
	found := signin.Person{
		Subject: text(settings.UsernameClaim, "sub"), PreferredUsername: text(settings.PreferredUsername, "preferred_username"),
		DisplayName: text("", "name"), Email: text(settings.EmailClaim, "email"),
	}
	found.Username = text(settings.PlatformUsernameClaim, "preferred_username")
	found.EmailVerified = claims["email_verified"] == true
	if settings.GroupsClaim != "" {
		switch value := claims[settings.GroupsClaim].(type) {
		case nil:
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
	return found, wrong
}

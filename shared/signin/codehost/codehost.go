// Package codehost asks the code hosts who a person is: OAuth 2.0 with PKCE, and then their APIs. The number of an account
// identifies a person: names and email addresses can be given to another person later. Source: Spec 2.7 (gitforge1, gitforge2);
// RFC 6749, 7636; ADR-0035.
package codehost

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/upstream"
)

// pageSize is how many entries of a list are asked for at a time.
const pageSize = "100"

// host has the addresses of a code host, and its OAuth client.
type host struct {
	config *oauth2.Config
	api    string
	client *http.Client
}

// codeHost is the OAuth client that the code hosts share.
type codeHost struct {
	env *platform.Environment
	// host returns where the code host of a connector is.
	host func(one provider.Connector) (host, upstream.Trust)
	// fetchPerson asks who the owner of a token is.
	fetchPerson func(ctx context.Context, api upstream.API, one provider.Connector) (provider.Person, error)
}

var _ provider.Refresher = (*codeHost)(nil)

// resolveHost returns the code host of a connector. Errors: refusal.Refusal.
func (p *codeHost) resolveHost(conn provider.Connector) (host, error) {
	target, trust := p.host(conn)
	if parsed, err := url.Parse(target.config.Endpoint.AuthURL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return host{}, refusal.Misconfigured("the address of the provider is not an https URL")
	}
	var err error
	target.client, err = upstream.NewClient(p.env, trust)
	target.config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	target.config.RedirectURL = conn.RedirectURI
	return target, err
}

func (p *codeHost) AuthorizationURL(_ context.Context, conn provider.Connector, request provider.Request) (string, error) {
	target, err := p.resolveHost(conn)
	if err != nil {
		return "", err
	}
	return target.config.AuthCodeURL(request.State, oauth2.S256ChallengeOption(request.Verifier)), nil
}

func (p *codeHost) HandleCallback(ctx context.Context, conn provider.Connector, callback provider.Response) (provider.Person, error) {
	code, issuer, err := callback.Code()
	if err != nil {
		return provider.Person{}, err
	}
	target, err := p.resolveHost(conn)
	if err != nil {
		return provider.Person{}, err
	}
	defer target.client.CloseIdleConnections()
	// The code hosts name no issuer. An answer that names one comes from another provider.
	if issuer != "" && !strings.HasPrefix(target.config.Endpoint.AuthURL, issuer+"/") {
		return provider.Person{}, refusal.ByProvider("the answer is that of another issuer")
	}
	tokens, err := target.config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, target.client), code, oauth2.VerifierOption(callback.Verifier))
	if err != nil {
		return provider.Person{}, upstream.TranslateError(err)
	}
	return p.identify(ctx, conn, target, tokens)
}

func (p *codeHost) Refresh(ctx context.Context, conn provider.Connector, session provider.Session, save func(provider.Session) error) (provider.Person, error) {
	target, err := p.resolveHost(conn)
	if err != nil {
		return provider.Person{}, err
	}
	defer target.client.CloseIdleConnections()
	tokens, err := upstream.RefreshTokens(ctx, target.client, target.config, session, save)
	if err != nil {
		return provider.Person{}, err
	}
	return p.identify(ctx, conn, target, tokens)
}

// identify returns the owner of a token.
func (p *codeHost) identify(ctx context.Context, conn provider.Connector, target host, tokens *oauth2.Token) (provider.Person, error) {
	if !strings.EqualFold(tokens.TokenType, "bearer") {
		return provider.Person{}, refusal.Misconfigured("the provider gave a token of another type")
	}
	person, err := p.fetchPerson(ctx, upstream.API{Client: target.client, Base: target.api, Token: tokens.AccessToken}, conn)
	person.Session = provider.Session{AccessToken: secret.String(tokens.AccessToken), RefreshToken: secret.String(tokens.RefreshToken)}
	return person, err
}

// EndSessionURL is empty: the code hosts have no end-session endpoint.
func (*codeHost) EndSessionURL(context.Context, provider.Connector) (string, error) { return "", nil }

// checkAccountID checks that the ID of an account is positive.
func checkAccountID(id int64) error {
	if id <= 0 {
		return refusal.Misconfigured("the provider names no number of the account")
	}
	return nil
}

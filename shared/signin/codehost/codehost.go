// Package codehost asks the code hosts who somebody is: OAuth 2.0 with PKCE, and then their APIs. A person is the number of their account:
// names and email addresses are given to others one day. Source: Spec 2.7 (gitforge1, gitforge2); RFC 6749, 7636; ADR-0035.
package codehost

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin"
	"management.platform.sh/shared/signin/upstream"
)

// pageSize is how many entries of a list are asked for at a time.
const pageSize = "100"

// host is where a code host is, and how the platform asks it.
type host struct {
	config *oauth2.Config
	api    string
	client *http.Client
}

// provider is the code that the code hosts share: it begins an attempt, and exchanges the code. It implements signin.Provider.
type provider struct {
	env *platform.Environment
	// host returns where the code host of a connector is.
	host func(one signin.Connector) (host, upstream.Trust)
	// person asks who the owner of a token is.
	person func(ctx context.Context, api upstream.API, one signin.Connector) (signin.Person, error)
}

// at returns the code host of a connector. Errors: signin.Refusal.
func (p *provider) at(one signin.Connector) (host, error) {
	found, trust := p.host(one)
	if at, err := url.Parse(found.config.Endpoint.AuthURL); err != nil || at.Scheme != "https" || at.Host == "" {
		return host{}, signin.Misconfigured("the address of the provider is not an https URL")
	}
	var err error
	found.client, err = upstream.Client(p.env, trust)
	found.config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	found.config.RedirectURL = one.RedirectURI
	return found, err
}

// Begin implements signin.Provider.
func (p *provider) Begin(_ context.Context, one signin.Connector, request signin.Request) (string, error) {
	found, err := p.at(one)
	if err != nil {
		return "", err
	}
	return found.config.AuthCodeURL(request.State, oauth2.S256ChallengeOption(request.Verifier)), nil
}

// Finish implements signin.Provider.
func (p *provider) Finish(ctx context.Context, one signin.Connector, answer signin.Answer) (signin.Person, error) {
	code, issuer, err := answer.Code()
	if err != nil {
		return signin.Person{}, err
	}
	found, err := p.at(one)
	if err != nil {
		return signin.Person{}, err
	}
	defer found.client.CloseIdleConnections()
	// The code hosts name no issuer. An answer that names one is that of another provider.
	if issuer != "" && !strings.HasPrefix(found.config.Endpoint.AuthURL, issuer+"/") {
		return signin.Person{}, signin.Refused("the answer is that of another issuer")
	}
	tokens, err := found.config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, found.client), code, oauth2.VerifierOption(answer.Verifier))
	if err != nil {
		return signin.Person{}, upstream.Unanswered(err)
	}
	return p.ask(ctx, one, found, tokens)
}

// Renew implements signin.Renewer.
func (p *provider) Renew(ctx context.Context, one signin.Connector, session signin.Session, keep func(signin.Session) error) (signin.Person, error) {
	found, err := p.at(one)
	if err != nil {
		return signin.Person{}, err
	}
	defer found.client.CloseIdleConnections()
	tokens, err := upstream.Refresh(ctx, found.client, found.config, session, keep)
	if err != nil {
		return signin.Person{}, err
	}
	return p.ask(ctx, one, found, tokens)
}

// ask returns the owner of a token.
func (p *provider) ask(ctx context.Context, one signin.Connector, found host, tokens *oauth2.Token) (signin.Person, error) {
	if !strings.EqualFold(tokens.TokenType, "bearer") {
		return signin.Person{}, signin.Misconfigured("the provider gave a token of another type")
	}
	who, err := p.person(ctx, upstream.API{Client: found.client, Base: found.api, Token: tokens.AccessToken}, one)
	who.Session = signin.Session{Access: secret.String(tokens.AccessToken), Refresh: secret.String(tokens.RefreshToken)}
	return who, err
}

// End implements signin.Provider: the code hosts have no address at which a session ends.
func (*provider) End(context.Context, signin.Connector) (string, error) { return "", nil }

// numeric checks that the ID of an account is positive.
func numeric(id int64) error {
	if id <= 0 {
		return signin.Misconfigured("the provider names no number of the account")
	}
	return nil
}

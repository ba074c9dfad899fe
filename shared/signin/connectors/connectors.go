// Package connectors has the provider of each kind of connector: it is the provider.Provider of the functions that sign people
// in. Other functions do not link it. Source: ADR-0035.
package connectors

import (
	"context"

	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/clustermanager"
	"management.platform.sh/shared/signin/codehost"
	"management.platform.sh/shared/signin/oidc"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/saml"
)

// Providers calls the provider of each connector by its kind.
type Providers struct {
	kinds map[string]provider.Provider
	oidc  *oidc.Providers
}

// The kinds that can be asked again; see Refresh.
var _ = []provider.Refresher{(*oidc.Providers)(nil), oidc.IDP1{}, oidc.IDP2{}, (*clustermanager.Provider)(nil)}

// Open returns the providers of an environment. It connects to none of them yet.
func Open(env *platform.Environment) *Providers {
	return &Providers{oidc: oidc.Open(env), kinds: map[string]provider.Provider{
		connector.OIDC: oidc.Open(env), connector.IDP1: oidc.OpenIDP1(env), connector.IDP2: oidc.OpenIDP2(env),
		connector.GitForge1: codehost.OpenGitForge1(env), connector.GitForge2: codehost.OpenGitForge2(env),
		connector.SAML: saml.Open(env), connector.ClusterManager: clustermanager.Open(env),
	}}
}

func (p *Providers) AuthorizationURL(ctx context.Context, conn provider.Connector, request provider.Request) (string, error) {
	return p.kinds[conn.Kind].AuthorizationURL(ctx, conn, request)
}

func (p *Providers) HandleCallback(ctx context.Context, conn provider.Connector, callback provider.Response) (provider.Person, error) {
	return p.kinds[conn.Kind].HandleCallback(ctx, conn, callback)
}

func (p *Providers) EndSessionURL(ctx context.Context, conn provider.Connector) (string, error) {
	return p.kinds[conn.Kind].EndSessionURL(ctx, conn)
}

// Refresh refreshes the person of a session. A kind that cannot refresh gives no session.
func (p *Providers) Refresh(
	ctx context.Context, conn provider.Connector, session provider.Session, save func(provider.Session) error,
) (provider.Person, error) {
	renewer, ok := p.kinds[conn.Kind].(provider.Refresher)
	if !ok {
		return provider.Person{}, refusal.Misconfigured("the connector cannot be asked again")
	}
	return renewer.Refresh(ctx, conn, session, save)
}

// Revoke revokes the refresh token of a session. The other identity providers end all sign-ins of a person with one token, or take none back.
func (p *Providers) Revoke(ctx context.Context, conn provider.Connector, session provider.Session) (bool, error) {
	if conn.Kind != connector.OIDC {
		return false, nil
	}
	return p.oidc.Revoke(ctx, conn, session)
}

func (p *Providers) VerifyLogoutToken(ctx context.Context, conn provider.Connector, token string) (provider.LogoutToken, error) {
	if conn.Kind != connector.OIDC {
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("connectors of this kind send none")
	}
	return p.oidc.VerifyLogoutToken(ctx, conn, token)
}

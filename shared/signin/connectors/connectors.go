// Package connectors has the provider of each kind of connector: it is the signin.Provider of the functions that sign people in. Those
// that do not, do not link it. Source: ADR-0035.
package connectors

import (
	"context"

	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin"
	"management.platform.sh/shared/signin/clustermanager"
	"management.platform.sh/shared/signin/codehost"
	"management.platform.sh/shared/signin/oidc"
	"management.platform.sh/shared/signin/saml"
)

// Providers asks each connector by its kind. It implements signin.Provider, signin.Keeper and signin.Notifier.
type Providers struct {
	kinds map[string]signin.Provider
	oidc  *oidc.Providers
}

// Open returns the providers of an environment. It connects to none of them yet.
func Open(env *platform.Environment) *Providers {
	return &Providers{oidc: oidc.Open(env), kinds: map[string]signin.Provider{
		connector.OIDC: oidc.Open(env), connector.IDP1: oidc.OpenIDP1(env), connector.IDP2: oidc.OpenIDP2(env),
		connector.GitForge1: codehost.OpenGitForge1(env), connector.GitForge2: codehost.OpenGitForge2(env),
		connector.SAML: saml.Open(env), connector.ClusterManager: clustermanager.Open(env),
	}}
}

// Begin implements signin.Provider.
func (p *Providers) Begin(ctx context.Context, one signin.Connector, request signin.Request) (string, error) {
	return p.kinds[one.Kind].Begin(ctx, one, request)
}

// Finish implements signin.Provider.
func (p *Providers) Finish(ctx context.Context, one signin.Connector, answer signin.Answer) (signin.Person, error) {
	return p.kinds[one.Kind].Finish(ctx, one, answer)
}

// End implements signin.Provider.
func (p *Providers) End(ctx context.Context, one signin.Connector) (string, error) {
	return p.kinds[one.Kind].End(ctx, one)
}

// Renew implements signin.Renewer. A kind that cannot be asked again gives no session.
func (p *Providers) Renew(
	ctx context.Context, one signin.Connector, session signin.Session, keep func(signin.Session) error,
) (signin.Person, error) {
	renewer, can := p.kinds[one.Kind].(signin.Renewer)
	if !can {
		return signin.Person{}, signin.Misconfigured("the connector cannot be asked again")
	}
	return renewer.Renew(ctx, one, session, keep)
}

// Revoke implements signin.Revoker. The other identity providers end all sign-ins of a person with one token, or take none back.
func (p *Providers) Revoke(ctx context.Context, one signin.Connector, session signin.Session) (bool, error) {
	if one.Kind != connector.OIDC {
		return false, nil
	}
	return p.oidc.Revoke(ctx, one, session)
}

// Ended implements signin.Notifier.
func (p *Providers) Ended(ctx context.Context, one signin.Connector, token string) (signin.Ended, error) {
	if one.Kind != connector.OIDC {
		return signin.Ended{}, signin.NotLoggedOut("connectors of this kind send none")
	}
	return p.oidc.Ended(ctx, one, token)
}

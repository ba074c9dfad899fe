package oidc

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/lazyregexp"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin"
	"management.platform.sh/shared/signin/upstream"
)

// The public addresses of the second identity provider, and the tenant of accounts that belong to no organization.
const (
	idp2Address   = "https://login.microsoftonline.com"
	idp2Directory = "https://graph.microsoft.com"
	idp2Personal  = "9188040d-6c67-4c5b-b112-36a304b66dad"
	// maxObjects is how many names the directory looks up at a time.
	maxObjects = 1000
)

// objectID is an ID of a tenant, a person or a group.
var objectID = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IDP2 is the second identity provider: an OpenID Connect provider with tenants, and a directory that knows their groups. It implements
// signin.Provider. Source: Spec 2.7 (idp2); ADR-0035.
type IDP2 struct{ *Providers }

// OpenIDP2 returns the second identity provider of an environment.
func OpenIDP2(env *platform.Environment) IDP2 { return IDP2{Open(env)} }

// address returns where the tenants are.
func (p IDP2) address() string { return cmp.Or(p.env.Endpoints.IDP2, idp2Address) }

func (p IDP2) source(one signin.Connector) source {
	settings := one.Settings.IDP2
	found := source{tenants: true, OIDCProvider: &model.OIDCProvider{
		IssuerURL: p.address() + "/" + cmp.Or(settings.Tenant, "common") + "/v2.0", ClientID: settings.ClientID, ClientSecret: settings.ClientSecret,
		RedirectURI: settings.RedirectURI, CAFile: p.env.Endpoints.CAFile, Scopes: []string{"profile", "email", "offline_access"},
	}}
	if connector.SingleTenant(settings.Tenant) {
		found.Scopes = append(found.Scopes, "User.Read", "GroupMember.Read.All")
	}
	return found
}

// Begin implements signin.Provider.
func (p IDP2) Begin(ctx context.Context, one signin.Connector, request signin.Request) (string, error) {
	return p.begin(ctx, p.source(one), one.Fingerprint(), request)
}

// End implements signin.Provider: a session at the provider is that of all its applications, and goes on.
func (IDP2) End(context.Context, signin.Connector) (string, error) { return "", nil }

// Finish implements signin.Provider.
func (p IDP2) Finish(ctx context.Context, one signin.Connector, answer signin.Answer) (signin.Person, error) {
	settings := p.source(one)
	answered, err := p.finish(ctx, settings, one.Fingerprint(), answer)
	if err != nil {
		return signin.Person{}, err
	}
	return p.who(ctx, one, settings, answered)
}

// Renew implements signin.Renewer.
func (p IDP2) Renew(ctx context.Context, one signin.Connector, session signin.Session, keep func(signin.Session) error) (signin.Person, error) {
	settings := p.source(one)
	answered, err := p.renew(ctx, settings, one.Fingerprint(), session, keep)
	if err != nil {
		return signin.Person{}, err
	}
	return p.who(ctx, one, settings, answered)
}

// who returns the person of an answer, if the settings admit them. Their ID is that of the tenant with that of the account there. The
// provider lets people choose their email addresses, so none is verified.
func (p IDP2) who(ctx context.Context, one signin.Connector, settings source, answered said) (signin.Person, error) {
	who, err := answered.person(settings.OIDCProvider)
	if err != nil {
		return signin.Person{}, err
	}
	tenant, _ := answered.claims["tid"].(string)
	if err := p.admitTenant(one.Settings.IDP2.Tenant, answered.found.issuer, answered.claims["iss"], tenant); err != nil {
		return signin.Person{}, err
	}
	account, _ := answered.claims["oid"].(string)
	if !objectID().MatchString(account) {
		return signin.Person{}, signin.Misconfigured("the ID token has no oid")
	}
	who.Subject, who.EmailVerified = tenant+"/"+account, false
	if connector.SingleTenant(one.Settings.IDP2.Tenant) {
		api := upstream.API{Client: answered.found.client, Base: cmp.Or(p.env.Endpoints.IDP2Directory, idp2Directory), Token: answered.tokens.AccessToken}
		who.Groups, err = groups(ctx, api, one.Settings.IDP2)
	}
	return who, err
}

// admitTenant refuses a person of a tenant that the settings do not mean. Without an issuer and a tenant, nobody knows. The issuer of a token must be that of its tenant, whose ID is in
// the issuer of the metadata unless these are for many tenants.
func (p IDP2) admitTenant(wanted, metadata string, issuer any, tenant string) error {
	expected := p.address() + "/" + tenant + "/v2.0"
	many := metadata == p.address()+"/{tenantid}/v2.0" && !connector.SingleTenant(wanted)
	switch {
	case metadata == "" || issuer == nil || issuer == "" || !objectID().MatchString(tenant):
		return signin.Misconfigured("the ID token has no tid or iss, or the metadata have no issuer")
	case issuer != expected:
		return signin.NotAdmitted("the issuer is not that of the tenant")
	case metadata != expected && !many:
		return signin.NotAdmitted("another tenant")
	case strings.EqualFold(wanted, "consumers") && tenant != idp2Personal, strings.EqualFold(wanted, "organizations") && tenant == idp2Personal:
		return signin.NotAdmitted("another kind of tenant")
	}
	return nil
}

// groups returns the groups of the owner of a token. A group is its ID: members may choose its name. A group that the settings name has
// that name as well.
func groups(ctx context.Context, api upstream.API, settings *model.IDP2Provider) ([]string, error) {
	var members struct {
		IDs []string `json:"value"`
	}
	asked := map[string]bool{"securityEnabledOnly": settings.OnlySecurityGroups}
	if err := api.Post(ctx, "/v1.0/me/getMemberGroups", asked, &members); err != nil {
		return nil, err
	}
	found := members.IDs
	if slices.ContainsFunc(settings.Groups, func(group string) bool { return !objectID().MatchString(strings.ToLower(group)) }) {
		for ids := range slices.Chunk(members.IDs, maxObjects) {
			var objects struct {
				Values []struct {
					Name string `json:"displayName"`
				} `json:"value"`
			}
			if err := api.Post(ctx, "/v1.0/directoryObjects/getByIds", map[string][]string{"ids": ids, "types": {"group"}}, &objects); err != nil {
				return nil, err
			}
			for _, object := range objects.Values {
				if slices.Contains(settings.Groups, object.Name) && !objectID().MatchString(strings.ToLower(object.Name)) {
					found = append(found, object.Name)
				}
			}
		}
	}
	if settings.UseGroupsAsWhitelist {
		found = slices.DeleteFunc(found, func(group string) bool { return !slices.Contains(settings.Groups, group) })
	}
	return found, nil
}

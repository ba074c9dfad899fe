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
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/upstream"
)

// The public addresses of Microsoft Entra ID and of Microsoft Graph, and the tenant of personal accounts.
const (
	idp2Address        = "https://login.microsoftonline.com"
	idp2Directory      = "https://graph.microsoft.com"
	idp2PersonalTenant = "9188040d-6c67-4c5b-b112-36a304b66dad"
	// maxObjects is how many names the directory looks up at a time.
	maxObjects = 1000
)

// objectID matches the ID of a tenant, a person or a group.
var objectID = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IDP2 is Microsoft Entra ID: an OpenID Connect provider with tenants, with Microsoft Graph for groups. Source: Spec 2.7 (idp2); ADR-0035.
type IDP2 struct{ *Providers }

// OpenIDP2 returns the provider for Microsoft Entra ID of an environment.
func OpenIDP2(env *platform.Environment) IDP2 { return IDP2{Open(env)} }

// address returns where the tenants are.
func (p IDP2) address() string { return cmp.Or(p.env.Endpoints.IDP2, idp2Address) }

func (p IDP2) config(conn provider.Connector) providerConfig {
	settings := conn.Settings.IDP2
	config := providerConfig{multiTenant: true, OIDCProvider: &model.OIDCProvider{
		IssuerURL: p.address() + "/" + cmp.Or(settings.Tenant, "common") + "/v2.0", ClientID: settings.ClientID, ClientSecret: settings.ClientSecret,
		RedirectURI: settings.RedirectURI, CAFile: p.env.Endpoints.CAFile, Scopes: []string{"profile", "email", "offline_access"},
	}}
	if connector.SingleTenant(settings.Tenant) {
		config.Scopes = append(config.Scopes, "User.Read", "GroupMember.Read.All")
	}
	return config
}

func (p IDP2) AuthorizationURL(ctx context.Context, conn provider.Connector, request provider.Request) (string, error) {
	return p.authorizationURL(ctx, p.config(conn), conn.Fingerprint(), request)
}

// EndSessionURL is empty: a session at Microsoft belongs to all its applications, and goes on.
func (IDP2) EndSessionURL(context.Context, provider.Connector) (string, error) { return "", nil }

func (p IDP2) HandleCallback(ctx context.Context, conn provider.Connector, callback provider.Response) (provider.Person, error) {
	config := p.config(conn)
	response, err := p.redeemCode(ctx, config, conn.Fingerprint(), callback)
	if err != nil {
		return provider.Person{}, err
	}
	return p.identify(ctx, conn, config, response)
}

func (p IDP2) Refresh(ctx context.Context, conn provider.Connector, session provider.Session, save func(provider.Session) error) (provider.Person, error) {
	config := p.config(conn)
	response, err := p.refresh(ctx, config, conn.Fingerprint(), session, save)
	if err != nil {
		return provider.Person{}, err
	}
	return p.identify(ctx, conn, config, response)
}

// identify returns the person of a response, if the settings admit them. Their ID is the ID of the tenant with the ID of the account there.
// Microsoft lets people choose their email addresses, so none is verified.
func (p IDP2) identify(ctx context.Context, conn provider.Connector, config providerConfig, response providerResponse) (provider.Person, error) {
	person, err := response.person(config.OIDCProvider)
	if err != nil {
		return provider.Person{}, err
	}
	tenant, _ := response.claims["tid"].(string)
	if err := p.admitTenant(conn.Settings.IDP2.Tenant, response.idp.issuer, response.claims["iss"], tenant); err != nil {
		return provider.Person{}, err
	}
	account, _ := response.claims["oid"].(string)
	if !objectID().MatchString(account) {
		return provider.Person{}, refusal.Misconfigured("the ID token has no oid")
	}
	person.Subject, person.EmailVerified = tenant+"/"+account, false
	if connector.SingleTenant(conn.Settings.IDP2.Tenant) {
		api := upstream.API{Client: response.idp.client, Base: cmp.Or(p.env.Endpoints.IDP2Directory, idp2Directory), Token: response.tokens.AccessToken}
		person.Groups, err = readMemberGroups(ctx, api, conn.Settings.IDP2)
	}
	return person, err
}

// admitTenant refuses a person of a tenant that the settings exclude. A token without issuer or tenant says nothing of the person. The
// issuer of a token must belong to its tenant, whose ID is in the issuer of the metadata unless the metadata are for many tenants.
func (p IDP2) admitTenant(wanted, metadataIssuer string, issuer any, tenant string) error {
	expected := p.address() + "/" + tenant + "/v2.0"
	acceptsAny := metadataIssuer == p.address()+"/{tenantid}/v2.0" && !connector.SingleTenant(wanted)
	switch {
	case metadataIssuer == "" || issuer == nil || issuer == "" || !objectID().MatchString(tenant):
		return refusal.Misconfigured("the ID token has no tid or iss, or the metadata have no issuer")
	case issuer != expected:
		return refusal.NotAdmitted("the issuer is not that of the tenant")
	case metadataIssuer != expected && !acceptsAny:
		return refusal.NotAdmitted("another tenant")
	case strings.EqualFold(wanted, "consumers") && tenant != idp2PersonalTenant, strings.EqualFold(wanted, "organizations") && tenant == idp2PersonalTenant:
		return refusal.NotAdmitted("another kind of tenant")
	}
	return nil
}

// readMemberGroups returns the groups of the owner of a token. A group is identified by its ID, because members may choose its name. A
// group that the settings name has its name as well.
func readMemberGroups(ctx context.Context, api upstream.API, settings *model.IDP2Provider) ([]string, error) {
	var members struct {
		IDs []string `json:"value"`
	}
	query := map[string]bool{"securityEnabledOnly": settings.OnlySecurityGroups}
	if err := api.Post(ctx, "/v1.0/me/getMemberGroups", query, &members); err != nil {
		return nil, err
	}
	groupNames := members.IDs
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
					groupNames = append(groupNames, object.Name)
				}
			}
		}
	}
	if settings.UseGroupsAsWhitelist {
		groupNames = slices.DeleteFunc(groupNames, func(group string) bool { return !slices.Contains(settings.Groups, group) })
	}
	return groupNames, nil
}

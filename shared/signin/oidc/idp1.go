package oidc

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/upstream"
)

// The public addresses of Google, and the scope for its directory.
const (
	idp1Issuer    = "https://accounts.google.com"
	idp1Directory = "https://admin.googleapis.com"
	idp1Scope     = "https://www.googleapis.com/auth/admin.directory.group.readonly"
	// maxPages bounds how many pages of groups are read.
	maxPages = 20
)

// IDP1 is Google: an OpenID Connect provider, with the Google Workspace directory for groups. Source: Spec 2.7 (idp1); ADR-0035.
type IDP1 struct{ *Providers }

// OpenIDP1 returns the provider for Google of an environment.
func OpenIDP1(env *platform.Environment) IDP1 { return IDP1{Open(env)} }

func (p IDP1) config(conn provider.Connector) providerConfig {
	settings, endpoints := conn.Settings.IDP1, p.env.Endpoints
	config := providerConfig{OIDCProvider: &model.OIDCProvider{
		IssuerURL: cmp.Or(endpoints.IDP1, idp1Issuer), ClientID: settings.ClientID, ClientSecret: settings.ClientSecret,
		RedirectURI: settings.RedirectURI, CAFile: endpoints.CAFile, Scopes: settings.Scopes,
	}, authOptions: []oauth2.AuthCodeOption{oauth2.AccessTypeOffline}}
	if len(settings.HostedDomains) == 1 {
		// This only chooses the account that is offered. Finish decides.
		config.authOptions = append(config.authOptions, oauth2.SetAuthURLParam("hd", settings.HostedDomains[0]))
	}
	return config
}

func (p IDP1) AuthorizationURL(ctx context.Context, conn provider.Connector, request provider.Request) (string, error) {
	return p.authorizationURL(ctx, p.config(conn), conn.Fingerprint(), request)
}

// EndSessionURL is empty: Google has no end-session endpoint.
func (IDP1) EndSessionURL(context.Context, provider.Connector) (string, error) { return "", nil }

// HandleCallback identifies the person. Their domain is the claim hd, and no email address replaces it.
func (p IDP1) HandleCallback(ctx context.Context, conn provider.Connector, callback provider.Response) (provider.Person, error) {
	config := p.config(conn)
	response, err := p.redeemCode(ctx, config, conn.Fingerprint(), callback)
	if err != nil {
		return provider.Person{}, err
	}
	return p.identify(ctx, conn, config, response)
}

func (p IDP1) Refresh(ctx context.Context, conn provider.Connector, session provider.Session, save func(provider.Session) error) (provider.Person, error) {
	config := p.config(conn)
	response, err := p.refresh(ctx, config, conn.Fingerprint(), session, save)
	if err != nil {
		return provider.Person{}, err
	}
	return p.identify(ctx, conn, config, response)
}

// identify returns the person of a response, if the settings admit them.
func (p IDP1) identify(ctx context.Context, conn provider.Connector, config providerConfig, response providerResponse) (provider.Person, error) {
	person, err := response.person(config.OIDCProvider)
	if err != nil {
		return provider.Person{}, err
	}
	domain, _ := response.claims["hd"].(string)
	if domains := conn.Settings.IDP1.HostedDomains; len(domains) > 0 && !slices.Contains(domains, domain) {
		return provider.Person{}, refusal.NotAdmitted("not of a hosted domain")
	}
	person.Username = cmp.Or(person.Username, person.Email)
	if conn.Settings.IDP1.ServiceAccountFilePath != "" {
		person.Groups, err = p.readDirectoryGroups(goidc.ClientContext(ctx, response.idp.client), conn.Settings.IDP1, response, person.Subject)
	}
	return person, err
}

// readDirectoryGroups returns the groups of a person, by their addresses, from the directory. Errors: refusal.Refusal.
func (p IDP1) readDirectoryGroups(ctx context.Context, settings *model.IDP1Provider, response providerResponse, subject string) ([]string, error) {
	text, err := upstream.ReadFile(settings.ServiceAccountFilePath)
	if err != nil {
		return nil, err
	}
	var account struct {
		Email string `json:"client_email"`
		Key   string `json:"private_key"`
		KeyID string `json:"private_key_id"`
		URL   string `json:"token_uri"`
	}
	if err := json.Unmarshal(text, &account); err != nil || account.Email == "" || account.Key == "" || account.URL == "" {
		return nil, refusal.Misconfigured("the file of the service account is not one")
	}
	// The library keeps the text of an error alone.
	client, latest := upstream.Observe(response.idp.client, upstream.AnyDocument)
	token, err := (&jwt.Config{
		Email: account.Email, PrivateKey: []byte(account.Key), PrivateKeyID: account.KeyID, Subject: settings.AdminEmail,
		Scopes: []string{idp1Scope}, TokenURL: account.URL,
	}).TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
	switch {
	case err != nil && latest.Unreachable() != nil:
		return nil, latest.Unreachable()
	case err != nil:
		// A refusal is about the service account, and says nothing of the person.
		return nil, refusal.Misconfigured("the service account gets no token for the directory")
	}
	api := upstream.API{Client: response.idp.client, Base: cmp.Or(p.env.Endpoints.IDP1Directory, idp1Directory), Token: token.AccessToken}
	var groups []string
	query := url.Values{"userKey": {subject}, "maxResults": {"200"}}
	for range maxPages {
		var page struct {
			Groups []struct {
				Email string `json:"email"`
			} `json:"groups"`
			Next string `json:"nextPageToken"`
		}
		if err := api.Get(ctx, "/admin/directory/v1/groups?"+query.Encode(), &page); err != nil {
			return nil, upstream.TranslateServiceError(err)
		}
		for _, group := range page.Groups {
			groups = append(groups, group.Email)
		}
		if page.Next == "" {
			return groups, nil
		}
		query.Set("pageToken", page.Next)
	}
	return nil, refusal.Misconfigured("the directory has more than " + strconv.Itoa(maxPages) + " pages of groups")
}

// Package clustermanager asks a cluster manager who a person is. Users of the cluster manager sign in with an API token of
// theirs: the platform asks for the token on a page, sends it only to the cluster manager, and does not store it. Later the
// platform asks with its own token whether the user still exists. Source: Spec 2.7 (clustermanager); ADR-0035.
package clustermanager

import (
	"context"
	"net/url"
	"strings"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/upstream"
)

// maxToken is the largest API token that is sent, in bytes.
const maxToken = 1 << 10

// Provider signs in the users of cluster managers.
type Provider struct{ env *platform.Environment }

// Open returns the cluster managers of an environment.
func Open(env *platform.Environment) *Provider { return &Provider{env} }

// user is a user of the cluster manager.
type user struct {
	ID       string        `json:"id"`
	Username upstream.Text `json:"username"`
	Name     upstream.Text `json:"name"`
	// Enabled is false for a disabled user. Nil: the user is enabled.
	Enabled *bool `json:"enabled"`
	// Me reports whether the user is the owner of the token.
	Me bool `json:"me"`
}

// principal is a user or a group of an identity source of the cluster manager.
type principal struct {
	ID   string `json:"id"`
	Type string `json:"principalType"`
	// Member reports whether the owner of the token is in the group.
	Member bool `json:"memberOf"`
}

// list is a list of the API. A list of more than one page says where the next one is.
type list[T any] struct {
	Data       []T `json:"data"`
	Pagination struct {
		Next string `json:"next"`
	} `json:"pagination"`
}

// AuthorizationURL returns the page of the platform on which a person enters their token.
func (*Provider) AuthorizationURL(_ context.Context, conn provider.Connector, request provider.Request) (string, error) {
	return conn.RedirectURI + "?" + url.Values{"state": {request.State}}.Encode(), nil
}

func (p *Provider) HandleCallback(ctx context.Context, conn provider.Connector, callback provider.Response) (provider.Person, error) {
	token, err := oauth.Parameter(callback.Values, provider.TokenField)
	if err != nil {
		return provider.Person{}, err
	}
	token = strings.TrimSpace(token)
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return provider.Person{}, refusal.ByProvider("what was entered is no token")
	}
	api, err := p.newAPI(conn, token)
	if err != nil {
		return provider.Person{}, err
	}
	defer api.Client.CloseIdleConnections()
	var users list[user]
	if err := api.Get(ctx, "/users?me=true", &users); err != nil {
		return provider.Person{}, err
	}
	// A server that does not know the parameter lists all users that the token may see.
	if len(users.Data) != 1 || !users.Data[0].Me {
		return provider.Person{}, refusal.Misconfigured("the cluster manager does not say whose token it is")
	}
	person, err := mapUser(users.Data[0])
	if err != nil {
		return provider.Person{}, err
	}
	var principals list[principal]
	if err := api.Get(ctx, "/principals", &principals); err != nil {
		return provider.Person{}, err
	}
	if principals.Pagination.Next != "" {
		return provider.Person{}, refusal.Misconfigured("the groups of the person are on more than one page")
	}
	for _, conn := range principals.Data {
		if conn.Type == "group" && conn.Member {
			person.Groups = append(person.Groups, conn.ID)
		}
	}
	if conn.Settings.ClusterManager.BearerToken != "" {
		// The platform asks again with its own token. It keeps no more of the person than their ID.
		person.Session = provider.Session{AccessToken: secret.String(person.Subject)}
	}
	return person, nil
}

func (p *Provider) Refresh(ctx context.Context, conn provider.Connector, session provider.Session, _ func(provider.Session) error) (provider.Person, error) {
	api, err := p.newAPI(conn, conn.Settings.ClusterManager.BearerToken.Reveal())
	if err != nil {
		return provider.Person{}, err
	}
	defer api.Client.CloseIdleConnections()
	id := session.AccessToken.Reveal()
	// A list, because a user who is gone must not look like an API that is gone.
	var users list[user]
	if err := api.Get(ctx, "/users?"+url.Values{"id": {id}}.Encode(), &users); err != nil {
		return provider.Person{}, upstream.TranslateServiceError(err)
	}
	for _, account := range users.Data {
		if account.ID == id {
			person, err := mapUser(account)
			person.SameGroups = true
			return person, err
		}
	}
	if users.Data == nil || len(users.Data) > 0 || users.Pagination.Next != "" {
		return provider.Person{}, refusal.Misconfigured("the cluster manager does not say whether the user is there")
	}
	return provider.Person{}, refusal.ByProvider("the user is not at the cluster manager any more")
}

// EndSessionURL is empty: there is no session.
func (*Provider) EndSessionURL(context.Context, provider.Connector) (string, error) { return "", nil }

// newAPI returns the API of a cluster manager for the owner of a token.
func (p *Provider) newAPI(conn provider.Connector, token string) (upstream.API, error) {
	settings := conn.Settings.ClusterManager
	client, err := upstream.NewClient(p.env, upstream.Trust{Insecure: settings.Insecure, CAFile: p.env.Endpoints.CAFile})
	return upstream.API{Client: client, Base: "https://" + settings.Host + "/v3", Token: token}, err
}

// mapUser returns the person of a user. The ID identifies them: user names can be changed.
func mapUser(account user) (provider.Person, error) {
	if account.Enabled != nil && !*account.Enabled {
		return provider.Person{}, refusal.NotAdmitted("the user is disabled at the cluster manager")
	}
	return provider.Person{
		Subject: account.ID, Username: account.Username.Value, PreferredUsername: account.Username.Value, DisplayName: account.Name.Value,
		LeftOut: upstream.UnreadableNames(map[string]upstream.Text{"username": account.Username, "name": account.Name}),
	}, nil
}

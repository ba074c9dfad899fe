package codehost

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/oauth2"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/upstream"
)

// The public addresses of GitHub.
const (
	gitForge1    = "https://github.com"
	gitForge1API = "https://api.github.com"
)

// OpenGitForge1 returns the provider for GitHub and GitHub Enterprise Server of an environment.
func OpenGitForge1(env *platform.Environment) provider.Provider {
	return &codeHost{env: env, fetchPerson: gitForge1Person, host: func(conn provider.Connector) (host, upstream.Trust) {
		settings := conn.Settings.GitForge1
		web, api := cmp.Or(env.Endpoints.GitForge1, gitForge1), cmp.Or(env.Endpoints.GitForge1API, gitForge1API)
		trust := upstream.Trust{CAFile: env.Endpoints.CAFile}
		if settings.HostName != "" {
			web, api = "https://"+settings.HostName, "https://"+settings.HostName+"/api/v3"
			trust = upstream.Trust{CAFile: settings.RootCA}
		}
		scopes := []string{"user:email"}
		if len(settings.Orgs) > 0 {
			scopes = append(scopes, "read:org")
		}
		return host{api: api, config: &oauth2.Config{
			ClientID: settings.ClientID, ClientSecret: settings.ClientSecret.Reveal(), Scopes: scopes,
			Endpoint: oauth2.Endpoint{AuthURL: web + "/login/oauth/authorize", TokenURL: web + "/login/oauth/access_token"},
		}}, trust
	}}
}

// gitForge1Email is an email address of an account.
type gitForge1Email struct {
	Email    upstream.Text `json:"email"`
	Primary  bool          `json:"primary"`
	Verified bool          `json:"verified"`
}

// gitForge1Org is the login of an organization. Logins are compared without case.
type gitForge1Org struct {
	Login string `json:"login"`
}

// gitForge1Membership is a membership in an organization.
type gitForge1Membership struct {
	State        string       `json:"state"`
	Organization gitForge1Org `json:"organization"`
}

// gitForge1Team is a team that a person is in.
type gitForge1Team struct {
	Name         string       `json:"name"`
	Slug         string       `json:"slug"`
	Organization gitForge1Org `json:"organization"`
}

// gitForge1Person returns the owner of a token. It has only the groups of the organizations in the settings. Source: Spec 2.7
// (gitforge1).
func gitForge1Person(ctx context.Context, api upstream.API, conn provider.Connector) (provider.Person, error) {
	settings := conn.Settings.GitForge1
	var account struct {
		ID    int64         `json:"id"`
		Login upstream.Text `json:"login"`
		Name  upstream.Text `json:"name"`
	}
	if err := api.GetAccount(ctx, "/user", &account); err != nil {
		return provider.Person{}, err
	}
	if err := checkAccountID(account.ID); err != nil {
		return provider.Person{}, err
	}
	person := provider.Person{
		Subject: strconv.FormatInt(account.ID, 10), Username: account.Login.Value, PreferredUsername: account.Login.Value, DisplayName: account.Name.Value,
		LeftOut: upstream.UnreadableNames(map[string]upstream.Text{"username": account.Login, "name": account.Name}),
	}
	addresses, err := upstream.GetPages[gitForge1Email](ctx, api, "/user/emails?"+pageQuery(nil))
	if err != nil {
		return provider.Person{}, err
	}
	for _, address := range addresses {
		// The enterprise-hosted variant verifies no addresses: one that it names is shown, and said to be unverified.
		if public := settings.HostName == ""; address.Primary && (address.Verified || !public) {
			person.Email, person.EmailVerified = address.Email.Value, public
			person.LeftOut = append(person.LeftOut, upstream.UnreadableNames(map[string]upstream.Text{"email": address.Email})...)
		}
	}
	if len(settings.Orgs) == 0 {
		return person, nil
	}
	person.Groups, err = gitForge1Groups(ctx, api, conn)
	return person, err
}

// gitForge1Groups returns the teams of a person in the organizations of the settings. Errors: refusal.Refusal, also if the person is a
// member of none of them.
func gitForge1Groups(ctx context.Context, api upstream.API, conn provider.Connector) ([]string, error) {
	memberships, err := upstream.GetPages[gitForge1Membership](ctx, api, "/user/memberships/orgs?"+pageQuery(url.Values{"state": {"active"}}))
	if err != nil {
		return nil, err
	}
	teams, err := upstream.GetPages[gitForge1Team](ctx, api, "/user/teams?"+pageQuery(nil))
	if err != nil {
		return nil, err
	}
	var groups []string
	admitted := false
	for _, org := range conn.Settings.GitForge1.Orgs {
		if org.Name == "" || !slices.ContainsFunc(memberships, func(m gitForge1Membership) bool {
			return m.State == "active" && strings.EqualFold(m.Organization.Login, org.Name)
		}) {
			continue
		}
		admitted = admitted || len(org.Teams) == 0
		for _, team := range teams {
			if !strings.EqualFold(team.Organization.Login, org.Name) {
				continue
			}
			if len(org.Teams) == 0 {
				groups = append(groups, org.Name+":"+team.Slug)
				continue
			}
			for _, wanted := range org.Teams {
				// Slugs have no case.
				if strings.EqualFold(wanted, team.Slug) || wanted == team.Name {
					groups, admitted = append(groups, org.Name+":"+wanted), true
				}
			}
		}
	}
	if !admitted {
		return nil, refusal.NotAdmitted("in none of the organizations and teams")
	}
	return groups, nil
}

// pageQuery returns a query for the first page of a list.
func pageQuery(query url.Values) string {
	if query == nil {
		query = url.Values{}
	}
	query.Set("per_page", pageSize)
	return query.Encode()
}

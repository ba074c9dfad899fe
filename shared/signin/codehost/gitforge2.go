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

// gitForge2 is the public address of GitLab.
const gitForge2 = "https://gitlab.com"

// OpenGitForge2 returns the provider for GitLab of an environment.
func OpenGitForge2(env *platform.Environment) provider.Provider {
	return &codeHost{env: env, fetchPerson: gitForge2Person, host: func(conn provider.Connector) (host, upstream.Trust) {
		settings := conn.Settings.GitForge2
		base := strings.TrimSuffix(cmp.Or(settings.BaseURL, env.Endpoints.GitForge2, gitForge2), "/")
		scopes := []string{"openid", "read_user"}
		if len(settings.Groups) > 0 {
			// Servers that do not name groups in the UserInfo list them in their API.
			scopes = append(scopes, "read_api")
		}
		return host{api: base, config: &oauth2.Config{
			ClientID: settings.ClientID, ClientSecret: settings.ClientSecret.Reveal(), Scopes: scopes,
			Endpoint: oauth2.Endpoint{AuthURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token"},
		}}, upstream.Trust{CAFile: env.Endpoints.CAFile}
	}}
}

// gitForge2Group is a group that a person is in, by its full path.
type gitForge2Group struct {
	FullPath string `json:"full_path"`
}

// gitForge2Person returns the owner of a token, with their groups by full path. Source: Spec 2.7 (gitforge2).
func gitForge2Person(ctx context.Context, api upstream.API, conn provider.Connector) (provider.Person, error) {
	var account struct {
		ID          int64         `json:"id"`
		Username    upstream.Text `json:"username"`
		Name        upstream.Text `json:"name"`
		State       string        `json:"state"`
		Email       upstream.Text `json:"email"`
		ConfirmedAt upstream.Text `json:"confirmed_at"`
	}
	if err := api.GetAccount(ctx, "/api/v4/user", &account); err != nil {
		return provider.Person{}, err
	}
	if err := checkAccountID(account.ID); err != nil {
		return provider.Person{}, err
	}
	person := provider.Person{
		Subject: strconv.FormatInt(account.ID, 10), Username: account.Username.Value, PreferredUsername: account.Username.Value, DisplayName: account.Name.Value,
		LeftOut: upstream.UnreadableNames(map[string]upstream.Text{
			"username": account.Username, "name": account.Name, "email": account.Email, "confirmed_at": account.ConfirmedAt,
		}),
	}
	if account.State != "active" {
		return provider.Person{}, refusal.NotAdmitted("the account is not active at the provider")
	}
	if account.ConfirmedAt.Value != "" {
		person.Email, person.EmailVerified = account.Email.Value, true
	}
	var info struct {
		Subject string    `json:"sub"`
		Groups  *[]string `json:"groups"`
	}
	if err := api.Get(ctx, "/oauth/userinfo", &info); err != nil {
		return provider.Person{}, err
	}
	if info.Subject != person.Subject {
		return provider.Person{}, refusal.Misconfigured("the UserInfo is that of another subject")
	}
	allowed := conn.Settings.GitForge2.Groups
	switch {
	case info.Groups != nil:
		person.Groups = *info.Groups
	case len(allowed) > 0:
		groups, err := upstream.GetPages[gitForge2Group](ctx, api, "/api/v4/groups?"+pageQuery(url.Values{"min_access_level": {"10"}}))
		if err != nil {
			return provider.Person{}, err
		}
		for _, group := range groups {
			person.Groups = append(person.Groups, group.FullPath)
		}
	}
	if len(allowed) > 0 {
		person.Groups = slices.DeleteFunc(person.Groups, func(group string) bool { return !slices.Contains(allowed, group) })
	}
	return person, nil
}

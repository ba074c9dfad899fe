package authorize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/provisioning"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/sessions"
	"management.platform.sh/shared/signin/trial"
	"management.platform.sh/shared/state/store"
)

// Callback takes browsers back from providers. It is safe for concurrent use.
type Callback struct {
	env         *platform.Environment
	logins      *logins.Store
	sessions    *sessions.Store
	provisioner *provisioning.Provisioner
	reporter    *trial.Reporter
}

// OpenCallback returns the callback endpoint of an environment. It writes users and teams in registries of package kinds.
func OpenCallback(env *platform.Environment, users *user.Registry, teams *team.Registry, keys *accesskey.Registry) *Callback {
	provisioner := provisioning.Open(env, users, teams)
	return &Callback{
		env: env, logins: logins.Open(env), sessions: sessions.Open(env, keys), provisioner: provisioner, reporter: trial.OpenReporter(env, provisioner),
	}
}

// TokenPage is the page on which a person enters an API token of a connector.
type TokenPage struct {
	// Connector is the display name, and Host is the host to which the token is sent.
	Connector, Host string
	// Path is the path of the page, and State is the state of the attempt.
	Path, State string
}

// TakesAPIToken reports whether people enter an API token of a connector on a page of the platform.
func (e *Callback) TakesAPIToken(id string) bool {
	conn, ok := method.FindConnector(e.env.Config(), id)
	return ok && conn.AcceptsToken
}

// APITokenPage returns the token page of an attempt. Errors: Refusal.
func (e *Callback) APITokenPage(ctx context.Context, id string, query url.Values, cookies map[string]string) (page TokenPage, err error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	state, err := oauth.Parameter(query, "state")
	if err != nil {
		return page, err
	}
	attempt, err := logins.OpenAttempt(ctx, e.env, logins.AttemptID(state), cookies)
	if err != nil {
		return page, err
	}
	conn, ok := method.FindConnector(e.env.Config(), id)
	switch {
	case !oauth.EqualSecrets(attempt.State, state) || attempt.Connector != id:
		return page, refusal.NotStartedHere("state")
	case !ok || !conn.AcceptsToken || !oauth.EqualSecrets(conn.Fingerprint(), attempt.Fingerprint):
		return page, refusal.Expired("settings")
	}
	return TokenPage{
		Connector: conn.DisplayName, Host: conn.Settings.ClusterManager.Host, Path: strings.TrimPrefix(conn.RedirectURI, conn.Issuer()), State: state,
	}, nil
}

// HandleCallback takes a browser back from a provider: it identifies the person, finds or creates their user, and stores the login. It
// returns the path of the consent page. Empty: the login was a trial, and the browser goes nowhere.
//
// Errors: Refusal; the errors of the store and of the users.
func (e *Callback) HandleCallback(ctx context.Context, idp provider.Provider, id string, query url.Values, cookies map[string]string) (path string, err error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	state, err := oauth.Parameter(query, "state")
	if err != nil {
		return "", err
	}
	attempt, err := logins.OpenAttempt(ctx, e.env, logins.AttemptID(state), cookies)
	if err != nil {
		return "", err
	}
	conn, ok := method.FindConnector(e.env.Config(), attempt.Connector)
	switch {
	case !oauth.EqualSecrets(attempt.State, state) || attempt.Connector != id:
		// The response of one provider came to the callback of another.
		return "", refusal.NotStartedHere("state")
	case conn.PostBinding:
		return "", refusal.BadRequest("the provider must post its answer")
	case !ok || !oauth.EqualSecrets(conn.Fingerprint(), attempt.Fingerprint):
		return "", refusal.Expired("settings")
	}
	person, err := idp.HandleCallback(ctx, conn, provider.Response{Request: attempt.ProviderRequest(), Values: query})
	if attempt.Trial {
		return "", e.reporter.Complete(ctx, conn, attempt.State, person, err)
	}
	if err != nil {
		return "", err
	}
	login, err := e.completeLogin(ctx, conn, attempt, person)
	if err != nil {
		return "", err
	}
	now := e.env.Now()
	object, err := json.Marshal(login)
	if err != nil {
		return "", fmt.Errorf("encoding a sign-in: %w", err)
	}
	_, err = e.logins.Records.Create(ctx, store.Record{
		Name: logins.RecordName(attempt.State), Owner: logins.OwnerName(login.User), Created: now, Expires: now.Add(logins.AttemptLifetime + logins.CodeLifetime), References: login.LogoutNames,
		Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return "", refusal.NotStartedHere("replay")
	case err != nil:
		return "", fmt.Errorf("storing a sign-in: %w", err)
	}
	return e.consentPath(ctx, conn, attempt), nil
}

// completeLogin finds or creates the user of a person, and returns the login to store.
func (e *Callback) completeLogin(ctx context.Context, conn provider.Connector, attempt logins.Attempt, person provider.Person) (logins.Login, error) {
	recorder := annotations.RecorderOf(ctx)
	if attempt.Trial {
		return logins.Login{}, refusal.NotStartedHere("trial")
	}
	account, keyIdentity, err := e.provisioner.Provision(ctx, conn, person)
	if err != nil {
		return logins.Login{}, err
	}
	recorder.SetUser(account.Name)
	session, err := e.sessions.Seal(ctx, person.Session, string(account.UID))
	if err != nil {
		return logins.Login{}, err
	}
	login := logins.Login{
		Stage: logins.StageAuthenticated, User: account.Name, UID: string(account.UID), TokenGeneration: account.Spec.TokenGeneration, Identity: keyIdentity, AuthRequest: attempt.AuthRequest.WithoutBrowserState(),
		SealedSession: session, LogoutNames: provider.LogoutNames(conn, person.Session),
	}
	if !person.SessionEnds.IsZero() {
		login.SessionEnds = person.SessionEnds.Unix()
	}
	return login, nil
}

// consentPath returns the path of the consent page of an authenticated login.
func (e *Callback) consentPath(ctx context.Context, conn provider.Connector, attempt logins.Attempt) string {
	annotations.RecorderOf(ctx).SetOutcome(logins.StageAuthenticated)
	return oauth.WithQuery(conn.Issuer()+"/auth/confirm", url.Values{"id": {attempt.ID()}})
}

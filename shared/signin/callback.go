package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// CallbackEndpoint takes browsers back from providers. It is safe for concurrent use.
type CallbackEndpoint struct {
	env         *platform.Environment
	logins      *LoginStore
	sessions    *SessionStore
	provisioner *Provisioner
	reporter    *TrialReporter
}

// OpenCallback returns the callback endpoint of an environment. Functions that use it call kinds.Join first.
func OpenCallback(env *platform.Environment) *CallbackEndpoint {
	return &CallbackEndpoint{
		env: env, logins: OpenLogins(env), sessions: OpenSessions(env), provisioner: OpenProvisioner(env), reporter: OpenTrialReporter(env),
	}
}

// TokenPage is the page at which somebody enters a token of a connector.
type TokenPage struct {
	// Connector is the display name, and Host the host to which the token is sent.
	Connector, Host string
	// Path is that of the page, and State the one of the attempt.
	Path, State string
}

// TakesAPIToken reports whether people enter a token of a connector on a page of the platform.
func (e *CallbackEndpoint) TakesAPIToken(id string) bool {
	conn, ok := findConnector(e.env.Config(), id)
	return ok && conn.Token
}

// APITokenPage returns the page of an attempt. Errors: Refusal.
func (e *CallbackEndpoint) APITokenPage(ctx context.Context, id string, query url.Values, cookies map[string]string) (page TokenPage, err error) {
	recorder := RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	state, err := Parameter(query, "state")
	if err != nil {
		return page, err
	}
	attempt, err := openAttempt(ctx, e.env, attemptID(state), cookies)
	if err != nil {
		return page, err
	}
	conn, ok := findConnector(e.env.Config(), id)
	switch {
	case !constantTimeEqual(attempt.State, state) || attempt.Connector != id:
		return page, notStartedHere("state")
	case !ok || !conn.Token || !constantTimeEqual(conn.Fingerprint(), attempt.Fingerprint):
		return page, expired("settings")
	}
	return TokenPage{
		Connector: conn.DisplayName, Host: conn.Settings.ClusterManager.Host, Path: strings.TrimPrefix(conn.RedirectURI, conn.Issuer()), State: state,
	}, nil
}

// HandleCallback takes a browser back from a provider: it learns who the person is, finds or makes their user, and stores the sign-in. It
// returns the path of the page that asks for a confirmation. Empty: it was a trial, and the browser goes nowhere.
//
// Errors: Refusal; those of the store and of the users.
func (e *CallbackEndpoint) HandleCallback(ctx context.Context, idp Provider, id string, query url.Values, cookies map[string]string) (path string, err error) {
	recorder := RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	state, err := Parameter(query, "state")
	if err != nil {
		return "", err
	}
	attempt, err := openAttempt(ctx, e.env, attemptID(state), cookies)
	if err != nil {
		return "", err
	}
	conn, ok := findConnector(e.env.Config(), attempt.Connector)
	switch {
	case !constantTimeEqual(attempt.State, state) || attempt.Connector != id:
		// The answer of one provider at the address of another.
		return "", notStartedHere("state")
	case conn.Posts:
		return "", refuseBadRequest("the provider must post its answer")
	case !ok || !constantTimeEqual(conn.Fingerprint(), attempt.Fingerprint):
		return "", expired("settings")
	}
	person, err := idp.HandleCallback(ctx, conn, Response{Request: attempt.providerRequest(), Values: query})
	if attempt.Trial {
		return "", e.reporter.completeTrial(ctx, conn, attempt.State, person, err)
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
		Name: loginRecordName(attempt.State), Owner: ownerOf(login.User), Created: now, Expires: now.Add(attemptLifetime + codeLifetime), References: login.LogoutNames,
		Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return "", notStartedHere("replay")
	case err != nil:
		return "", fmt.Errorf("storing a sign-in: %w", err)
	}
	return e.consentPath(ctx, conn, attempt), nil
}

// completeLogin finds or makes the user of a person, and returns their sign-in as it is stored.
func (e *CallbackEndpoint) completeLogin(ctx context.Context, conn Connector, attempt loginAttempt, person Person) (storedLogin, error) {
	recorder := RecorderOf(ctx)
	if attempt.Trial {
		return storedLogin{}, notStartedHere("trial")
	}
	account, keyIdentity, err := e.provisioner.provisionUser(ctx, conn, person)
	if err != nil {
		return storedLogin{}, err
	}
	recorder.SetUser(account.Name)
	session, err := e.sessions.sealSession(ctx, person.Session, string(account.UID))
	if err != nil {
		return storedLogin{}, err
	}
	login := storedLogin{
		Stage: stageAuthenticated, User: account.Name, UID: string(account.UID), TokenGeneration: account.Spec.TokenGeneration, Identity: keyIdentity, AuthRequest: attempt.AuthRequest.withoutBrowserState(),
		SealedSession: session, LogoutNames: logoutNames(conn, person.Session),
	}
	if !person.SessionEnds.IsZero() {
		login.SessionEnds = person.SessionEnds.Unix()
	}
	return login, nil
}

// consentPath returns the path of the page that asks for a confirmation of a sign-in that is proven.
func (e *CallbackEndpoint) consentPath(ctx context.Context, conn Connector, attempt loginAttempt) string {
	RecorderOf(ctx).SetOutcome(stageAuthenticated)
	return withQuery(conn.Issuer()+"/auth/confirm", url.Values{"id": {attempt.id()}})
}

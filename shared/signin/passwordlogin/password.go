// Package passwordlogin is the login with a user name and a password: on a page of the platform, or from a program. Package password checks
// the password. Source: Spec 5.4; ADR-0032.
package passwordlogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/authorize"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/state/store"
)

// Page is the page on which a person types their password.
type Page struct {
	// ID is the ID of the attempt, and Platform is the address of the platform.
	ID, Platform string
}

// Start starts a login with a password (RFC 8252). It returns the page, and the cookies to set as authorize.Starter.Start does. Errors:
// Refusal. In any case nothing is stored.
func Start(ctx context.Context, env *platform.Environment, query url.Values, cookies map[string]string) (Page, []logins.Cookie, error) {
	if !method.PasswordEnabled(env.Config()) {
		return Page{}, nil, refusal.UnknownConnector()
	}
	address, settings, ok := method.Settings(env.Config(), method.PasswordID)
	if !ok {
		return Page{}, nil, refusal.Misconfigured("platformHost is not set")
	}
	request, err := authorize.OpenStarter(env).ParseRequest(ctx, address, query, cookies)
	if err != nil {
		return Page{}, nil, err
	}
	attempt, newCookies, err := logins.NewAttempt(ctx, env, logins.Attempt{Connector: method.PasswordID, Fingerprint: settings, AuthRequest: request}, cookies)
	if err != nil {
		return Page{}, nil, err
	}
	return Page{ID: attempt.ID(), Platform: address}, newCookies, nil
}

// Login is the login with a password. It is safe for concurrent use.
type Login struct {
	env     *platform.Environment
	logins  *logins.Store
	checker Checker
}

// Checker checks passwords. Implementations are safe for concurrent use.
type Checker interface {
	// Check returns the user with a name and a password. Nil: no user has the name and the password, or the user may not sign in.
	// Detail is the reason, for the audit alone. The work is the same whether or not there is such a user. Network identifies the
	// client. Errors: TooManyRequests; the store's errors.
	Check(ctx context.Context, name string, password secret.String, network string) (found *model.User, detail string, err error)
}

// Open returns the login with a password of an environment.
func Open(env *platform.Environment, checker Checker) *Login {
	return &Login{env: env, logins: logins.Open(env), checker: checker}
}

// HandleForm takes the password that a person has typed on the page of an attempt. It returns the path of the consent page. Network
// identifies the client.
//
// Errors: Refusal, with ErrPassword as a cause; the store's errors.
func (p *Login) HandleForm(ctx context.Context, form url.Values, cookies map[string]string, network string) (path string, err error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetConnector(method.PasswordID)
	defer func() { recorder.SetError(err) }()
	if !method.PasswordEnabled(p.env.Config()) {
		return "", refusal.UnknownConnector()
	}
	id, err := oauth.Parameter(form, "id")
	if err != nil {
		return "", err
	}
	attempt, err := logins.OpenAttempt(ctx, p.env, id, cookies)
	if err != nil {
		return "", err
	}
	address, settings, ok := method.Settings(p.env.Config(), method.PasswordID)
	switch {
	case attempt.Connector != method.PasswordID:
		return "", refusal.NotStartedHere("another connector")
	case !ok || !oauth.EqualSecrets(settings, attempt.Fingerprint):
		return "", refusal.Expired("settings")
	}
	login, err := p.authenticate(ctx, form, network)
	if err != nil {
		return "", err
	}
	login.Stage, login.AuthRequest = logins.StageAuthenticated, attempt.AuthRequest.WithoutBrowserState()
	if err := p.storeLogin(ctx, attempt.State, "", login); err != nil {
		return "", err
	}
	recorder.SetOutcome(logins.StageAuthenticated)
	return oauth.WithQuery(address+"/auth/confirm", url.Values{"id": {attempt.ID()}}), nil
}

// IssueCode takes a password from a program. It returns the code that the program redeems, with OutOfBand as redirect_uri. There is no
// consent page: a person who types a password into a program allows it.
//
// It returns the errors of HandleForm.
func (p *Login) IssueCode(ctx context.Context, form url.Values, network string) (code string, err error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetConnector(method.PasswordID)
	defer func() { recorder.SetError(err) }()
	if !method.PasswordEnabled(p.env.Config()) {
		return "", refusal.UnknownConnector()
	}
	params, err := oauth.Parameters(form, "client_id", "code_challenge", "code_challenge_method")
	if err != nil {
		return "", err
	}
	switch {
	case params[0] != oauth.ClientID:
		return "", refusal.BadRequest("client_id must be " + oauth.ClientID)
	case params[2] != "S256" || !oauth.IsUnreserved(params[1], 43, 43):
		return "", refusal.BadRequest("code_challenge must be made with the method S256")
	}
	login, err := p.authenticate(ctx, form, network)
	if err != nil {
		return "", err
	}
	name, err := oauth.RandomText(p.env.Random)
	if err != nil {
		return "", err
	}
	if code, err = oauth.RandomText(p.env.Random); err != nil {
		return "", err
	}
	login.Stage, login.AuthRequest, login.CodeExpires = logins.StageConsented, logins.AuthRequest{RedirectURI: oauth.OutOfBand, CodeChallenge: params[1]}, p.env.Now().Add(logins.CodeLifetime).Unix()
	if err := p.storeLogin(ctx, name, logins.CodeDigest(code), login); err != nil {
		return "", err
	}
	recorder.SetOutcome(logins.StageConsented)
	return code, nil
}

// ErrPassword says that a user name and a password do not belong together, or that the user may not sign in.
var ErrPassword = errors.New("the user name or the password is wrong")

// authenticate returns the login of the user whose name and password are in a form.
func (p *Login) authenticate(ctx context.Context, form url.Values, network string) (logins.Login, error) {
	recorder := annotations.RecorderOf(ctx)
	params, err := oauth.Parameters(form, "username", "password")
	if err != nil {
		return logins.Login{}, err
	}
	if params[0] == "" || params[1] == "" {
		return logins.Login{}, refusal.BadRequest("username and password are required")
	}
	account, detail, err := p.checker.Check(ctx, params[0], secret.String(params[1]), network)
	switch {
	case err != nil:
		return logins.Login{}, refusal.Throttled(err)
	case account == nil:
		return logins.Login{}, refusal.New("wrong_password", detail, apierror.Unauthorized(ErrPassword.Error())).WithCause(ErrPassword)
	}
	recorder.SetUser(account.Name)
	return logins.Login{
		User: account.Name, UID: string(account.UID), TokenGeneration: account.Spec.TokenGeneration,
		Identity: model.AccessKeyIdentity{
			UserID: account.Name, Username: account.Spec.Username, Email: account.Spec.Email, Connector: method.PasswordID,
		},
	}, nil
}

// storeLogin stores an authenticated login.
func (p *Login) storeLogin(ctx context.Context, name, digest string, login logins.Login) error {
	object, err := json.Marshal(login)
	if err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := p.env.Now()
	_, err = p.logins.Records.Create(ctx, store.Record{
		Name: logins.RecordName(name), Owner: identity.Owner{Kind: identity.User, Name: login.User}.String(), Digest: digest,
		Created: now, Expires: now.Add(logins.AttemptLifetime + logins.CodeLifetime), Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return refusal.NotStartedHere("replay")
	case err != nil:
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	return nil
}

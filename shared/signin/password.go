package signin

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
	"management.platform.sh/shared/state/store"
)

// PasswordPage is the page at which somebody types their password.
type PasswordPage struct {
	// ID is that of the attempt, and Platform the address of the platform.
	ID, Platform string
}

// StartPassword begins a sign-in with a password, for a program that asks as RFC 8252 says. It returns the cookies that the browser
// keeps, as Start does. Errors: Refusal; nothing is stored in any case.
func StartPassword(ctx context.Context, env *platform.Environment, query url.Values, cookies map[string]string) (PasswordPage, []Cookie, error) {
	if !PasswordEnabled(env.Config()) {
		return PasswordPage{}, nil, unknownConnector()
	}
	address, settings, ok := methodSettings(env.Config(), PasswordID)
	if !ok {
		return PasswordPage{}, nil, Misconfigured("platformHost is not set")
	}
	request, err := OpenStarter(env).parseAuthorizationRequest(ctx, address, query, cookies)
	if err != nil {
		return PasswordPage{}, nil, err
	}
	attempt, newCookies, err := newAttempt(ctx, env, loginAttempt{Connector: PasswordID, Fingerprint: settings, AuthRequest: request}, cookies)
	if err != nil {
		return PasswordPage{}, nil, err
	}
	return PasswordPage{ID: attempt.id(), Platform: address}, newCookies, nil
}

// PasswordLogin is the login with a password. It is safe for concurrent use.
type PasswordLogin struct {
	env     *platform.Environment
	logins  *LoginStore
	checker PasswordChecker
}

// PasswordChecker checks passwords. Implementations are safe for concurrent use.
type PasswordChecker interface {
	// Check returns the user with a name and a password. Nil: they do not belong together, or the user may not sign in. Detail says
	// why, for the audit alone. The work is the same whether or not there is such a user. Network identifies the client. Errors: TooManyRequests; those of the store.
	Check(ctx context.Context, name string, password secret.String, network string) (found *model.User, detail string, err error)
}

// OpenPasswordLogin returns the login with a password of an environment.
func OpenPasswordLogin(env *platform.Environment, checker PasswordChecker) *PasswordLogin {
	return &PasswordLogin{env: env, logins: OpenLogins(env), checker: checker}
}

// HandleForm takes the password that somebody has typed at the page of an attempt. It returns the path of the page that asks for a
// confirmation, as Flow.HandleCallback does. Network identifies the client.
//
// Errors: Refusal, ErrPassword among them; those of the store.
func (p *PasswordLogin) HandleForm(ctx context.Context, form url.Values, cookies map[string]string, network string) (path string, err error) {
	recorder := RecorderOf(ctx)
	recorder.SetConnector(PasswordID)
	defer func() { recorder.SetError(err) }()
	if !PasswordEnabled(p.env.Config()) {
		return "", unknownConnector()
	}
	id, err := Parameter(form, "id")
	if err != nil {
		return "", err
	}
	attempt, err := openAttempt(ctx, p.env, id, cookies)
	if err != nil {
		return "", err
	}
	address, settings, ok := methodSettings(p.env.Config(), PasswordID)
	switch {
	case attempt.Connector != PasswordID:
		return "", notStartedHere("another connector")
	case !ok || !constantTimeEqual(settings, attempt.Fingerprint):
		return "", expired("settings")
	}
	login, err := p.authenticate(ctx, form, network)
	if err != nil {
		return "", err
	}
	login.Stage, login.AuthRequest = stageAuthenticated, attempt.AuthRequest.withoutBrowserState()
	if err := p.storeLogin(ctx, attempt.State, "", login); err != nil {
		return "", err
	}
	recorder.SetOutcome(stageAuthenticated)
	return withQuery(address+"/auth/confirm", url.Values{"id": {attempt.id()}}), nil
}

// IssueCode takes a password from a program that asks for it itself. It returns the code that the program exchanges, with OutOfBand as
// redirect_uri. Nobody is asked: whoever types a password into a program allows it.
//
// Errors: those of Finish.
func (p *PasswordLogin) IssueCode(ctx context.Context, form url.Values, network string) (code string, err error) {
	recorder := RecorderOf(ctx)
	recorder.SetConnector(PasswordID)
	defer func() { recorder.SetError(err) }()
	if !PasswordEnabled(p.env.Config()) {
		return "", unknownConnector()
	}
	params, err := parameters(form, "client_id", "code_challenge", "code_challenge_method")
	if err != nil {
		return "", err
	}
	switch {
	case params[0] != ClientID:
		return "", refuseBadRequest("client_id must be " + ClientID)
	case params[2] != "S256" || !isUnreserved(params[1], 43, 43):
		return "", refuseBadRequest("code_challenge must be that of the method S256")
	}
	login, err := p.authenticate(ctx, form, network)
	if err != nil {
		return "", err
	}
	name, err := randomToken(p.env.Random)
	if err != nil {
		return "", err
	}
	if code, err = randomToken(p.env.Random); err != nil {
		return "", err
	}
	login.Stage, login.AuthRequest, login.CodeExpires = stageConsented, authRequest{RedirectURI: OutOfBand, CodeChallenge: params[1]}, p.env.Now().Add(codeLifetime).Unix()
	if err := p.storeLogin(ctx, name, codeDigest(code), login); err != nil {
		return "", err
	}
	recorder.SetOutcome(stageConsented)
	return code, nil
}

// ErrPassword says that a user name and a password do not belong together, or that the user may not sign in.
var ErrPassword = errors.New("the user name or the password is wrong")

// authenticate returns the sign-in of the user whose name and password a form has.
func (p *PasswordLogin) authenticate(ctx context.Context, form url.Values, network string) (storedLogin, error) {
	recorder := RecorderOf(ctx)
	params, err := parameters(form, "username", "password")
	if err != nil {
		return storedLogin{}, err
	}
	if params[0] == "" || params[1] == "" {
		return storedLogin{}, refuseBadRequest("username and password are required")
	}
	account, detail, err := p.checker.Check(ctx, params[0], secret.String(params[1]), network)
	switch {
	case err != nil:
		return storedLogin{}, throttled(err)
	case account == nil:
		return storedLogin{}, newRefusal("wrong_password", detail, apierror.Unauthorized(ErrPassword.Error())).withCause(ErrPassword)
	}
	recorder.SetUser(account.Name)
	return storedLogin{
		User: account.Name, UID: string(account.UID), TokenGeneration: account.Spec.TokenGeneration,
		Identity: model.AccessKeyIdentity{
			UserID: account.Name, Username: account.Spec.Username, Email: account.Spec.Email, Connector: PasswordID,
		},
	}, nil
}

// storeLogin stores a sign-in whose person is known.
func (p *PasswordLogin) storeLogin(ctx context.Context, name, digest string, login storedLogin) error {
	object, err := json.Marshal(login)
	if err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := p.env.Now()
	_, err = p.logins.Records.Create(ctx, store.Record{
		Name: loginRecordName(name), Owner: identity.Owner{Kind: identity.User, Name: login.User}.String(), Digest: digest,
		Created: now, Expires: now.Add(attemptLifetime + codeLifetime), Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return notStartedHere("replay")
	case err != nil:
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	return nil
}

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

const (
	// PasswordID is in the place of the ID of a connector where people sign in with a password.
	PasswordID = "password"
	// OutOfBand is the redirect_uri of a program that sends the password itself, so that no browser brings it the code.
	OutOfBand = "urn:ietf:wg:oauth:2.0:oob"
)

// PasswordEnabled reports whether people can sign in with a password.
func PasswordEnabled(config *model.ConfigStatus) bool {
	return config.Auth == nil || config.Auth.Password == nil || !config.Auth.Password.Disabled
}

// Address is the address of the platform for browsers: platformHost, or that of the first connector. Empty: it is not known. The Host
// header is never used.
func Address(config *model.ConfigStatus) string {
	if config.PlatformHost != "" {
		return "https://" + config.PlatformHost
	}
	for _, one := range Connectors(config) {
		return one.Issuer()
	}
	return ""
}

// door returns the address of the platform for an attempt at a connector, or with a password, and the settings that the attempt rests
// on.
func door(config *model.ConfigStatus, id string) (address, settings string, known bool) {
	if id == PasswordID {
		address = Address(config)
		return address, Digest(PasswordID, address), PasswordEnabled(config) && address != ""
	}
	chosen, known := lookup(config, id)
	if !known {
		return "", "", false
	}
	return chosen.Issuer(), chosen.Fingerprint(), true
}

// PasswordPage is the page at which somebody types their password.
type PasswordPage struct {
	// ID is that of the attempt, and Platform the address of the platform.
	ID, Platform string
}

// StartPassword begins a sign-in with a password, for a program that asks as RFC 8252 says. It returns the cookies that the browser
// keeps, as Start does. Errors: Refusal; nothing is stored in any case.
func (d *Doors) StartPassword(ctx context.Context, query url.Values, sent map[string]string) (PasswordPage, []Cookie, error) {
	if !PasswordEnabled(d.env.Config()) {
		return PasswordPage{}, nil, unknownConnector()
	}
	address, settings, known := door(d.env.Config(), PasswordID)
	if !known {
		return PasswordPage{}, nil, misconfigured("platformHost is not set")
	}
	program, err := d.asked(ctx, address, query, sent)
	if err != nil {
		return PasswordPage{}, nil, err
	}
	begun, cookies, err := d.begin(ctx, attempt{Connector: PasswordID, Settings: settings, Client: program}, sent)
	if err != nil {
		return PasswordPage{}, nil, err
	}
	return PasswordPage{ID: begun.id(), Platform: address}, cookies, nil
}

// Passwords is the sign-in with a password. It is safe for concurrent use.
type Passwords struct {
	flow    *Flow
	checker Checker
}

// Checker checks passwords. Implementations are safe for concurrent use.
type Checker interface {
	// Check returns the user with a name and a password. Nil: they do not belong together, or the user may not sign in. Detail says
	// why, for the audit alone. The work is the same whether or not there is such a user. Network identifies the client. Errors: TooManyRequests; those of the store.
	Check(ctx context.Context, name string, password secret.String, network string) (found *model.User, detail string, err error)
}

// OpenPasswords returns the sign-in with a password of an environment.
func OpenPasswords(env *platform.Environment, checker Checker) *Passwords {
	return &Passwords{flow: Open(env), checker: checker}
}

// Finish takes the password that somebody has typed at the page of an attempt. It returns the path of the page that asks for a
// confirmation, as Flow.Finish does. Network identifies the client. Notes are for the audit, also after an error.
//
// Errors: Refusal, ErrPassword among them; those of the store.
func (p *Passwords) Finish(ctx context.Context, form url.Values, cookies map[string]string, network string) (path string, notes map[string]string, err error) {
	notes = map[string]string{AnnotationConnector: PasswordID}
	defer func() { Annotate(notes, err) }()
	if !PasswordEnabled(p.flow.env.Config()) {
		return "", notes, unknownConnector()
	}
	id, err := Parameter(form, "id")
	if err != nil {
		return "", notes, err
	}
	begun, err := unseal(ctx, p.flow.env, id, cookies)
	if err != nil {
		return "", notes, err
	}
	address, settings, known := door(p.flow.env.Config(), PasswordID)
	switch {
	case begun.Connector != PasswordID:
		return "", notes, notStartedHere("another connector")
	case !known || !same(settings, begun.Settings):
		return "", notes, expired("settings")
	}
	state, err := p.prove(ctx, form, network, notes)
	if err != nil {
		return "", notes, err
	}
	state.Stage, state.Client = proven, begun.Client.withoutState()
	if err := p.store(ctx, begun.State, "", state); err != nil {
		return "", notes, err
	}
	notes[AnnotationOutcome] = proven
	return with(address+"/auth/confirm", url.Values{"id": {begun.id()}}), notes, nil
}

// Grant takes a password from a program that asks for it itself. It returns the code that the program exchanges, with OutOfBand as
// redirect_uri. Nobody is asked: whoever types a password into a program allows it.
//
// Errors: those of Finish.
func (p *Passwords) Grant(ctx context.Context, form url.Values, network string) (code string, notes map[string]string, err error) {
	notes = map[string]string{AnnotationConnector: PasswordID}
	defer func() { Annotate(notes, err) }()
	if !PasswordEnabled(p.flow.env.Config()) {
		return "", notes, unknownConnector()
	}
	given, err := parameters(form, "client_id", "code_challenge", "code_challenge_method")
	if err != nil {
		return "", notes, err
	}
	switch {
	case given[0] != ClientID:
		return "", notes, badRequest("client_id must be " + ClientID)
	case given[2] != "S256" || !isToken(given[1], 43, 43):
		return "", notes, badRequest("code_challenge must be that of the method S256")
	}
	state, err := p.prove(ctx, form, network, notes)
	if err != nil {
		return "", notes, err
	}
	name, err := random(p.flow.env.Random)
	if err != nil {
		return "", notes, err
	}
	if code, err = random(p.flow.env.Random); err != nil {
		return "", notes, err
	}
	state.Stage, state.Client, state.Ends = confirmed, client{Redirect: OutOfBand, Challenge: given[1]}, p.flow.env.Now().Add(codeFor).Unix()
	if err := p.store(ctx, name, codeDigest(code), state); err != nil {
		return "", notes, err
	}
	notes[AnnotationOutcome] = confirmed
	return code, notes, nil
}

// ErrPassword says that a user name and a password do not belong together, or that the user may not sign in.
var ErrPassword = errors.New("the user name or the password is wrong")

// prove returns the sign-in of the user whose name and password a form has.
func (p *Passwords) prove(ctx context.Context, form url.Values, network string, notes map[string]string) (signIn, error) {
	given, err := parameters(form, "username", "password")
	if err != nil {
		return signIn{}, err
	}
	if given[0] == "" || given[1] == "" {
		return signIn{}, badRequest("username and password are required")
	}
	found, detail, err := p.checker.Check(ctx, given[0], secret.String(given[1]), network)
	switch {
	case err != nil:
		return signIn{}, throttled(err)
	case found == nil:
		return signIn{}, refuse("wrong_password", detail, apierror.Unauthorized(ErrPassword.Error())).because(ErrPassword)
	}
	notes[AnnotationUser] = found.Name
	return signIn{
		User: found.Name, UID: string(found.UID), Generation: found.Spec.TokenGeneration,
		Identity: model.AccessKeyIdentity{
			UserID: found.Name, Username: found.Spec.Username, Email: found.Spec.Email, Connector: PasswordID,
		},
	}, nil
}

// store stores a sign-in whose person is known.
func (p *Passwords) store(ctx context.Context, name, digest string, state signIn) error {
	object, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := p.flow.env.Now()
	_, err = p.flow.records.Create(ctx, store.Record{
		Name: nameOf(name), Owner: identity.Owner{Kind: identity.User, Name: state.User}.String(), Digest: digest,
		Created: now, Expires: now.Add(attemptFor + codeFor), Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return notStartedHere("replay")
	case err != nil:
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	return nil
}

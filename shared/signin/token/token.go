// Package token is the token endpoint for logins: it redeems authorization codes and refresh tokens for access keys. The key is created
// when the program fetches it. Source: RFC 6749, 4.1.3, 5 and 6; ADR-0031, ADR-0045.
package token

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provisioning"
	"management.platform.sh/shared/signin/sessions"
	"management.platform.sh/shared/state/store"
)

// Endpoint issues access keys and refresh tokens for logins. It is safe for concurrent use.
type Endpoint struct {
	env       *platform.Environment
	logins    *logins.Store
	sessions  *sessions.Store
	directory *directory.Directory
	// loginKeys creates the keys of logins, and keys are all access keys.
	loginKeys, keys *accesskey.Registry
	// refreshAuthenticator authenticates refresh keys.
	refreshAuthenticator *auth.Authenticator
}

// Open returns the token endpoint of an environment. Functions that issue or end keys hand in a registry of package kinds.
func Open(env *platform.Environment, keys *accesskey.Registry) *Endpoint {
	return &Endpoint{
		env: env, logins: logins.Open(env), sessions: sessions.Open(env, keys), directory: directory.Open(env),
		loginKeys: accesskey.ForLogins(keys), keys: keys, refreshAuthenticator: accesskey.OpenRefreshAuthenticator(env),
	}
}

// Response is the successful answer to a token request. Source: RFC 6749, 5.1.
type Response struct {
	// Key is the access key, and Name is the name of its object.
	Key     secret.String
	KeyName string
	User    string
	// Expires is when the key stops working. Zero: never.
	Expires time.Time
	// RefreshToken is the refresh token for the key after this one, and RefreshKey the name of the object of its refresh key. Empty: the program
	// asked for no refresh token.
	RefreshToken   secret.String
	RefreshKeyName string
	// Scope is what the program got of the scopes that it asked for. Nil: it asked for none.
	Scope *string
}

// newResponse returns what a program gets of a key that was made just now.
func newResponse(key *model.OwnedAccessKey) Response {
	response := Response{Key: secret.String(key.Spec.Key), KeyName: key.Name, User: key.Spec.User}
	if end := key.Status.ExpirationTimestamp; end != nil {
		response.Expires = end.Time
	}
	return response
}

// ErrInvalidGrant says that a code, or what proves that the program asked for it, is not valid, or not any more.
var ErrInvalidGrant = errors.New("the code is not valid any more, or not for this program")

// Request has the optional parameters of a token request.
type Request struct {
	// Scope is what the program gets of the scopes that it asks for. Nil: it asks for none, and gets those for which it asked with the code.
	Scope *string
	// Nonce is noted in the refresh key.
	Nonce string
}

// ParseRequest reads the parameters scope and nonce. False: the nonce is not valid.
func ParseRequest(scope, nonce string) (Request, bool) {
	return Request{Scope: oauth.GrantedScope(scope), Nonce: nonce}, nonce == "" || oauth.IsUnreserved(nonce, 1, 128)
}

// wantsRefreshToken reports whether the program gets a refresh token.
func (w Request) wantsRefreshToken() bool { return w.Scope != nil && *w.Scope == oauth.OfflineAccess }

// RedeemCode exchanges an authorization code for an access key. A code works once, whether or not the rest of the request is right. If the
// program uses the code again, the key ends.
//
// Errors: ErrInvalidGrant, also if the user is gone, disabled or has signed out since; the errors of the store and of the keys.
// Source: RFC 6749, 4.1.2.
func (e *Endpoint) RedeemCode(ctx context.Context, code, verifier, redirect string, request Request) (Response, error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetOutcome("refused")
	record, err := e.logins.Records.GetByDigest(ctx, logins.CodeDigest(code))
	var login logins.Login
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Response{}, ErrInvalidGrant
	case err != nil:
		return Response{}, fmt.Errorf("reading a sign-in: %w", err)
	}
	if err := json.Unmarshal(record.Object, &login); err != nil {
		return Response{}, fmt.Errorf("reading a sign-in: %w", err)
	}
	recorder.SetUser(login.User)
	recorder.SetConnector(login.Identity.Connector)
	// The code alone proves nothing: it has been in a URL.
	proved := oauth.IsUnreserved(verifier, 43, 128) && oauth.EqualSecrets(oauth.S256(verifier), login.AuthRequest.CodeChallenge) && oauth.EqualSecrets(redirect, login.AuthRequest.RedirectURI)
	unredeemed := login.Stage == logins.StageConsented
	if unredeemed {
		login.Stage = logins.StageRedeemed
		if err := e.logins.Update(ctx, &record, login); logins.IsConflict(err) {
			unredeemed = false
		} else if err != nil {
			return Response{}, err
		}
	}
	switch {
	case proved && !unredeemed:
		return Response{}, e.endReusedCode(ctx, record.Name)
	case !proved || e.env.Now().Unix() >= login.CodeExpires:
		return Response{}, ErrInvalidGrant
	}
	response, err := e.IssueKey(ctx, &record, &login, request)
	return response, err
}

// endReusedCode ends the key of a login whose code a program uses again, and returns ErrInvalidGrant, or why the key has not ended. Either
// an answer was lost that a third party may have, or two programs have the code and its verifier. A key that is still being created does
// not reach its program. Source: RFC 6749, 4.1.2.
func (e *Endpoint) endReusedCode(ctx context.Context, name string) error {
	recorder := annotations.RecorderOf(ctx)
	record, err := e.logins.Records.Get(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrInvalidGrant
	case err != nil:
		return fmt.Errorf("reading a sign-in: %w", err)
	}
	login, err := e.logins.MarkLoggedOut(ctx, record)
	if err != nil {
		return err
	}
	recorder.SetOutcome("code_reused")
	if login.Key == nil {
		e.env.Log.WarnContext(ctx, "a code was used twice", "user", login.User)
		return ErrInvalidGrant
	}
	key, _, err := e.sessions.ReadKey(ctx, sessions.Record{Key: login.Key.Name}, login.Key.UID)
	if err != nil || key == nil {
		return cmp.Or(err, ErrInvalidGrant)
	}
	recorder.SetKey(key.Name)
	e.env.Log.WarnContext(ctx, "a code was used twice, and its key has ended", "user", login.User, "key", key.Name)
	if err := resource.Revoke(ctx, e.keys, Sweeper, key); err != nil {
		return err
	}
	return ErrInvalidGrant
}

// IssueKey creates the key of a redeemed login. Errors: ErrInvalidGrant if the user is gone or disabled, has signed out since, here or at
// the provider, or if the code was used again; the errors of the store and of the keys.
func (e *Endpoint) IssueKey(ctx context.Context, record *store.Record, login *logins.Login, request Request) (Response, error) {
	recorder := annotations.RecorderOf(ctx)
	if request.Scope == nil {
		request.Scope = login.AuthRequest.Scope
	}
	owner := identity.Owner{Kind: identity.User, Name: login.User}
	refs, err := e.directory.Read(ctx, owner)
	if err != nil {
		return Response{}, fmt.Errorf("reading the user of a sign-in: %w", err)
	}
	ownerObject := &model.AccessKeyOwner{UID: login.UID, Generation: login.TokenGeneration}
	ownerState, err := e.directory.StateOf(ctx, owner, refs)
	if err == nil {
		err = ownerState.CheckCredential(ownerObject)
	}
	switch {
	case provisioning.IsOwnerRefused(err) || err == nil && !ownerState.Managed, login.SessionEnds != 0 && e.env.Now().Unix() >= login.SessionEnds:
		return Response{}, ErrInvalidGrant
	case err != nil:
		return Response{}, err
	}
	// The key is made with the rights of the user, for the user as they were when they signed in.
	caller := identity.New(owner, nil)
	caller.OwnerObject = ownerObject
	key := e.newLoginKey(login)
	if request.wantsRefreshToken() {
		request.makeRefreshKey(login, key)
	}
	written, err := resource.Create(ctx, e.loginKeys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Manager: oauth.ClientID, Object: key})
	if err != nil {
		return Response{}, err
	}
	if err := e.sessions.Create(ctx, login, written.Object); err != nil {
		// The provider could not end the key.
		return Response{}, e.withdrawKey(ctx, written.Object, err)
	}
	// A logout marks the record before it looks for the key or its session. Either it finds the key, or this write fails.
	reference := keyReference(written.Object)
	login.Key = &reference
	if err := e.logins.Update(ctx, record, *login); logins.IsConflict(err) {
		recorder.SetOutcome(logins.StageLoggedOut)
		return Response{}, e.withdrawKey(ctx, written.Object, ErrInvalidGrant)
	} else if err != nil {
		return Response{}, e.withdrawKey(ctx, written.Object, err)
	}
	response := newResponse(written.Object)
	response.Scope = request.Scope
	if request.wantsRefreshToken() {
		if response, err = e.issueFirstRefreshToken(ctx, written.Object); err != nil {
			if errors.Is(err, ErrInvalidRefreshToken) {
				err = ErrInvalidGrant
			}
			return Response{}, e.withdrawKey(ctx, written.Object, err)
		}
	}
	recorder.SetOutcome("key_made")
	recorder.SetKey(response.KeyName)
	e.deleteOldestKeys(ctx, owner, written.Object.Name)
	return response, nil
}

// newLoginKey returns the key of a login before it is created. Source: Spec 2.5 (type, ttl, identity).
func (e *Endpoint) newLoginKey(login *logins.Login) *model.OwnedAccessKey {
	_, ttl := accesskey.LimitSeconds(e.env.Config())
	if remaining := login.SessionEnds - e.env.Now().Unix(); login.SessionEnds != 0 && (ttl <= 0 || remaining < ttl) {
		ttl = remaining
	}
	keyIdentity := login.Identity
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: accesskey.LoginPrefix},
		Spec: model.OwnedAccessKeySpec{
			User: login.User, Type: model.AccessKeyTypeLogin, TTLSeconds: max(0, ttl), Identity: &keyIdentity,
			Description: keyDescription(login),
		},
	}
	if login.Device != nil {
		key.GenerateName = accesskey.DevicePrefix
	}
	if login.SealedSession != "" {
		key.Spec.IdentityRefresh = &metav1.Time{Time: e.env.Now()}
	}
	return key
}

// keyDescription says in the key of a sign-in what it is for.
func keyDescription(login *logins.Login) string {
	switch {
	case login.Device != nil && login.Device.Host != "":
		return "Sign-in of a program on " + login.Device.Host + ", " + login.Device.Address
	case login.Device != nil:
		return "Sign-in of a program at " + login.Device.Address
	case login.AuthRequest.RedirectURI == oauth.OutOfBand:
		return "Sign-in with a password"
	case !oauth.IsLoopbackRedirect(login.AuthRequest.RedirectURI):
		return "Sign-in of the console"
	default:
		return "Sign-in of a program at " + oauth.Origin(login.AuthRequest.RedirectURI)
	}
}

// withdrawKey deletes a key that was not delivered, and returns the given error. If the deletion fails, the key stays with a text that was
// never delivered.
func (e *Endpoint) withdrawKey(ctx context.Context, key *model.OwnedAccessKey, why error) error {
	if err := resource.Revoke(context.WithoutCancel(ctx), e.keys, Sweeper, key); err != nil {
		e.env.Log.ErrorContext(ctx, "deleting the key of a sign-in that has failed", "key", key.Name, "error", err)
	}
	return why
}

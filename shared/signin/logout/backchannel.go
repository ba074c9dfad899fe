// Package logout ends sessions at both sides: a browser ends the session at the provider, and a logout token of the provider ends the keys
// of a session here. Source: OpenID Connect RP-Initiated Logout 1.0 and Back-Channel Logout 1.0; ADR-0031, ADR-0042.
package logout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/sessions"
	"management.platform.sh/shared/state/store"
)

const (
	// logoutTokenNoteLifetime is how long the use of a logout token is noted: longer than any clock lets it be accepted.
	logoutTokenNoteLifetime = provider.MaxLogoutTokenAge + 2*time.Minute
	// logoutTokenOwner owns these notes in the state.
	logoutTokenOwner = "logout"
)

// logoutCaller is the caller that ends the keys of logins that their provider has ended.
var logoutCaller = identity.New(identity.Owner{Kind: identity.Subject, Name: "endlogin"}, []string{identity.Admins})

// BackChannel ends the logins that their providers have ended. It is safe for concurrent use.
type BackChannel struct {
	env      *platform.Environment
	logins   *logins.Store
	sessions *sessions.Store
	keys     *accesskey.Registry
}

// Open returns the logout endpoint of an environment. It ends keys in a registry of package kinds, because other objects may end with a key.
func Open(env *platform.Environment, keys *accesskey.Registry) *BackChannel {
	return &BackChannel{env: env, logins: logins.Open(env), sessions: sessions.Open(env, keys), keys: keys}
}

// HandleLogoutToken takes the logout token with which a provider ends a session, or all sessions of a person. The keys of these logins, and
// everything bound to them, are refused at the next request; a login that is not complete leads to no key. Keys that the person has made
// otherwise stay. A token works once, and a token without a matching login does nothing.
//
// Errors: Refusal; the errors of the store and of the keys: the same token may be sent again then. Source: OpenID Connect
// Back-Channel Logout 1.0, 2.5 to 2.8; ADR-0042.
func (e *BackChannel) HandleLogoutToken(ctx context.Context, verifier provider.LogoutVerifier, id string, form url.Values) (err error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	conn, ok := method.FindConnector(e.env.Config(), id)
	if !ok || conn.Kind != connector.OIDC {
		return refusal.UnknownConnector()
	}
	raw, err := oauth.Parameter(form, "logout_token")
	switch {
	case err != nil:
		return err
	case raw == "":
		return refusal.BadRequest("logout_token is required")
	}
	token, err := verifier.VerifyLogoutToken(ctx, conn, raw)
	if err != nil {
		return err
	}
	names := provider.LogoutNames(conn, provider.Session{ID: token.SessionID, Subject: token.Subject})
	undo, err := e.noteLogoutToken(ctx, conn, token)
	if err != nil {
		return err
	}
	keys, users, err := e.endLogins(ctx, names)
	if err != nil {
		undo(context.WithoutCancel(ctx))
		return err
	}
	recorder.SetOutcome(logins.StageLoggedOut)
	recorder.SetEndedKeys(keys, users)
	return nil
}

// noteLogoutToken records the use of a logout token. Of several requests with one token, one succeeds. Undo removes the record, as far as
// the state can be reached.
func (e *BackChannel) noteLogoutToken(ctx context.Context, conn provider.Connector, token provider.LogoutToken) (undo func(context.Context), err error) {
	name, now := "logout-"+digest.Sum("jti", conn.ID, token.ID), e.env.Now()
	revision, err := e.logins.Records.Create(ctx, store.Record{
		Name: name, Owner: logoutTokenOwner, Created: now, Expires: now.Add(logoutTokenNoteLifetime), Object: []byte("{}"),
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return nil, refusal.LogoutTokenRefused("it was used before")
	case err != nil:
		return nil, fmt.Errorf("noting the use of a logout token: %w", err)
	}
	return func(ctx context.Context) {
		if _, err := e.logins.Records.Delete(ctx, name, revision); err != nil {
			e.env.Log.WarnContext(ctx, "a logout token that ended nothing counts as used", "connector", conn.ID, "error", err)
		}
	}, nil
}

// endLogins ends the logins that have all of the names. It returns the names of the keys and of their users, sorted.
func (e *BackChannel) endLogins(ctx context.Context, names []string) (keys, users []string, err error) {
	// Logins that are not complete come first, so that their keys are found afterwards.
	loginRecords, err := recordsWithNames(ctx, e.logins.Records, names)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range loginRecords {
		if _, err := e.logins.MarkLoggedOut(ctx, record); err != nil {
			return nil, nil, err
		}
	}
	sessionRecords, err := recordsWithNames(ctx, e.sessions.Records, names)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range sessionRecords {
		var session sessions.Record
		if err := json.Unmarshal(record.Object, &session); err != nil {
			return nil, nil, fmt.Errorf("reading a session: %w", err)
		}
		key, _, err := e.sessions.ReadKey(ctx, session, record.Name)
		if err != nil {
			return nil, nil, err
		}
		if key == nil {
			continue
		}
		if err := resource.Revoke(ctx, e.keys, logoutCaller, key); err != nil {
			return nil, nil, err
		}
		keys, users = append(keys, key.Name), append(users, session.User)
		if err := e.sessions.Records.Touch(ctx, record, time.Time{}, e.env.Now()); err != nil {
			return nil, nil, fmt.Errorf("storing that a session has ended: %w", err)
		}
	}
	slices.Sort(keys)
	slices.Sort(users)
	return keys, slices.Compact(users), nil
}

// recordsWithNames returns the records that have all of the names, of which there is at least one.
func recordsWithNames(ctx context.Context, records store.Store, names []string) ([]store.Record, error) {
	var matching []store.Record
	for record, err := range store.Each(ctx, records, store.Query{Reference: names[0]}) {
		if err != nil {
			return nil, fmt.Errorf("looking for sign-ins: %w", err)
		}
		if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(record.References, name) }) {
			matching = append(matching, record)
		}
	}
	return matching, nil
}

package signin

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
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

const (
	// MaxLogoutTokenAge is the age at which a logout token is not accepted any more.
	MaxLogoutTokenAge = time.Hour
	// logoutTokenNoteLifetime is how long the use of a logout token is noted: longer than any clock lets it be accepted.
	logoutTokenNoteLifetime = MaxLogoutTokenAge + 2*time.Minute
	// logoutTokenOwner owns these notes in the state.
	logoutTokenOwner = "logout"
)

// logoutCaller ends the keys of sign-ins that their provider has ended.
var logoutCaller = identity.New(identity.Owner{Kind: identity.Subject, Name: "endlogin"}, []string{identity.Admins})

// LogoutToken is what a logout token says. One of Session and Subject may be empty.
type LogoutToken struct {
	// ID identifies the token at its provider.
	ID string
	// SessionID is what the provider calls the session that has ended, and Subject what it calls the person.
	SessionID, Subject string
}

// LogoutVerifier checks the tokens with which a provider says that a session has ended. Implementations are safe for concurrent use.
type LogoutVerifier interface {
	// VerifyLogoutToken returns what a logout token of a connector says. Errors: Refusal.
	VerifyLogoutToken(ctx context.Context, connector Connector, token string) (LogoutToken, error)
}

// logoutNames are the names by which a connector may end a session later. Nil: it ends none.
func logoutNames(conn Connector, session Session) []string {
	if conn.Kind != connector.OIDC {
		return nil
	}
	var names []string
	if session.ID != "" {
		names = append(names, Digest("sid", conn.ID, session.ID))
	}
	if session.Subject != "" {
		names = append(names, Digest("sub", conn.ID, session.Subject))
	}
	return names
}

// HandleLogoutToken takes the form with which a provider says that it has ended a session, or all sessions of a person. The keys of these
// sign-ins, and what is bound to them, are refused at the next request; a sign-in that is under way leads to no key. Keys that the person
// has made otherwise stay. A token counts once, and one for which there is no sign-in does nothing.
//
// Errors: Refusal; those of the store and of the keys: the same token may be sent again then. Source: OpenID Connect Back-Channel Logout
// 1.0, 2.5 to 2.8; ADR-0042.
func (f *Flow) HandleLogoutToken(ctx context.Context, verifier LogoutVerifier, id string, form url.Values) (err error) {
	recorder := RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	conn, ok := findConnector(f.env.Config(), id)
	if !ok || conn.Kind != connector.OIDC {
		return unknownConnector()
	}
	raw, err := Parameter(form, "logout_token")
	switch {
	case err != nil:
		return err
	case raw == "":
		return refuseBadRequest("logout_token is required")
	}
	token, err := verifier.VerifyLogoutToken(ctx, conn, raw)
	if err != nil {
		return err
	}
	names := logoutNames(conn, Session{ID: token.SessionID, Subject: token.Subject})
	undo, err := f.noteLogoutToken(ctx, conn, token)
	if err != nil {
		return err
	}
	keys, users, err := f.endLogins(ctx, names)
	if err != nil {
		undo(context.WithoutCancel(ctx))
		return err
	}
	recorder.SetOutcome(stageLoggedOut)
	recorder.SetEndedKeys(keys, users)
	return nil
}

// noteLogoutToken notes that a logout token is used. Of several requests with one token, one wins. Undo takes the note back, as far as the state
// can be reached.
func (f *Flow) noteLogoutToken(ctx context.Context, conn Connector, token LogoutToken) (undo func(context.Context), err error) {
	name, now := "logout-"+Digest("jti", conn.ID, token.ID), f.env.Now()
	revision, err := f.records.Create(ctx, store.Record{
		Name: name, Owner: logoutTokenOwner, Created: now, Expires: now.Add(logoutTokenNoteLifetime), Object: []byte("{}"),
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return nil, RefusedLogoutToken("it was used before")
	case err != nil:
		return nil, fmt.Errorf("noting the use of a logout token: %w", err)
	}
	return func(ctx context.Context) {
		if _, err := f.records.Delete(ctx, name, revision); err != nil {
			f.env.Log.WarnContext(ctx, "a logout token that ended nothing counts as used", "connector", conn.ID, "error", err)
		}
	}, nil
}

// endLogins ends the sign-ins that have all of some names. It returns the names of the keys and of their users, sorted.
func (f *Flow) endLogins(ctx context.Context, names []string) (keys, users []string, err error) {
	// Sign-ins that are under way come first: their keys are looked for afterwards.
	loginRecords, err := recordsWithNames(ctx, f.records, names)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range loginRecords {
		if _, err := f.markLoggedOut(ctx, record); err != nil {
			return nil, nil, err
		}
	}
	sessionRecords, err := recordsWithNames(ctx, f.sessions, names)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range sessionRecords {
		var session storedSession
		if err := json.Unmarshal(record.Object, &session); err != nil {
			return nil, nil, fmt.Errorf("reading a session: %w", err)
		}
		key, _, err := f.readKey(ctx, session, record.Name)
		if err != nil {
			return nil, nil, err
		}
		if key == nil {
			continue
		}
		if err := resource.Revoke(ctx, f.keys, logoutCaller, key); err != nil {
			return nil, nil, err
		}
		keys, users = append(keys, key.Name), append(users, session.User)
		if err := f.sessions.Touch(ctx, record, time.Time{}, f.env.Now()); err != nil {
			return nil, nil, fmt.Errorf("storing that a session has ended: %w", err)
		}
	}
	slices.Sort(keys)
	slices.Sort(users)
	return keys, slices.Compact(users), nil
}

// recordsWithNames returns the records that have all of some names, of which there is at least one.
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

// markLoggedOut ends a sign-in that is stored, at whatever stage it is, and returns it.
func (f *Flow) markLoggedOut(ctx context.Context, record store.Record) (storedLogin, error) {
	for range maxTries {
		var login storedLogin
		if err := json.Unmarshal(record.Object, &login); err != nil {
			return login, fmt.Errorf("reading a sign-in: %w", err)
		}
		login.Stage = stageLoggedOut
		err := f.writeLogin(ctx, &record, login)
		if !errors.Is(err, store.ErrConflict) {
			if errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			return login, err
		}
		if record, err = f.records.Get(ctx, record.Name); errors.Is(err, store.ErrNotFound) {
			return login, nil
		} else if err != nil {
			return login, fmt.Errorf("reading a sign-in: %w", err)
		}
	}
	return storedLogin{}, busy()
}

// withdrawKey deletes a key that nobody has got, and returns why. A key that is not deleted, because the state fails, has a text that nobody
// knows.
func (f *Flow) withdrawKey(ctx context.Context, key *model.OwnedAccessKey, why error) error {
	if err := resource.Revoke(context.WithoutCancel(ctx), f.keys, Sweeper, key); err != nil {
		f.env.Log.ErrorContext(ctx, "deleting the key of a sign-in that has failed", "key", key.Name, "error", err)
	}
	return why
}

// ScheduleRelease lets the next run of Flow.Revalidate give back what belongs to the key of a sign-in that has ended. Without it, a later run does.
// Errors: those of the store.
func ScheduleRelease(ctx context.Context, sessions store.Store, key *model.OwnedAccessKey, now time.Time) error {
	if !accesskey.IsSignInType(key.Spec.Type) {
		return nil
	}
	record, err := sessions.Get(ctx, string(key.UID))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("reading a session: %w", err)
	}
	return sessions.Touch(ctx, record, time.Time{}, now)
}

// releaseSession removes the session of a key that has ended, unless others have changed it. Then it gives the refresh token back to the
// provider, unless the user has another sign-in there: a provider may end all of them with one token. Whatever the provider answers, the
// token is gone here. Source: RFC 7009; ADR-0042.
func (f *Flow) releaseSession(ctx context.Context, idp Revoker, record store.Record, session storedSession, counts *RevalidationCounts) error {
	_, err := f.sessions.Delete(ctx, record.Name, record.Revision)
	switch {
	case isConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("removing a session: %w", err)
	}
	conn, ok := findConnector(f.env.Config(), session.Connector)
	if session.SealedTokens == "" || !ok || conn.Kind != connector.OIDC {
		return nil
	}
	onlyLogin, err := f.isOnlyLogin(ctx, session)
	if err != nil || !onlyLogin {
		return err
	}
	tokens, err := f.openSession(ctx, session.SealedTokens, record.Name)
	if err == nil {
		var revoked bool
		if revoked, err = idp.Revoke(ctx, conn, tokens); revoked {
			counts.Revoked++
		}
	}
	if err != nil {
		counts.Unrevoked++
		f.env.Log.WarnContext(ctx, "a provider may still accept the refresh token of a sign-in that has ended", "user", session.User, "connector", session.Connector, "error", err)
	}
	return nil
}

// isOnlyLogin reports whether a user has no other sign-in at the connector of a session that was removed: none with a session, and none that is
// under way.
func (f *Flow) isOnlyLogin(ctx context.Context, session storedSession) (bool, error) {
	owners := store.Query{Owners: []string{ownerOf(session.User)}}
	for record, err := range store.Each(ctx, f.sessions, owners) {
		var other storedSession
		if err == nil {
			err = json.Unmarshal(record.Object, &other)
		}
		if err != nil {
			return false, fmt.Errorf("looking for other sessions: %w", err)
		}
		if other.Connector == session.Connector && other.SealedTokens != "" {
			return false, nil
		}
	}
	for record, err := range store.Each(ctx, f.records, owners) {
		var other storedLogin
		if err == nil {
			err = json.Unmarshal(record.Object, &other)
		}
		if err != nil {
			return false, fmt.Errorf("looking for other sign-ins: %w", err)
		}
		if other.SealedSession != "" && other.Identity.Connector == session.Connector && slices.Contains([]string{stageAuthenticated, stageConsented, stageApproved}, other.Stage) {
			return false, nil
		}
	}
	return true, nil
}

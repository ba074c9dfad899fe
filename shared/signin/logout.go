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
	// LogoutTokenAge is the age at which a logout token is not accepted any more.
	LogoutTokenAge = time.Hour
	// usedFor is how long the use of a logout token is noted: longer than any clock lets it be accepted.
	usedFor = LogoutTokenAge + 2*time.Minute
	// usedOwner owns these notes in the state.
	usedOwner = "logout"
)

// ender ends the keys of sign-ins that their provider has ended.
var ender = identity.New(identity.Owner{Kind: identity.Subject, Name: "endlogin"}, []string{identity.Admins})

// Ended is what a logout token says. One of Session and Subject may be empty.
type Ended struct {
	// TokenID identifies the token at its provider.
	TokenID string
	// Session is what the provider calls the session that has ended, and Subject what it calls the person.
	Session, Subject string
}

// Notifier checks the tokens with which a provider says that a session has ended. Implementations are safe for concurrent use.
type Notifier interface {
	// Ended returns what a logout token of a connector says. Errors: Refusal.
	Ended(ctx context.Context, connector Connector, token string) (Ended, error)
}

// logoutNames are the names by which a connector may end a session later. Nil: it ends none.
func logoutNames(chosen Connector, session Session) []string {
	if chosen.Kind != connector.OIDC {
		return nil
	}
	var names []string
	if session.ID != "" {
		names = append(names, Digest("sid", chosen.ID, session.ID))
	}
	if session.Subject != "" {
		names = append(names, Digest("sub", chosen.ID, session.Subject))
	}
	return names
}

// EndedByProvider takes the form with which a provider says that it has ended a session, or all sessions of a person. The keys of these
// sign-ins, and what is bound to them, are refused at the next request; a sign-in that is under way leads to no key. Keys that the person
// has made otherwise stay. A token counts once, and one for which there is no sign-in does nothing. Notes are for the audit, also after an
// error.
//
// Errors: Refusal; those of the store and of the keys: the same token may be sent again then. Source: OpenID Connect Back-Channel Logout
// 1.0, 2.5 to 2.8; ADR-0042.
func (f *Flow) EndedByProvider(ctx context.Context, provider Notifier, id string, form url.Values) (notes map[string]string, err error) {
	notes = map[string]string{AnnotationConnector: id}
	defer func() { Annotate(notes, err) }()
	chosen, known := lookup(f.env.Config(), id)
	if !known || chosen.Kind != connector.OIDC {
		return notes, unknownConnector()
	}
	raw, err := Parameter(form, "logout_token")
	switch {
	case err != nil:
		return notes, err
	case raw == "":
		return notes, badRequest("logout_token is required")
	}
	said, err := provider.Ended(ctx, chosen, raw)
	if err != nil {
		return notes, err
	}
	names := logoutNames(chosen, Session{ID: said.Session, Subject: said.Subject})
	undo, err := f.useToken(ctx, chosen, said)
	if err != nil {
		return notes, err
	}
	keys, users, err := f.endNamed(ctx, names)
	if err != nil {
		undo(context.WithoutCancel(ctx))
		return notes, err
	}
	notes[AnnotationOutcome] = ended
	note(notes, AnnotationEnded, keys)
	note(notes, AnnotationUser, users)
	return notes, nil
}

// useToken notes that a logout token is used. Of several requests with one token, one wins. Undo takes the note back, as far as the state
// can be reached.
func (f *Flow) useToken(ctx context.Context, chosen Connector, said Ended) (undo func(context.Context), err error) {
	name, now := "logout-"+Digest("jti", chosen.ID, said.TokenID), f.env.Now()
	revision, err := f.records.Create(ctx, store.Record{
		Name: name, Owner: usedOwner, Created: now, Expires: now.Add(usedFor), Object: []byte("{}"),
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return nil, NotLoggedOut("it was used before")
	case err != nil:
		return nil, fmt.Errorf("noting the use of a logout token: %w", err)
	}
	return func(ctx context.Context) {
		if _, err := f.records.Delete(ctx, name, revision); err != nil {
			f.env.Log.WarnContext(ctx, "a logout token that ended nothing counts as used", "connector", chosen.ID, "error", err)
		}
	}, nil
}

// endNamed ends the sign-ins that have all of some names. It returns the names of the keys and of their users, sorted.
func (f *Flow) endNamed(ctx context.Context, names []string) (keys, users []string, err error) {
	// Sign-ins that are under way come first: their keys are looked for afterwards.
	pending, err := named(ctx, f.records, names)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range pending {
		if _, err := f.endSignIn(ctx, record); err != nil {
			return nil, nil, err
		}
	}
	sessions, err := named(ctx, f.sessions, names)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range sessions {
		var state stored
		if err := json.Unmarshal(record.Object, &state); err != nil {
			return nil, nil, fmt.Errorf("reading a session: %w", err)
		}
		key, _, err := f.storedKey(ctx, state, record.Name)
		if err != nil {
			return nil, nil, err
		}
		if key == nil {
			continue
		}
		if err := resource.Revoke(ctx, f.all, ender, key); err != nil {
			return nil, nil, err
		}
		keys, users = append(keys, key.Name), append(users, state.User)
		if err := f.sessions.Touch(ctx, record, time.Time{}, f.env.Now()); err != nil {
			return nil, nil, fmt.Errorf("storing that a session has ended: %w", err)
		}
	}
	slices.Sort(keys)
	slices.Sort(users)
	return keys, slices.Compact(users), nil
}

// named returns the records that have all of some names, of which there is at least one.
func named(ctx context.Context, from store.Store, names []string) ([]store.Record, error) {
	var found []store.Record
	for record, err := range store.Each(ctx, from, store.Query{Reference: names[0]}) {
		if err != nil {
			return nil, fmt.Errorf("looking for sign-ins: %w", err)
		}
		if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(record.References, name) }) {
			found = append(found, record)
		}
	}
	return found, nil
}

// endSignIn ends a sign-in that is stored, at whatever stage it is, and returns it.
func (f *Flow) endSignIn(ctx context.Context, record store.Record) (signIn, error) {
	for range maxTries {
		var state signIn
		if err := json.Unmarshal(record.Object, &state); err != nil {
			return state, fmt.Errorf("reading a sign-in: %w", err)
		}
		state.Stage = ended
		err := f.write(ctx, &record, state)
		if !errors.Is(err, store.ErrConflict) {
			if errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			return state, err
		}
		if record, err = f.records.Get(ctx, record.Name); errors.Is(err, store.ErrNotFound) {
			return state, nil
		} else if err != nil {
			return state, fmt.Errorf("reading a sign-in: %w", err)
		}
	}
	return signIn{}, busy()
}

// withdraw deletes a key that nobody has got, and returns why. A key that is not deleted, because the state fails, has a text that nobody
// knows.
func (f *Flow) withdraw(ctx context.Context, key *model.OwnedAccessKey, why error) error {
	if err := resource.Revoke(context.WithoutCancel(ctx), f.all, Sweeper, key); err != nil {
		f.env.Log.ErrorContext(ctx, "deleting the key of a sign-in that has failed", "key", key.Name, "error", err)
	}
	return why
}

// Hasten lets the next run of Flow.Renew give back what belongs to the key of a sign-in that has ended. Without it, a later run does.
// Errors: those of the store.
func Hasten(ctx context.Context, sessions store.Store, key *model.OwnedAccessKey, now time.Time) error {
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

// giveBack removes the session of a key that has ended, unless others have changed it. Then it gives the refresh token back to the
// provider, unless the user has another sign-in there: a provider may end all of them with one token. Whatever the provider answers, the
// token is gone here. Source: RFC 7009; ADR-0042.
func (f *Flow) giveBack(ctx context.Context, provider Revoker, record store.Record, state stored, done *Renewed) error {
	_, err := f.sessions.Delete(ctx, record.Name, record.Revision)
	switch {
	case lost(err):
		return nil
	case err != nil:
		return fmt.Errorf("removing a session: %w", err)
	}
	chosen, known := lookup(f.env.Config(), state.Connector)
	if state.Sealed == "" || !known || chosen.Kind != connector.OIDC {
		return nil
	}
	alone, err := f.alone(ctx, state)
	if err != nil || !alone {
		return err
	}
	session, err := f.openSession(ctx, state.Sealed, record.Name)
	if err == nil {
		var revoked bool
		if revoked, err = provider.Revoke(ctx, chosen, session); revoked {
			done.Revoked++
		}
	}
	if err != nil {
		done.Unrevoked++
		f.env.Log.WarnContext(ctx, "a provider may still accept the refresh token of a sign-in that has ended", "user", state.User, "connector", state.Connector, "error", err)
	}
	return nil
}

// alone reports whether a user has no other sign-in at the connector of a session that was removed: none with a session, and none that is
// under way.
func (f *Flow) alone(ctx context.Context, state stored) (bool, error) {
	owners := store.Query{Owners: []string{ownerOf(state.User)}}
	for record, err := range store.Each(ctx, f.sessions, owners) {
		var other stored
		if err == nil {
			err = json.Unmarshal(record.Object, &other)
		}
		if err != nil {
			return false, fmt.Errorf("looking for other sessions: %w", err)
		}
		if other.Connector == state.Connector && other.Sealed != "" {
			return false, nil
		}
	}
	for record, err := range store.Each(ctx, f.records, owners) {
		var other signIn
		if err == nil {
			err = json.Unmarshal(record.Object, &other)
		}
		if err != nil {
			return false, fmt.Errorf("looking for other sign-ins: %w", err)
		}
		if other.Session != "" && other.Identity.Connector == state.Connector && slices.Contains([]string{proven, confirmed, allowed}, other.Stage) {
			return false, nil
		}
	}
	return true, nil
}

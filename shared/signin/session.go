package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// SessionsResource is the name under which sessions at providers are stored in the state. Clients cannot read it.
const SessionsResource = "signinsessions"

// Sessions returns the state of sessions at providers. Each has the uid of its access key as name. It is due when the provider is asked
// again. Source: ADR-0035.
func Sessions(env *platform.Environment) store.Store { return env.Stores(SessionsResource) }

// SessionStore has the sessions at providers of an environment. It is safe for concurrent use.
type SessionStore struct {
	env *platform.Environment
	// Records is the state of sessions. Each has the uid of its access key as name. It is due when the provider is asked again.
	// Source: ADR-0035.
	Records store.Store
	keys    *accesskey.Registry
}

// OpenSessions returns the sessions of an environment.
func OpenSessions(env *platform.Environment) *SessionStore {
	return &SessionStore{env: env, Records: Sessions(env), keys: accesskey.Open(env)}
}

// sealSession returns the tokens of a session sealed for an object. Empty: the provider gave nothing with which it could be asked again.
func (s *SessionStore) sealSession(ctx context.Context, session Session, uid string) (string, error) {
	if session.AccessToken == "" && session.RefreshToken == "" {
		return "", nil
	}
	ring, err := s.env.Keyring(ctx)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(sessionTokens{session.AccessToken.Reveal(), session.RefreshToken.Reveal()})
	if err != nil {
		return "", fmt.Errorf("encoding a session: %w", err)
	}
	return ring.Seal(text, sessionSealContext(uid))
}

// openSession returns the tokens of a session that were sealed for an object.
func (s *SessionStore) openSession(ctx context.Context, sealed, uid string) (Session, error) {
	ring, err := s.env.Keyring(ctx)
	if err != nil {
		return Session{}, err
	}
	text, err := ring.Open(sealed, sessionSealContext(uid))
	if err != nil {
		return Session{}, err
	}
	var tokens sessionTokens
	if err := json.Unmarshal(text, &tokens); err != nil {
		return Session{}, errors.New("a session cannot be read")
	}
	return Session{AccessToken: secret.String(tokens.Access), RefreshToken: secret.String(tokens.Refresh)}, nil
}

// storeSession stores the session of a sign-in for the key that was made, if the provider can be asked again or can end it.
func (s *SessionStore) storeSession(ctx context.Context, login *storedLogin, key *model.OwnedAccessKey) error {
	if login.SealedSession == "" && len(login.LogoutNames) == 0 {
		return nil
	}
	var sealed string
	if login.SealedSession != "" {
		session, err := s.openSession(ctx, login.SealedSession, login.UID)
		if err != nil {
			return err
		}
		if sealed, err = s.sealSession(ctx, session, string(key.UID)); err != nil {
			return err
		}
	}
	now := s.env.Now()
	object, err := json.Marshal(storedSession{
		Key: key.Name, User: login.User, UserUID: login.UID, Connector: login.Identity.Connector, Subject: login.Identity.UserID, SealedTokens: sealed, AnsweredAt: now.Unix(),
	})
	if err != nil {
		return fmt.Errorf("encoding a session: %w", err)
	}
	_, err = s.Records.Create(ctx, store.Record{
		Name: string(key.UID), Owner: identity.Owner{Kind: identity.User, Name: login.User}.String(), Created: now, Expires: now.Add(revalidateEvery), References: login.LogoutNames,
		Object: object,
	})
	if err != nil {
		return fmt.Errorf("storing the session of a sign-in: %w", err)
	}
	return nil
}

// readLiveKey returns the key of a session, and when it was used. Nil: it is gone, or another one of the name.
func (s *SessionStore) readLiveKey(ctx context.Context, session storedSession, uid string) (*model.OwnedAccessKey, time.Time, error) {
	key, activity, err := s.readKey(ctx, session, uid)
	if err != nil || key == nil || key.DeletionTimestamp != nil {
		return nil, time.Time{}, err
	}
	return key, activity, nil
}

// readKey is keyOf, and returns a key that is being deleted as well.
func (s *SessionStore) readKey(ctx context.Context, session storedSession, uid string) (*model.OwnedAccessKey, time.Time, error) {
	record, err := s.keys.Store.Get(ctx, session.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("reading the key of a session: %w", err)
	}
	key, err := s.keys.Decode(record)
	if err != nil || string(key.UID) != uid {
		return nil, time.Time{}, err
	}
	return key, record.Activity, nil
}

// writeSession writes the record of a session, with its new revision. False: another process was faster, or err has a value.
func (s *SessionStore) writeSession(ctx context.Context, record *store.Record, session storedSession, err *error) bool {
	if record.Object, *err = json.Marshal(session); *err != nil {
		return false
	}
	revision, updateErr := s.Records.Update(ctx, *record)
	if updateErr != nil {
		if !isConflict(updateErr) {
			*err = fmt.Errorf("storing a session: %w", updateErr)
		}
		return false
	}
	record.Revision = revision
	return true
}

// revalidateEvery is how often a provider is asked about a person whose key is in use.
const revalidateEvery = 15 * time.Minute

// storedSession is a session at a provider as it is stored.
type storedSession struct {
	// Key is the name of the access key, and User that of its user, with its uid.
	Key     string `json:"key"`
	User    string `json:"user"`
	UserUID string `json:"userUID"`
	// Connector and Subject are the identity at the connector.
	Connector string `json:"connector"`
	Subject   string `json:"subject"`
	// SealedTokens are the tokens of the Session, sealed for the key. Empty: there are none, and the provider is not asked again. The references
	// of the record are the names by which the provider may end the session.
	SealedTokens string `json:"sealed,omitempty"`
	// AnsweredAt is when the provider has answered the last time, in Unix seconds.
	AnsweredAt int64 `json:"asked"`
}

// sessionTokens are those of a Session in the form in which they are sealed.
type sessionTokens struct {
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`
}

// sessionSealContext is what a session is sealed for: a user until there is a key, and then the key.
func sessionSealContext(uid string) string { return SessionsResource + "/" + uid }

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

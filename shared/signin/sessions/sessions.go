// Package sessions stores the sessions of people at their providers, with sealed tokens, one for each access key of a login.
// Source: ADR-0035.
package sessions

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
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/state/store"
)

// Resource is the name of sessions at providers in the state. Clients cannot read it.
const Resource = "signinsessions"

// Sessions returns the state of sessions at providers. Each has the uid of its access key as name. It is due when the provider is asked
// again. Source: ADR-0035.
func Sessions(env *platform.Environment) store.Store { return env.Stores(Resource) }

// Store has the sessions at providers of an environment. It is safe for concurrent use.
type Store struct {
	env *platform.Environment
	// Records is the state of sessions. Each has the uid of its access key as name. It is due when the provider is asked again.
	// Source: ADR-0035.
	Records store.Store
	keys    *accesskey.Registry
}

// Open returns the sessions of an environment.
func Open(env *platform.Environment, keys *accesskey.Registry) *Store {
	return &Store{env: env, Records: Sessions(env), keys: keys}
}

// Seal returns the tokens of a session, sealed for an object. Empty: the session has no tokens.
func (s *Store) Seal(ctx context.Context, session provider.Session, uid string) (string, error) {
	if session.AccessToken == "" && session.RefreshToken == "" {
		return "", nil
	}
	ring, err := s.env.Keyring(ctx)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(tokens{session.AccessToken.Reveal(), session.RefreshToken.Reveal()})
	if err != nil {
		return "", fmt.Errorf("encoding a session: %w", err)
	}
	return ring.Seal(text, sealContext(uid))
}

// Open returns the tokens of a session that were sealed for an object.
func (s *Store) Open(ctx context.Context, sealed, uid string) (provider.Session, error) {
	ring, err := s.env.Keyring(ctx)
	if err != nil {
		return provider.Session{}, err
	}
	text, err := ring.Open(sealed, sealContext(uid))
	if err != nil {
		return provider.Session{}, err
	}
	var tokens tokens
	if err := json.Unmarshal(text, &tokens); err != nil {
		return provider.Session{}, errors.New("a session cannot be read")
	}
	return provider.Session{AccessToken: secret.String(tokens.Access), RefreshToken: secret.String(tokens.Refresh)}, nil
}

// Create stores the session of a login for its new key, if the provider can refresh or end the session.
func (s *Store) Create(ctx context.Context, login *logins.Login, key *model.OwnedAccessKey) error {
	if login.SealedSession == "" && len(login.LogoutNames) == 0 {
		return nil
	}
	var sealed string
	if login.SealedSession != "" {
		session, err := s.Open(ctx, login.SealedSession, login.UID)
		if err != nil {
			return err
		}
		if sealed, err = s.Seal(ctx, session, string(key.UID)); err != nil {
			return err
		}
	}
	now := s.env.Now()
	object, err := json.Marshal(Record{
		Key: key.Name, User: login.User, UserUID: login.UID, Connector: login.Identity.Connector, Subject: login.Identity.UserID, SealedTokens: sealed, AnsweredAt: now.Unix(),
	})
	if err != nil {
		return fmt.Errorf("encoding a session: %w", err)
	}
	_, err = s.Records.Create(ctx, store.Record{
		Name: string(key.UID), Owner: identity.Owner{Kind: identity.User, Name: login.User}.String(), Created: now, Expires: now.Add(RevalidateEvery), References: login.LogoutNames,
		Object: object,
	})
	if err != nil {
		return fmt.Errorf("storing the session of a sign-in: %w", err)
	}
	return nil
}

// ReadLiveKey returns the key of a session, and the time of its last use. Nil: the key is gone, is being deleted, or is another key with
// this name.
func (s *Store) ReadLiveKey(ctx context.Context, session Record, uid string) (*model.OwnedAccessKey, time.Time, error) {
	key, activity, err := s.ReadKey(ctx, session, uid)
	if err != nil || key == nil || key.DeletionTimestamp != nil {
		return nil, time.Time{}, err
	}
	return key, activity, nil
}

// ReadKey is ReadLiveKey, and returns a key that is being deleted as well.
func (s *Store) ReadKey(ctx context.Context, session Record, uid string) (*model.OwnedAccessKey, time.Time, error) {
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

// Update writes the record of a session, with its new revision. False: another process has written it first, or err has a value.
func (s *Store) Update(ctx context.Context, record *store.Record, session Record, err *error) bool {
	if record.Object, *err = json.Marshal(session); *err != nil {
		return false
	}
	revision, updateErr := s.Records.Update(ctx, *record)
	if updateErr != nil {
		if !logins.IsConflict(updateErr) {
			*err = fmt.Errorf("storing a session: %w", updateErr)
		}
		return false
	}
	record.Revision = revision
	return true
}

// RevalidateEvery is how often a provider is asked about a person whose key is in use.
const RevalidateEvery = 15 * time.Minute

// Record is a session at a provider as it is stored.
type Record struct {
	// Key is the name of the access key. User and UserUID are the name and the uid of its user.
	Key     string `json:"key"`
	User    string `json:"user"`
	UserUID string `json:"userUID"`
	// Connector and Subject are the identity at the connector.
	Connector string `json:"connector"`
	Subject   string `json:"subject"`
	// SealedTokens are the tokens of the Session, sealed for the key. Empty: there are no tokens, and the provider is not asked
	// again. The references of the record are the names by which the provider may end the session.
	SealedTokens string `json:"sealed,omitempty"`
	// AnsweredAt is the time of the provider's last answer, in Unix seconds.
	AnsweredAt int64 `json:"asked"`
}

// tokens has the tokens of a Session in the form in which they are sealed.
type tokens struct {
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`
}

// sealContext is the context for which the tokens of a session are sealed: the uid of the user until there is a key, and then the uid of
// the key.
func sealContext(uid string) string { return Resource + "/" + uid }

// ScheduleRelease makes the next run of the revalidation release the session of a key that has ended. Without it, a later run
// releases the session. It returns the errors of the store.
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

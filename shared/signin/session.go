package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/kinds/user"
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

const (
	// revalidateEvery is how often a provider is asked about somebody whose key is in use, and revalidateUnusedEvery how often otherwise.
	revalidateEvery       = 15 * time.Minute
	revalidateUnusedEvery = 12 * time.Hour
	// leaseDuration is how long a process has to ask a provider, before another one asks again.
	leaseDuration = 2 * time.Minute
	// maxSessionsPerRun is about how many sessions a run asks; the next run goes on. maxConcurrentSessions is how many it asks about at a time.
	maxSessionsPerRun     = 500
	maxConcurrentSessions = 20
)

// dueImmediately is when a session is due whose provider is asked whether or not the key was used.
var dueImmediately = time.Unix(1, 0)

// revalidator is the caller who writes users and keys when a provider was asked again.
var revalidator = identity.New(identity.Owner{Kind: identity.Subject, Name: "revalidatelogins"}, []string{identity.Admins})

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

// sealSession returns the tokens of a session sealed for an object. Empty: the provider gave nothing with which it could be asked again.
func (f *Flow) sealSession(ctx context.Context, session Session, uid string) (string, error) {
	if session.AccessToken == "" && session.RefreshToken == "" {
		return "", nil
	}
	ring, err := f.env.Keyring(ctx)
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
func (f *Flow) openSession(ctx context.Context, sealed, uid string) (Session, error) {
	ring, err := f.env.Keyring(ctx)
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
func (f *Flow) storeSession(ctx context.Context, login *storedLogin, key *model.OwnedAccessKey) error {
	if login.SealedSession == "" && len(login.LogoutNames) == 0 {
		return nil
	}
	var sealed string
	if login.SealedSession != "" {
		session, err := f.openSession(ctx, login.SealedSession, login.UID)
		if err != nil {
			return err
		}
		if sealed, err = f.sealSession(ctx, session, string(key.UID)); err != nil {
			return err
		}
	}
	now := f.env.Now()
	object, err := json.Marshal(storedSession{
		Key: key.Name, User: login.User, UserUID: login.UID, Connector: login.Identity.Connector, Subject: login.Identity.UserID, SealedTokens: sealed, AnsweredAt: now.Unix(),
	})
	if err != nil {
		return fmt.Errorf("encoding a session: %w", err)
	}
	_, err = f.sessions.Create(ctx, store.Record{
		Name: string(key.UID), Owner: identity.Owner{Kind: identity.User, Name: login.User}.String(), Created: now, Expires: now.Add(revalidateEvery), References: login.LogoutNames,
		Object: object,
	})
	if err != nil {
		return fmt.Errorf("storing the session of a sign-in: %w", err)
	}
	return nil
}

// RevalidationCounts counts what a run of Renew did.
type RevalidationCounts struct {
	// Kept counts the sessions that their provider has confirmed, LogoutToken those that it refuses, Unanswered those for which no provider
	// answered, Unused those whose key was not used or whose provider cannot be asked, and Forgotten those whose key no longer exists.
	Kept, Ended, Unanswered, Unused, Forgotten int
	// Revoked counts the refresh tokens that a provider took back, of keys that have ended, and Unrevoked those of which nobody knows.
	Revoked, Unrevoked int
}

// add adds what was done for a session.
func (r *RevalidationCounts) add(counts RevalidationCounts) {
	r.Kept, r.Ended, r.Unanswered, r.Unused = r.Kept+counts.Kept, r.Ended+counts.Ended, r.Unanswered+counts.Unanswered, r.Unused+counts.Unused
	r.Forgotten, r.Revoked, r.Unrevoked = r.Forgotten+counts.Forgotten, r.Revoked+counts.Revoked, r.Unrevoked+counts.Unrevoked
}

// Revalidate asks the providers again about the people whose sessions are due, up to a bound. A session is leased before, so that of several
// processes one asks.
//
// A provider that refuses somebody ends the key of the sign-in, and every credential of the user. If it refuses a refresh token alone, and the
// person has signed in there again since, the key of the sign-in ends, and the later sign-in speaks for the person. A provider that does not answer changes
// nothing: accesskey.IdentityFor bounds how long the key works without an answer. The refresh token of a key that has ended goes back to
// the provider. Errors: those of the store; the counts say what was done before. Source: ADR-0035, ADR-0042.
func (f *Flow) Revalidate(ctx context.Context, idp SessionProvider) (RevalidationCounts, error) {
	var counts RevalidationCounts
	due, err := f.sessions.Due(ctx, store.DueQuery{Until: f.env.Now(), Limit: maxSessionsPerRun})
	if err != nil {
		return counts, fmt.Errorf("looking for due sessions: %w", err)
	}
	var mu sync.Mutex
	var runErr error
	var group sync.WaitGroup
	slots := make(chan struct{}, maxConcurrentSessions)
	for _, record := range due {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			var sessionCounts RevalidationCounts
			err := f.revalidateSession(ctx, idp, record, &sessionCounts)
			mu.Lock()
			defer mu.Unlock()
			runErr = errors.Join(runErr, err)
			counts.add(sessionCounts)
		})
	}
	group.Wait()
	return counts, runErr
}

// revalidateSession asks the provider of a session.
func (f *Flow) revalidateSession(ctx context.Context, idp SessionProvider, record store.Record, counts *RevalidationCounts) error {
	var session storedSession
	if err := json.Unmarshal(record.Object, &session); err != nil {
		return fmt.Errorf("reading a session: %w", err)
	}
	key, activity, err := f.readLiveKey(ctx, session, record.Name)
	if err != nil {
		return err
	}
	if key == nil {
		counts.Forgotten++
		return f.releaseSession(ctx, idp, record, session, counts)
	}
	now := f.env.Now()
	if session.SealedTokens == "" {
		counts.Unused++
		return f.sessions.Touch(ctx, record, time.Time{}, now.Add(revalidateUnusedEvery))
	}
	if activity, err = f.lastActivity(ctx, key, activity); err != nil {
		return err
	}
	answeredAt := time.Unix(session.AnsweredAt, 0)
	if !record.Expires.Equal(dueImmediately) && !activity.After(answeredAt) && now.Before(answeredAt.Add(revalidateUnusedEvery)) {
		counts.Unused++
		return f.sessions.Touch(ctx, record, time.Time{}, now.Add(revalidateEvery))
	}
	// Whoever writes the record first asks.
	if record.Expires = now.Add(leaseDuration); !f.writeSession(ctx, &record, session, &err) {
		return err
	}
	account, keyIdentity, err := f.refreshPerson(ctx, idp, key, &record, &session)
	var refusal *Refusal
	switch {
	case err == nil && account == nil:
		counts.Forgotten++
		return f.releaseSession(ctx, idp, record, session, counts)
	case err == nil:
		if err := f.updateKeyIdentity(ctx, key, keyIdentity, now); err != nil {
			return err
		}
		counts.Kept++
		session.AnsweredAt, record.Expires = now.Unix(), now.Add(revalidateEvery)
		f.writeSession(ctx, &record, session, &err)
		return err
	case errors.As(err, &refusal) && refusal.IsDefinite():
		f.env.Log.WarnContext(ctx, "a provider refuses somebody who has signed in", "user", session.User, "connector", session.Connector, "reason", refusal.Error())
		counts.Ended++
		if err := f.endRefusedLogin(ctx, record, session, key, refusal); err != nil {
			return err
		}
		// The session is removed last, so that the next run repeats what has failed.
		return f.releaseSession(ctx, idp, record, session, counts)
	default:
		// The lease ends by itself, and the provider is asked again.
		f.env.Log.WarnContext(ctx, "a provider cannot say whether somebody may still sign in", "user", session.User, "connector", session.Connector, "error", err)
		counts.Unanswered++
		return nil
	}
}

// readLiveKey returns the key of a session, and when it was used. Nil: it is gone, or another one of the name.
func (f *Flow) readLiveKey(ctx context.Context, session storedSession, uid string) (*model.OwnedAccessKey, time.Time, error) {
	key, activity, err := f.readKey(ctx, session, uid)
	if err != nil || key == nil || key.DeletionTimestamp != nil {
		return nil, time.Time{}, err
	}
	return key, activity, nil
}

// readKey is keyOf, and returns a key that is being deleted as well.
func (f *Flow) readKey(ctx context.Context, session storedSession, uid string) (*model.OwnedAccessKey, time.Time, error) {
	record, err := f.loginKeys.Store.Get(ctx, session.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("reading the key of a session: %w", err)
	}
	key, err := f.loginKeys.Decode(record)
	if err != nil || string(key.UID) != uid {
		return nil, time.Time{}, err
	}
	return key, record.Activity, nil
}

// writeSession writes the record of a session, with its new revision. False: another process was faster, or err has a value.
func (f *Flow) writeSession(ctx context.Context, record *store.Record, session storedSession, err *error) bool {
	if record.Object, *err = json.Marshal(session); *err != nil {
		return false
	}
	revision, updateErr := f.sessions.Update(ctx, *record)
	if updateErr != nil {
		if !isConflict(updateErr) {
			*err = fmt.Errorf("storing a session: %w", updateErr)
		}
		return false
	}
	record.Revision = revision
	return true
}

// refreshPerson asks the provider of a session who the person is, and writes the groups of their user. Nil: the user is gone, has another
// identity, or has signed out since.
func (f *Flow) refreshPerson(ctx context.Context, idp Refresher, key *model.OwnedAccessKey, record *store.Record, stored *storedSession) (*model.User, model.AccessKeyIdentity, error) {
	noIdentity := model.AccessKeyIdentity{}
	config := f.env.Config()
	conn, ok := findConnector(config, stored.Connector)
	if !ok {
		return nil, noIdentity, errors.New("the connector is not in the configuration, or nobody can sign in there")
	}
	account, err := f.findUser(ctx, stored.Connector, stored.Subject)
	if errors.As(err, new(*Refusal)) {
		// This says nothing of the provider: the user is disabled, and the key is refused meanwhile.
		return nil, noIdentity, errors.New("the user is disabled")
	}
	if err != nil || account == nil || string(account.UID) != stored.UserUID {
		return nil, noIdentity, err
	}
	if owner := key.Status.Owner; owner != nil && owner.Generation < account.Spec.TokenGeneration {
		return nil, noIdentity, nil
	}
	session, err := f.openSession(ctx, stored.SealedTokens, record.Name)
	if err != nil {
		return nil, noIdentity, err
	}
	person, err := idp.Refresh(ctx, conn, session, func(newSession Session) error {
		sealed, err := f.sealSession(ctx, newSession, record.Name)
		if err != nil {
			return err
		}
		stored.SealedTokens = sealed
		if !f.writeSession(ctx, record, *stored, &err) && err == nil {
			return errors.New("another process has asked meanwhile")
		}
		return err
	})
	if err != nil {
		return nil, noIdentity, err
	}
	if person.Subject != stored.Subject {
		return nil, noIdentity, RefusedByProvider("the session is that of another subject")
	}
	groups, spec, keyIdentity, err := mapPerson(ctx, conn, person, config.Auth.GroupsFilters)
	if err != nil {
		return nil, noIdentity, err
	}
	if person.SameGroups {
		groups, spec.SSOGroups = nil, account.Spec.SSOGroups
		if before := key.Spec.Identity; before != nil {
			keyIdentity.Groups = before.Groups
		}
	}
	if account, err = f.updateUser(ctx, account, spec); errors.Is(err, lastadmin.ErrLastAdmin) {
		return nil, noIdentity, errors.New("nobody would be an admin of the platform afterwards")
	}
	if err != nil {
		return nil, noIdentity, err
	}
	return account, keyIdentity, f.createTeams(ctx, config.Auth, groups)
}

// updateKeyIdentity writes into the key of a session who the person is now, and since when this is known.
func (f *Flow) updateKeyIdentity(ctx context.Context, key *model.OwnedAccessKey, keyIdentity model.AccessKeyIdentity, now time.Time) error {
	if key.Spec.Disabled {
		return nil
	}
	updated := key.DeepCopy()
	updated.Spec.Identity, updated.Spec.IdentityRefresh = &keyIdentity, &metav1.Time{Time: now}
	_, err := resource.Update(ctx, f.loginKeys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: revalidator, Name: key.Name, Object: updated, Manager: ClientID})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Somebody else has written the key. The next run refreshes it.
		return nil
	}
	return err
}

// endRefusedLogin ends what a refusal of the provider ends. Some providers keep one refresh token for a person and a client, so that each sign-in
// replaces the token of the one before: such a refusal says nothing of a person who has signed in again. Then the key of this sign-in
// ends, and the provider is asked with the token of the later one in the next run.
func (f *Flow) endRefusedLogin(ctx context.Context, record store.Record, session storedSession, key *model.OwnedAccessKey, refusal *Refusal) error {
	if !refusal.RefreshTokenOnly {
		return f.endAllCredentials(ctx, session, key)
	}
	later, err := f.findLaterSession(ctx, record, session)
	if err != nil {
		return err
	}
	if later.Name == "" {
		return f.endAllCredentials(ctx, session, key)
	}
	// A write at its revision would take the new refresh token from a process that asks just now.
	if err := f.sessions.Touch(ctx, later, time.Time{}, dueImmediately); err != nil {
		return fmt.Errorf("storing that a session is due: %w", err)
	}
	return f.endKey(ctx, key)
}

// findLaterSession returns a session of the same person at the same connector whose sign-in was later, and whose key has not ended. A record
// without a name: there is none with which the provider can be asked.
func (f *Flow) findLaterSession(ctx context.Context, record store.Record, session storedSession) (store.Record, error) {
	for other, err := range store.Each(ctx, f.sessions, store.Query{Owners: []string{ownerOf(session.User)}}) {
		var candidate storedSession
		if err == nil {
			err = json.Unmarshal(other.Object, &candidate)
		}
		if err != nil {
			return store.Record{}, fmt.Errorf("looking for later sessions: %w", err)
		}
		if candidate.Connector != session.Connector || candidate.Subject != session.Subject || candidate.UserUID != session.UserUID || candidate.SealedTokens == "" || !other.Created.After(record.Created) {
			continue
		}
		if key, _, err := f.readLiveKey(ctx, candidate, other.Name); err != nil || key != nil && !key.Spec.Disabled {
			return other, err
		}
	}
	return store.Record{}, nil
}

// endAllCredentials ends every credential of a user, and the key of the sign-in: the provider refuses the user.
func (f *Flow) endAllCredentials(ctx context.Context, session storedSession, key *model.OwnedAccessKey) error {
	_, err := user.SignOutUser(ctx, f.users, resource.SubresourceInput[*model.UserSignOut]{Caller: revalidator, Name: session.User, Manager: ClientID})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return f.endKey(ctx, key)
}

// endKey ends the key of a sign-in.
func (f *Flow) endKey(ctx context.Context, key *model.OwnedAccessKey) error {
	_, err := resource.Delete(ctx, f.keys, resource.DeleteInput{Caller: revalidator, Name: key.Name, UID: key.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

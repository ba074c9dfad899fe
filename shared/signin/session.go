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
	// renewEvery is how often a provider is asked about somebody whose key is in use, and renewUnused how often otherwise.
	renewEvery  = 15 * time.Minute
	renewUnused = 12 * time.Hour
	// lease is how long a process has to ask a provider, before another one asks again.
	lease = 2 * time.Minute
	// maxRenewed is about how many sessions a run asks; the next run goes on. renewedAtOnce is how many it asks about at a time.
	maxRenewed    = 500
	renewedAtOnce = 20
)

// outOfTurn is when a session is due whose provider is asked whether or not the key was used.
var outOfTurn = time.Unix(1, 0)

// renewer is the caller who writes users and keys when a provider was asked again.
var renewer = identity.New(identity.Owner{Kind: identity.Subject, Name: "revalidatelogins"}, []string{identity.Admins})

// stored is a session at a provider as it is stored.
type stored struct {
	// Key is the name of the access key, and User that of its user, with its uid.
	Key     string `json:"key"`
	User    string `json:"user"`
	UserUID string `json:"userUID"`
	// Connector and Subject are the identity at the connector.
	Connector string `json:"connector"`
	Subject   string `json:"subject"`
	// Sealed are the tokens of the Session, sealed for the key. Empty: there are none, and the provider is not asked again. The references
	// of the record are the names by which the provider may end the session.
	Sealed string `json:"sealed,omitempty"`
	// Asked is when the provider has answered the last time, in Unix seconds.
	Asked int64 `json:"asked"`
}

// tokens are those of a Session in the form in which they are sealed.
type tokens struct {
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`
}

// sessionPlace is what a session is sealed for: a user until there is a key, and then the key.
func sessionPlace(uid string) string { return SessionsResource + "/" + uid }

// sealSession returns the tokens of a session sealed for an object. Empty: the provider gave nothing with which it could be asked again.
func (f *Flow) sealSession(ctx context.Context, session Session, uid string) (string, error) {
	if session.Access == "" && session.Refresh == "" {
		return "", nil
	}
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(tokens{session.Access.Reveal(), session.Refresh.Reveal()})
	if err != nil {
		return "", fmt.Errorf("encoding a session: %w", err)
	}
	return ring.Seal(text, sessionPlace(uid))
}

// openSession returns the tokens of a session that were sealed for an object.
func (f *Flow) openSession(ctx context.Context, sealed, uid string) (Session, error) {
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return Session{}, err
	}
	text, err := ring.Open(sealed, sessionPlace(uid))
	if err != nil {
		return Session{}, err
	}
	var said tokens
	if err := json.Unmarshal(text, &said); err != nil {
		return Session{}, errors.New("a session cannot be read")
	}
	return Session{Access: secret.String(said.Access), Refresh: secret.String(said.Refresh)}, nil
}

// keepSession stores the session of a sign-in for the key that was made, if the provider can be asked again or can end it.
func (f *Flow) keepSession(ctx context.Context, state *signIn, key *model.OwnedAccessKey) error {
	if state.Session == "" && len(state.Logout) == 0 {
		return nil
	}
	var sealed string
	if state.Session != "" {
		session, err := f.openSession(ctx, state.Session, state.UID)
		if err != nil {
			return err
		}
		if sealed, err = f.sealSession(ctx, session, string(key.UID)); err != nil {
			return err
		}
	}
	now := f.env.Now()
	object, err := json.Marshal(stored{
		Key: key.Name, User: state.User, UserUID: state.UID, Connector: state.Identity.Connector, Subject: state.Identity.UserID, Sealed: sealed, Asked: now.Unix(),
	})
	if err != nil {
		return fmt.Errorf("encoding a session: %w", err)
	}
	_, err = f.sessions.Create(ctx, store.Record{
		Name: string(key.UID), Owner: identity.Owner{Kind: identity.User, Name: state.User}.String(), Created: now, Expires: now.Add(renewEvery), References: state.Logout,
		Object: object,
	})
	if err != nil {
		return fmt.Errorf("storing the session of a sign-in: %w", err)
	}
	return nil
}

// Renewed counts what a run of Renew did.
type Renewed struct {
	// Kept counts the sessions that their provider has confirmed, Ended those that it refuses, Unanswered those for which no provider
	// answered, Unused those whose key was not used or whose provider cannot be asked, and Forgotten those whose key no longer exists.
	Kept, Ended, Unanswered, Unused, Forgotten int
	// Revoked counts the refresh tokens that a provider took back, of keys that have ended, and Unrevoked those of which nobody knows.
	Revoked, Unrevoked int
}

// add adds what was done for a session.
func (r *Renewed) add(one Renewed) {
	r.Kept, r.Ended, r.Unanswered, r.Unused = r.Kept+one.Kept, r.Ended+one.Ended, r.Unanswered+one.Unanswered, r.Unused+one.Unused
	r.Forgotten, r.Revoked, r.Unrevoked = r.Forgotten+one.Forgotten, r.Revoked+one.Revoked, r.Unrevoked+one.Unrevoked
}

// Renew asks the providers again about the people whose sessions are due, up to a bound. A session is leased before, so that of several
// processes one asks.
//
// A provider that refuses somebody ends the key of the sign-in, and every credential of the user. If it refuses a refresh token alone, and the
// person has signed in there again since, the key of the sign-in ends, and the later sign-in speaks for the person. A provider that does not answer changes
// nothing: accesskey.IdentityFor bounds how long the key works without an answer. The refresh token of a key that has ended goes back to
// the provider. Errors: those of the store; the counts say what was done before. Source: ADR-0035, ADR-0042.
func (f *Flow) Renew(ctx context.Context, provider Keeper) (Renewed, error) {
	var done Renewed
	due, err := f.sessions.Due(ctx, store.DueQuery{Until: f.env.Now(), Limit: maxRenewed})
	if err != nil {
		return done, fmt.Errorf("looking for due sessions: %w", err)
	}
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	turns := make(chan struct{}, renewedAtOnce)
	for _, record := range due {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			var one Renewed
			err := f.renewOne(ctx, provider, record, &one)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			done.add(one)
		})
	}
	group.Wait()
	return done, failed
}

// renewOne asks the provider of a session.
func (f *Flow) renewOne(ctx context.Context, provider Keeper, record store.Record, done *Renewed) error {
	var state stored
	if err := json.Unmarshal(record.Object, &state); err != nil {
		return fmt.Errorf("reading a session: %w", err)
	}
	key, activity, err := f.keyOf(ctx, state, record.Name)
	if err != nil {
		return err
	}
	if key == nil {
		done.Forgotten++
		return f.giveBack(ctx, provider, record, state, done)
	}
	now := f.env.Now()
	if state.Sealed == "" {
		done.Unused++
		return f.sessions.Touch(ctx, record, time.Time{}, now.Add(renewUnused))
	}
	if activity, err = f.lastActivity(ctx, key, activity); err != nil {
		return err
	}
	asked := time.Unix(state.Asked, 0)
	if !record.Expires.Equal(outOfTurn) && !activity.After(asked) && now.Before(asked.Add(renewUnused)) {
		done.Unused++
		return f.sessions.Touch(ctx, record, time.Time{}, now.Add(renewEvery))
	}
	// Whoever writes the record first asks.
	if record.Expires = now.Add(lease); !f.put(ctx, &record, state, &err) {
		return err
	}
	found, who, err := f.again(ctx, provider, key, &record, &state)
	var refusal *Refusal
	switch {
	case err == nil && found == nil:
		done.Forgotten++
		return f.giveBack(ctx, provider, record, state, done)
	case err == nil:
		if err := f.refresh(ctx, key, who, now); err != nil {
			return err
		}
		done.Kept++
		state.Asked, record.Expires = now.Unix(), now.Add(renewEvery)
		f.put(ctx, &record, state, &err)
		return err
	case errors.As(err, &refusal) && refusal.Definite():
		f.env.Log.WarnContext(ctx, "a provider refuses somebody who has signed in", "user", state.User, "connector", state.Connector, "reason", refusal.Error())
		done.Ended++
		if err := f.endRefused(ctx, record, state, key, refusal); err != nil {
			return err
		}
		// The session is removed last, so that the next run repeats what has failed.
		return f.giveBack(ctx, provider, record, state, done)
	default:
		// The lease ends by itself, and the provider is asked again.
		f.env.Log.WarnContext(ctx, "a provider cannot say whether somebody may still sign in", "user", state.User, "connector", state.Connector, "error", err)
		done.Unanswered++
		return nil
	}
}

// keyOf returns the key of a session, and when it was used. Nil: it is gone, or another one of the name.
func (f *Flow) keyOf(ctx context.Context, state stored, uid string) (*model.OwnedAccessKey, time.Time, error) {
	key, activity, err := f.storedKey(ctx, state, uid)
	if err != nil || key == nil || key.DeletionTimestamp != nil {
		return nil, time.Time{}, err
	}
	return key, activity, nil
}

// storedKey is keyOf, and returns a key that is being deleted as well.
func (f *Flow) storedKey(ctx context.Context, state stored, uid string) (*model.OwnedAccessKey, time.Time, error) {
	record, err := f.keys.Store.Get(ctx, state.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("reading the key of a session: %w", err)
	}
	key, err := f.keys.Decode(record)
	if err != nil || string(key.UID) != uid {
		return nil, time.Time{}, err
	}
	return key, record.Activity, nil
}

// put writes the record of a session, with its new revision. False: another process was faster, or err has a value.
func (f *Flow) put(ctx context.Context, record *store.Record, state stored, err *error) bool {
	if record.Object, *err = json.Marshal(state); *err != nil {
		return false
	}
	revision, wrong := f.sessions.Update(ctx, *record)
	if wrong != nil {
		if !lost(wrong) {
			*err = fmt.Errorf("storing a session: %w", wrong)
		}
		return false
	}
	record.Revision = revision
	return true
}

// again asks the provider of a session who the person is, and writes the groups of their user. Nil: the user is gone, has another
// identity, or has signed out since.
func (f *Flow) again(ctx context.Context, provider Renewer, key *model.OwnedAccessKey, record *store.Record, state *stored) (*model.User, model.AccessKeyIdentity, error) {
	nobody := model.AccessKeyIdentity{}
	settings := f.env.Config()
	chosen, known := lookup(settings, state.Connector)
	if !known {
		return nil, nobody, errors.New("the connector is not in the configuration, or nobody can sign in there")
	}
	found, err := f.find(ctx, state.Connector, state.Subject)
	if errors.As(err, new(*Refusal)) {
		// This says nothing of the provider: the user is disabled, and the key is refused meanwhile.
		return nil, nobody, errors.New("the user is disabled")
	}
	if err != nil || found == nil || string(found.UID) != state.UserUID {
		return nil, nobody, err
	}
	if owner := key.Status.Owner; owner != nil && owner.Generation < found.Spec.TokenGeneration {
		return nil, nobody, nil
	}
	session, err := f.openSession(ctx, state.Sealed, record.Name)
	if err != nil {
		return nil, nobody, err
	}
	person, err := provider.Renew(ctx, chosen, session, func(fresh Session) error {
		sealed, err := f.sealSession(ctx, fresh, record.Name)
		if err != nil {
			return err
		}
		state.Sealed = sealed
		if !f.put(ctx, record, *state, &err) && err == nil {
			return errors.New("another process has asked meanwhile")
		}
		return err
	})
	if err != nil {
		return nil, nobody, err
	}
	if person.Subject != state.Subject {
		return nil, nobody, Refused("the session is that of another subject")
	}
	notes := map[string]string{}
	groups, said, who, err := mapped(chosen, person, settings.Auth.GroupsFilters, notes)
	if err != nil {
		return nil, nobody, err
	}
	if person.SameGroups {
		groups, said.SSOGroups = nil, found.Spec.SSOGroups
		if before := key.Spec.Identity; before != nil {
			who.Groups = before.Groups
		}
	}
	if found, err = f.renew(ctx, found, said); errors.Is(err, lastadmin.ErrLastAdmin) {
		return nil, nobody, errors.New("nobody would be an admin of the platform afterwards")
	}
	if err != nil {
		return nil, nobody, err
	}
	return found, who, f.makeTeams(ctx, settings.Auth, groups, notes)
}

// refresh writes into the key of a session who the person is now, and since when this is known.
func (f *Flow) refresh(ctx context.Context, key *model.OwnedAccessKey, who model.AccessKeyIdentity, now time.Time) error {
	if key.Spec.Disabled {
		return nil
	}
	next := key.DeepCopy()
	next.Spec.Identity, next.Spec.IdentityRefresh = &who, &metav1.Time{Time: now}
	_, err := resource.Update(ctx, f.keys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: renewer, Name: key.Name, Object: next, Manager: ClientID})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Somebody else has written the key. The next run refreshes it.
		return nil
	}
	return err
}

// endRefused ends what a refusal of the provider ends. Some providers keep one refresh token for a person and a client, so that each sign-in
// replaces the token of the one before: such a refusal says nothing of a person who has signed in again. Then the key of this sign-in
// ends, and the provider is asked with the token of the later one in the next run.
func (f *Flow) endRefused(ctx context.Context, record store.Record, state stored, key *model.OwnedAccessKey, refusal *Refusal) error {
	if !refusal.OfToken {
		return f.endAll(ctx, state, key)
	}
	later, err := f.laterSession(ctx, record, state)
	if err != nil {
		return err
	}
	if later.Name == "" {
		return f.endAll(ctx, state, key)
	}
	// A write at its revision would take the new refresh token from a process that asks just now.
	if err := f.sessions.Touch(ctx, later, time.Time{}, outOfTurn); err != nil {
		return fmt.Errorf("storing that a session is due: %w", err)
	}
	return f.endKey(ctx, key)
}

// laterSession returns a session of the same person at the same connector whose sign-in was later, and whose key has not ended. A record
// without a name: there is none with which the provider can be asked.
func (f *Flow) laterSession(ctx context.Context, record store.Record, state stored) (store.Record, error) {
	for other, err := range store.Each(ctx, f.sessions, store.Query{Owners: []string{ownerOf(state.User)}}) {
		var found stored
		if err == nil {
			err = json.Unmarshal(other.Object, &found)
		}
		if err != nil {
			return store.Record{}, fmt.Errorf("looking for later sessions: %w", err)
		}
		if found.Connector != state.Connector || found.Subject != state.Subject || found.UserUID != state.UserUID || found.Sealed == "" || !other.Created.After(record.Created) {
			continue
		}
		if key, _, err := f.keyOf(ctx, found, other.Name); err != nil || key != nil && !key.Spec.Disabled {
			return other, err
		}
	}
	return store.Record{}, nil
}

// endAll ends every credential of a user, and the key of the sign-in: the provider refuses the user.
func (f *Flow) endAll(ctx context.Context, state stored, key *model.OwnedAccessKey) error {
	_, err := user.SignOutUser(ctx, f.users, resource.SubresourceInput[*model.UserSignOut]{Caller: renewer, Name: state.User, Manager: ClientID})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return f.endKey(ctx, key)
}

// endKey ends the key of a sign-in.
func (f *Flow) endKey(ctx context.Context, key *model.OwnedAccessKey) error {
	_, err := resource.Delete(ctx, f.all, resource.DeleteInput{Caller: renewer, Name: key.Name, UID: key.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

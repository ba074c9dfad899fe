// Package revalidate asks providers, on a schedule, whether people who have signed in there still may, and in which groups they are. It
// revokes the refresh tokens of keys that have ended. Source: Spec 2.5 (identityRefresh); RFC 7009; ADR-0035, ADR-0042.
package revalidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/provisioning"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/sessions"
	"management.platform.sh/shared/signin/token"
	"management.platform.sh/shared/state/store"
)

const (
	// revalidateUnusedEvery is how often a provider is asked about a person whose key is not in use.
	revalidateUnusedEvery = 12 * time.Hour
	// leaseDuration is how long a process has to ask a provider, before another one asks again.
	leaseDuration = 2 * time.Minute
	// maxSessionsPerRun is about how many sessions a run asks; the next run goes on. maxConcurrentSessions is how many it asks about at a time.
	maxSessionsPerRun     = 500
	maxConcurrentSessions = 20
)

// dueImmediately is the due time of a session whose provider is asked whether or not its key was used.
var dueImmediately = time.Unix(1, 0)

// revalidatingCaller is the caller that writes users and keys after a provider has answered.
var revalidatingCaller = identity.New(identity.Owner{Kind: identity.Subject, Name: "revalidatelogins"}, []string{identity.Admins})

// Revalidator asks providers again about people who have signed in. It is safe for concurrent use.
type Revalidator struct {
	env         *platform.Environment
	logins      *logins.Store
	sessions    *sessions.Store
	tokens      *token.Endpoint
	provisioner *provisioning.Provisioner
	users       *user.Registry
	// loginKeys updates the keys of logins, and keys are all access keys.
	loginKeys, keys *accesskey.Registry
}

// Open returns the revalidator of an environment. It writes users and ends keys in registries of package kinds.
func Open(env *platform.Environment, users *user.Registry, teams *team.Registry, keys *accesskey.Registry) *Revalidator {
	return &Revalidator{
		env: env, logins: logins.Open(env), sessions: sessions.Open(env, keys), tokens: token.Open(env, keys), provisioner: provisioning.Open(env, users, teams),
		users: users, loginKeys: accesskey.ForLogins(keys), keys: keys,
	}
}

// Counts are the results of one run.
type Counts struct {
	// Kept counts the sessions that their provider has confirmed. Ended counts the sessions that their provider refuses.
	// Unanswered counts the sessions whose provider did not answer. Unused counts the sessions whose key was not used or whose
	// provider cannot be asked. Forgotten counts the sessions whose key no longer exists.
	Kept, Ended, Unanswered, Unused, Forgotten int
	// Revoked counts the refresh tokens of ended keys that a provider has revoked. Unrevoked counts the refresh tokens whose
	// revocation is not known.
	Revoked, Unrevoked int
}

// add adds the counts of a session.
func (r *Counts) add(counts Counts) {
	r.Kept, r.Ended, r.Unanswered, r.Unused = r.Kept+counts.Kept, r.Ended+counts.Ended, r.Unanswered+counts.Unanswered, r.Unused+counts.Unused
	r.Forgotten, r.Revoked, r.Unrevoked = r.Forgotten+counts.Forgotten, r.Revoked+counts.Revoked, r.Unrevoked+counts.Unrevoked
}

// releaseSession removes the session of a key that has ended, unless another process has changed it. Then it revokes the refresh token at
// the provider, unless the user has another login there: a provider may end all logins of a person with one token. Whether or not the
// provider answers, the token is removed here. Source: RFC 7009; ADR-0042.
func (r *Revalidator) releaseSession(ctx context.Context, idp provider.Revoker, record store.Record, session sessions.Record, counts *Counts) error {
	_, err := r.sessions.Records.Delete(ctx, record.Name, record.Revision)
	switch {
	case logins.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("removing a session: %w", err)
	}
	conn, ok := method.FindConnector(r.env.Config(), session.Connector)
	if session.SealedTokens == "" || !ok || conn.Kind != connector.OIDC {
		return nil
	}
	onlyLogin, err := r.isOnlyLogin(ctx, session)
	if err != nil || !onlyLogin {
		return err
	}
	tokens, err := r.sessions.Open(ctx, session.SealedTokens, record.Name)
	if err == nil {
		var revoked bool
		if revoked, err = idp.Revoke(ctx, conn, tokens); revoked {
			counts.Revoked++
		}
	}
	if err != nil {
		counts.Unrevoked++
		r.env.Log.WarnContext(ctx, "a provider may still accept the refresh token of a sign-in that has ended", "user", session.User, "connector", session.Connector, "error", err)
	}
	return nil
}

// isOnlyLogin reports whether a user has no other login at the connector of a removed session: none with a session, and none that is not
// complete.
func (r *Revalidator) isOnlyLogin(ctx context.Context, session sessions.Record) (bool, error) {
	owners := store.Query{Owners: []string{logins.OwnerName(session.User)}}
	for record, err := range store.Each(ctx, r.sessions.Records, owners) {
		var other sessions.Record
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
	for record, err := range store.Each(ctx, r.logins.Records, owners) {
		var other logins.Login
		if err == nil {
			err = json.Unmarshal(record.Object, &other)
		}
		if err != nil {
			return false, fmt.Errorf("looking for other sign-ins: %w", err)
		}
		if other.SealedSession != "" && other.Identity.Connector == session.Connector && slices.Contains([]string{logins.StageAuthenticated, logins.StageConsented, logins.StageApproved}, other.Stage) {
			return false, nil
		}
	}
	return true, nil
}

// Run asks the providers again about the people whose sessions are due, up to a bound. Each session is leased first, so that one of several
// processes asks.
//
// A provider that refuses a person ends the key of the login, and every credential of the user. If it refuses a refresh token alone, and
// the person has signed in there again since, only the key of this login ends. A provider that does not answer changes nothing:
// accesskey.IdentityFor bounds how long the key works without an answer. The refresh token of a key that has ended is revoked at the
// provider. It returns the errors of the store; the counts are valid on an error. Source: ADR-0035, ADR-0042.
func (r *Revalidator) Run(ctx context.Context, idp provider.SessionProvider) (Counts, error) {
	var counts Counts
	due, err := r.sessions.Records.Due(ctx, store.DueQuery{Until: r.env.Now(), Limit: maxSessionsPerRun})
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
			var sessionCounts Counts
			err := r.revalidateSession(ctx, idp, record, &sessionCounts)
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
func (r *Revalidator) revalidateSession(ctx context.Context, idp provider.SessionProvider, record store.Record, counts *Counts) error {
	var session sessions.Record
	if err := json.Unmarshal(record.Object, &session); err != nil {
		return fmt.Errorf("reading a session: %w", err)
	}
	key, activity, err := r.sessions.ReadLiveKey(ctx, session, record.Name)
	if err != nil {
		return err
	}
	if key == nil {
		counts.Forgotten++
		return r.releaseSession(ctx, idp, record, session, counts)
	}
	now := r.env.Now()
	if session.SealedTokens == "" {
		counts.Unused++
		return r.sessions.Records.Touch(ctx, record, time.Time{}, now.Add(revalidateUnusedEvery))
	}
	if activity, err = r.tokens.LastActivity(ctx, key, activity); err != nil {
		return err
	}
	answeredAt := time.Unix(session.AnsweredAt, 0)
	if !record.Expires.Equal(dueImmediately) && !activity.After(answeredAt) && now.Before(answeredAt.Add(revalidateUnusedEvery)) {
		counts.Unused++
		return r.sessions.Records.Touch(ctx, record, time.Time{}, now.Add(sessions.RevalidateEvery))
	}
	// The process that writes the record first asks the provider.
	if record.Expires = now.Add(leaseDuration); !r.sessions.Update(ctx, &record, session, &err) {
		return err
	}
	account, keyIdentity, err := r.refreshPerson(ctx, idp, key, &record, &session)
	var refusal *refusal.Refusal
	switch {
	case err == nil && account == nil:
		counts.Forgotten++
		return r.releaseSession(ctx, idp, record, session, counts)
	case err == nil:
		if err := r.updateKeyIdentity(ctx, key, keyIdentity, now); err != nil {
			return err
		}
		counts.Kept++
		session.AnsweredAt, record.Expires = now.Unix(), now.Add(sessions.RevalidateEvery)
		r.sessions.Update(ctx, &record, session, &err)
		return err
	case errors.As(err, &refusal) && refusal.IsDefinite():
		r.env.Log.WarnContext(ctx, "a provider refuses somebody who has signed in", "user", session.User, "connector", session.Connector, "reason", refusal.Error())
		counts.Ended++
		if err := r.endRefusedLogin(ctx, record, session, key, refusal); err != nil {
			return err
		}
		// The session is removed last, so that the next run repeats what has failed.
		return r.releaseSession(ctx, idp, record, session, counts)
	default:
		// The lease ends by itself, and the provider is asked again.
		r.env.Log.WarnContext(ctx, "a provider cannot say whether somebody may still sign in", "user", session.User, "connector", session.Connector, "error", err)
		counts.Unanswered++
		return nil
	}
}

// refreshPerson asks the provider of a session for the person, and writes the groups of their user. Nil: the user is gone, has another
// identity, or has signed out since.
func (r *Revalidator) refreshPerson(ctx context.Context, idp provider.Refresher, key *model.OwnedAccessKey, record *store.Record, stored *sessions.Record) (*model.User, model.AccessKeyIdentity, error) {
	noIdentity := model.AccessKeyIdentity{}
	config := r.env.Config()
	conn, ok := method.FindConnector(config, stored.Connector)
	if !ok {
		return nil, noIdentity, errors.New("the connector is not in the configuration, or nobody can sign in there")
	}
	account, err := r.provisioner.FindUser(ctx, stored.Connector, stored.Subject)
	if errors.As(err, new(*refusal.Refusal)) {
		// The provider has said nothing: the user is disabled here, and the key is refused meanwhile.
		return nil, noIdentity, errors.New("the user is disabled")
	}
	if err != nil || account == nil || string(account.UID) != stored.UserUID {
		return nil, noIdentity, err
	}
	if owner := key.Status.Owner; owner != nil && owner.Generation < account.Spec.TokenGeneration {
		return nil, noIdentity, nil
	}
	session, err := r.sessions.Open(ctx, stored.SealedTokens, record.Name)
	if err != nil {
		return nil, noIdentity, err
	}
	person, err := idp.Refresh(ctx, conn, session, func(newSession provider.Session) error {
		sealed, err := r.sessions.Seal(ctx, newSession, record.Name)
		if err != nil {
			return err
		}
		stored.SealedTokens = sealed
		if !r.sessions.Update(ctx, record, *stored, &err) && err == nil {
			return errors.New("another process has asked meanwhile")
		}
		return err
	})
	if err != nil {
		return nil, noIdentity, err
	}
	if person.Subject != stored.Subject {
		return nil, noIdentity, refusal.ByProvider("the session is that of another subject")
	}
	groups, spec, keyIdentity, err := provisioning.MapPerson(ctx, conn, person, config.Auth.GroupsFilters)
	if err != nil {
		return nil, noIdentity, err
	}
	if person.SameGroups {
		groups, spec.SSOGroups = nil, account.Spec.SSOGroups
		if before := key.Spec.Identity; before != nil {
			keyIdentity.Groups = before.Groups
		}
	}
	if account, err = r.provisioner.UpdateUser(ctx, account, spec); errors.Is(err, lastadmin.ErrLastAdmin) {
		return nil, noIdentity, errors.New("the platform would have no admin afterwards")
	}
	if err != nil {
		return nil, noIdentity, err
	}
	return account, keyIdentity, r.provisioner.CreateTeams(ctx, config.Auth, groups)
}

// updateKeyIdentity writes the current identity of the person into the key of a login, with the time of the answer.
func (r *Revalidator) updateKeyIdentity(ctx context.Context, key *model.OwnedAccessKey, keyIdentity model.AccessKeyIdentity, now time.Time) error {
	if key.Spec.Disabled {
		return nil
	}
	updated := key.DeepCopy()
	updated.Spec.Identity, updated.Spec.IdentityRefresh = &keyIdentity, &metav1.Time{Time: now}
	_, err := resource.Update(ctx, r.loginKeys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: revalidatingCaller, Name: key.Name, Object: updated, Manager: oauth.ClientID})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Another process has written the key. The next run refreshes it.
		return nil
	}
	return err
}

// endRefusedLogin ends the credentials that a refusal of the provider affects. Some providers keep one refresh token for a person and a
// client, so that each login replaces the refresh token of the previous login: such a refusal says nothing of a person who has signed in
// again. Then the key of this login ends, and the next run refreshes the later session.
func (r *Revalidator) endRefusedLogin(ctx context.Context, record store.Record, session sessions.Record, key *model.OwnedAccessKey, refusal *refusal.Refusal) error {
	if !refusal.RefreshTokenOnly {
		return r.endAllCredentials(ctx, session, key)
	}
	later, err := r.findLaterSession(ctx, record, session)
	if err != nil {
		return err
	}
	if later.Name == "" {
		return r.endAllCredentials(ctx, session, key)
	}
	// A write at its revision would discard the new refresh token of a concurrent run.
	if err := r.sessions.Records.Touch(ctx, later, time.Time{}, dueImmediately); err != nil {
		return fmt.Errorf("storing that a session is due: %w", err)
	}
	return r.endKey(ctx, key)
}

// findLaterSession returns a later session of the same person at the same connector whose key has not ended. A record without a name: there
// is no session that can be refreshed.
func (r *Revalidator) findLaterSession(ctx context.Context, record store.Record, session sessions.Record) (store.Record, error) {
	for other, err := range store.Each(ctx, r.sessions.Records, store.Query{Owners: []string{logins.OwnerName(session.User)}}) {
		var candidate sessions.Record
		if err == nil {
			err = json.Unmarshal(other.Object, &candidate)
		}
		if err != nil {
			return store.Record{}, fmt.Errorf("looking for later sessions: %w", err)
		}
		if candidate.Connector != session.Connector || candidate.Subject != session.Subject || candidate.UserUID != session.UserUID || candidate.SealedTokens == "" || !other.Created.After(record.Created) {
			continue
		}
		if key, _, err := r.sessions.ReadLiveKey(ctx, candidate, other.Name); err != nil || key != nil && !key.Spec.Disabled {
			return other, err
		}
	}
	return store.Record{}, nil
}

// endAllCredentials ends every credential of a user whom the provider refuses, and the key of the login.
func (r *Revalidator) endAllCredentials(ctx context.Context, session sessions.Record, key *model.OwnedAccessKey) error {
	_, err := user.SignOutUser(ctx, r.users, resource.SubresourceInput[*model.UserSignOut]{Caller: revalidatingCaller, Name: session.User, Manager: oauth.ClientID})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return r.endKey(ctx, key)
}

// endKey ends the key of a sign-in.
func (r *Revalidator) endKey(ctx context.Context, key *model.OwnedAccessKey) error {
	_, err := resource.Delete(ctx, r.keys, resource.DeleteInput{Caller: revalidatingCaller, Name: key.Name, UID: key.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

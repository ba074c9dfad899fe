package accesskey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// Bearers identifies callers by their access keys. It implements auth.Bearers and is safe for concurrent use.
type Bearers struct {
	// Keys are the access keys.
	Keys *Registry
	// Now is the clock.
	Now func() time.Time
	// Limits returns the platform's current limits on the life of keys.
	Limits func() Limits
	// Log receives errors that do not fail the request.
	Log *slog.Logger
}

var _ auth.Bearers = (*Bearers)(nil)

// Identify implements auth.Bearers. A malformed key is refused without a request to the state. A valid key costs one round trip,
// which also reads the keys to which it is bound, their owners, and the trust rules that made these keys. A key that is new to
// this process costs two round trips. Each object that owns one of these keys costs one more; a key whose owners are gone is
// refused. A process that has not read the teams reads them at the same time. A refresh key is refused. Source: Spec 5.1, 5.2;
// ADR-0005, ADR-0021, ADR-0029, ADR-0045.
func (b *Bearers) Identify(ctx context.Context, bearer secret.String, target store.Ref) (auth.Identified, error) {
	identified, err := b.identify(ctx, bearer, target)
	if err == nil && identified.Caller.KeyType == model.AccessKeyTypeOIDCRefreshToken {
		return auth.Identified{}, auth.ErrUnknown
	}
	return identified, err
}

// identify is Identify for keys of all types.
func (b *Bearers) identify(ctx context.Context, bearer secret.String, target store.Ref) (auth.Identified, error) {
	if CheckBearer(bearer) != nil {
		return auth.Identified{}, auth.ErrUnknown
	}
	return b.identifyDigest(ctx, Digest(bearer), target)
}

// identifyDigest is identify for the key with a digest.
func (b *Bearers) identifyDigest(ctx context.Context, digest string, target store.Ref) (auth.Identified, error) {
	bundle, err := b.readBundle(ctx, digest, target)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return auth.Identified{}, auth.ErrUnknown
	case err != nil:
		return auth.Identified{}, err
	}
	key, record := bundle.key, bundle.record
	until, err := Usable(key, record.Activity, b.Limits(), b.Now())
	switch {
	case errors.Is(err, ErrExpired):
		return auth.Identified{}, auth.ErrExpired
	case errors.Is(err, ErrDisabled):
		return auth.Identified{}, auth.ErrDisabled
	case err != nil:
		return auth.Identified{}, auth.ErrUnknown
	}
	switch orphaned, err := b.Keys.Orphaned(ctx, key); {
	case err != nil:
		return auth.Identified{}, fmt.Errorf("looking up what an access key belongs to: %w", err)
	case orphaned:
		return auth.Identified{}, auth.ErrUnknown
	}
	if err := bundle.fill(ctx); err != nil {
		return auth.Identified{}, err
	}
	state, err := ownerOf(ctx, b.people(), key, bundle.Refs)
	switch {
	case errors.Is(err, directory.ErrDisabled):
		return auth.Identified{}, auth.ErrOwnerDisabled
	case errors.Is(err, directory.ErrGone), errors.Is(err, directory.ErrAbsent):
		return auth.Identified{}, auth.ErrOwnerGone
	case errors.Is(err, directory.ErrSignedOut):
		return auth.Identified{}, auth.ErrSignedOut
	case err != nil:
		return auth.Identified{}, err
	}
	present, err := checkLineageRead(ctx, b.Keys, key.Status.Lineage, bundle.Companions, b.Limits(), b.Now())
	switch {
	case errors.Is(err, ErrBound):
		return auth.Identified{}, auth.ErrBound
	case err != nil:
		return auth.Identified{}, fmt.Errorf("looking up the lineage of an access key: %w", err)
	}
	ruled, err := rulesPermit(ctx, b.Keys, []*model.OwnedAccessKey{key}, bundle.Refs)
	switch {
	case errors.Is(err, ErrRule):
		return auth.Identified{}, auth.ErrRule
	case err != nil:
		return auth.Identified{}, err
	}
	return auth.Identified{
		Caller:     callerOf(b.people(), key, state, append(ruled, present.Scopes...), earlierEnd(until, present.Until), record.Revision, b.Now()),
		Prefetched: bundle.prefetchedRecords(),
		Used:       func(ctx context.Context) { b.noteUse(ctx, key, record) },
	}, nil
}

// callerOf returns the caller that a key authenticates. Scopes are the scopes of the keys to which the key is bound, until is the
// time at which the key stops working, and revision is the revision of its record.
func callerOf(
	people *directory.Directory, key *model.OwnedAccessKey, state directory.State, scopes []*model.Scope, until time.Time, revision int64, now time.Time,
) identity.Caller {
	caller := identity.New(OwnerOf(&key.Spec), groupsNow(key, state))
	caller.DisplayName = state.DisplayName
	if state.Managed {
		caller.OwnerObject = &model.AccessKeyOwner{UID: state.UID, Generation: state.Generation}
		caller.KeyNarrowed = len(key.Spec.Groups) > 0
		for _, group := range key.Spec.Groups {
			if !state.Has(group) && caller.InGroup(group) && grantable(group) {
				caller.KeyGranted = append(caller.KeyGranted, group)
			}
		}
	}
	caller.Scope, caller.KeyScopes = key.Spec.Scope, scopes
	caller.Key, caller.KeyUID, caller.KeyType = key.Name, string(key.UID), typeOf(key)
	caller.KeyExpires, caller.KeyRevision, caller.KeyLineage = until, revision, key.Status.Lineage
	caller.KeyOwned, caller.KeyRecent = len(key.OwnerReferences) > 0, isRecentSignIn(key, now)
	caller.Maker, caller.KeyEnds = createdBy(key).Owner, key.Spec.TTLSeconds > 0
	if people != nil {
		caller.Roles = people.Roles(caller)
	}
	return caller
}

// noteUse records the activity of a key if ActivityDue says so. It runs before the response, because a function may be frozen
// afterwards. A failure does not refuse the request.
func (b *Bearers) noteUse(ctx context.Context, key *model.OwnedAccessKey, record store.Record) {
	now := b.Now()
	if !ActivityDue(key, record.Activity, now) {
		return
	}
	activity := now.UTC().Truncate(time.Second)
	var expires time.Time
	if key.Spec.TTLAfterLastActivity {
		expires = b.Keys.Due(key, activity)
	}
	if err := b.Keys.Store.Touch(ctx, record, activity, expires); err != nil {
		b.Log.WarnContext(ctx, "noting the activity of an access key", "key", key.Name, "error", err.Error())
	}
}

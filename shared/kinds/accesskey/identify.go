package accesskey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"management.platform.sh/shared/auth"
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

// Identify implements auth.Bearers. A malformed key is refused without a request to the state. A valid key costs one round
// trip together with the keys to which it is bound, or two if it is new to this process, and one more for each owner of
// these keys: a key whose owners are gone is refused. Source: Spec 5.1, 5.2; ADR-0005, ADR-0021.
func (b *Bearers) Identify(ctx context.Context, bearer secret.String, prefetch string) (auth.Identified, error) {
	if CheckBearer(bearer) != nil {
		return auth.Identified{}, auth.ErrUnknown
	}
	digest, lines := Digest(bearer), b.lines()
	names := slices.Clone(lines.recall(digestOf + digest))
	if prefetch != "" {
		names = append(append(names, prefetch), lines.recall(nameOf+prefetch)...)
	}
	record, found, err := b.Keys.Store.GetWith(ctx, digest, names...)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return auth.Identified{}, auth.ErrUnknown
	case err != nil:
		return auth.Identified{}, fmt.Errorf("looking up a bearer: %w", err)
	}
	key, err := b.Keys.Parse(record)
	if err != nil {
		return auth.Identified{}, err
	}
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
	var scopes []*model.Scope
	if bounding := Bounding(key.Status.Lineage); len(bounding) > 0 {
		lines.learn(digestOf+digest, bounding)
		var within time.Time
		within, scopes, err = b.within(ctx, key, bounding, names, found)
		switch {
		case errors.Is(err, ErrBound):
			return auth.Identified{}, auth.ErrBound
		case err != nil:
			return auth.Identified{}, fmt.Errorf("looking up the lineage of an access key: %w", err)
		}
		until = earliest(until, within)
	}
	return auth.Identified{
		Caller: callerOf(key, scopes, until, record.Revision), Prefetched: found,
		Used: func(ctx context.Context) { b.noteUse(ctx, key, record) },
	}, nil
}

// callerOf is the caller that a key authenticates: within which scopes of the keys to which it is bound, until when, and by which
// revision of its record.
func callerOf(key *model.OwnedAccessKey, scopes []*model.Scope, until time.Time, revision int64) identity.Caller {
	caller := identity.New(OwnerOf(&key.Spec), key.Spec.Groups)
	caller.Scope, caller.KeyScopes = key.Spec.Scope, scopes
	caller.Key, caller.KeyUID, caller.KeyType = key.Name, string(key.UID), typeOf(key)
	caller.KeyExpires, caller.KeyRevision, caller.KeyLineage = until, revision, key.Status.Lineage
	caller.KeyOwned = len(key.OwnerReferences) > 0
	return caller
}

// within is Within for a key that is bound to keys of some names. Found has the records of names that exist; nil: they were not
// read.
func (b *Bearers) within(
	ctx context.Context, key *model.OwnedAccessKey, bounding, names []string, found map[string]store.Record,
) (time.Time, []*model.Scope, error) {
	if found == nil || slices.ContainsFunc(bounding, func(name string) bool { return !slices.Contains(names, name) }) {
		found = map[string]store.Record{}
		for record, err := range store.GetEach(ctx, b.Keys.Store, bounding) {
			if err != nil {
				return time.Time{}, nil, err
			}
			found[record.Name] = record
		}
	}
	return Within(ctx, b.Keys, key.Status.Lineage, found, b.Limits(), b.Now())
}

// lines is what the process remembers of lineages.
func (b *Bearers) lines() *lines {
	if own, ok := b.Keys.Rules.(*rules); ok {
		return own.lines
	}
	return nil
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

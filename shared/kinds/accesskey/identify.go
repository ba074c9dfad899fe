package accesskey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// trip, or two if it is new to this process, and one more for each of its owners: a key whose owners are gone is refused.
// Source: Spec 5.1, 5.2; ADR-0005.
func (b *Bearers) Identify(ctx context.Context, bearer secret.String, prefetch string) (auth.Identified, error) {
	if CheckBearer(bearer) != nil {
		return auth.Identified{}, auth.ErrUnknown
	}
	record, prefetched, err := b.Keys.Store.GetWith(ctx, Digest(bearer), prefetch)
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
	caller := identity.New(OwnerOf(&key.Spec), key.Spec.Groups)
	caller.Scope = key.Spec.Scope
	caller.Key, caller.KeyUID, caller.KeyType = key.Name, string(key.UID), key.Spec.Type
	caller.KeyExpires = until
	return auth.Identified{
		Caller: caller, Prefetched: prefetched,
		Used: func(ctx context.Context) { b.noteUse(ctx, key, record) },
	}, nil
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

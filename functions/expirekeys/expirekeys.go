// Package expirekeys removes access keys that are due, by the clock: those whose own lifetime or grace period is
// over and those that the platform's limits have ended. It may run late, twice at once or stop half-way: an expired key is
// refused whether it was removed or not, and each removal is one write that insists on what was read. It also
// forgets the answers that were kept for requests that are repeated. Source: Spec 3, 5.2; ADR-0005, ADR-0009, ADR-0017.
package expirekeys

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/idempotency"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

const (
	// batch is how many keys are looked at in one round trip.
	batch = 100
	// most is how many keys one run looks at; the next run goes on.
	most = 10_000
)

// Deps is what the operation needs.
type Deps struct {
	Keys *accesskey.Registry
	// Now is the clock.
	Now func() time.Time
	// Limits are the platform's on the life of keys.
	Limits func() accesskey.Limits
	// Attempts are the answers that are kept for requests that are repeated.
	Attempts *idempotency.Keeper
}

// Output counts what a run did.
type Output struct {
	// Removed are the keys that are gone now, Held those that finalizers keep, Later those that turned out
	// not to be due, Changed those that somebody else changed or removed meanwhile, Broken those that cannot
	// be read.
	Removed, Held, Later, Changed, Broken int
	// Forgotten are the answers that are no longer kept.
	Forgotten int
}

// sweeper is who removes keys: an admin without a key.
var sweeper = identity.New(identity.Owner{Kind: identity.Subject, Name: "expirekeys"}, []string{identity.Admins})

// Do removes what is due, up to a bound. A key that cannot be read is left alone, and the first of them is the error at
// the end. On any other error the output counts what was done before it, and the next run goes on from there.
func Do(ctx context.Context, deps Deps) (Output, error) {
	var done Output
	var broken error
	var err error
	if done.Forgotten, err = deps.Attempts.Sweep(ctx); err != nil {
		return done, err
	}
	looked := map[string]bool{}
	for len(looked) < most {
		now := deps.Now()
		var createdBy time.Time
		if limit := deps.Limits().Max; limit > 0 {
			createdBy = now.Add(-limit)
		}
		// What is still due after it was looked at stands at the head of the queue: read past it.
		due, err := deps.Keys.Store.Due(ctx, now, createdBy, batch+done.Held+done.Changed+done.Broken)
		if err != nil {
			return done, fmt.Errorf("looking for due access keys: %w", err)
		}
		news := 0
		for _, record := range due {
			if looked[record.Name] {
				continue
			}
			looked[record.Name] = true
			news++
			key, err := deps.Keys.Decode(record)
			if err != nil {
				done.Broken++
				broken = cmp.Or(broken, err)
				continue
			}
			if err := expire(ctx, deps, key, record, now, &done); err != nil {
				return done, err
			}
		}
		if news == 0 {
			break
		}
	}
	return done, broken
}

func expire(ctx context.Context, deps Deps, key *model.OwnedAccessKey, record store.Record, now time.Time, done *Output) error {
	ended := resource.Ended(key, now)
	if !ended && !accesskey.Expired(accesskey.Expiry(key, record.Activity, deps.Limits()), now) {
		if key.DeletionTimestamp != nil {
			// Due for the sake of what it owns, which is not this function's.
			done.Held++
			return nil
		}
		// A use that came between moved the end of the key: put it back in the queue where it belongs.
		done.Later++
		return deps.Keys.Store.Touch(ctx, record, time.Time{}, deps.Keys.Due(key, record.Activity))
	}
	answer, err := resource.Delete(ctx, deps.Keys, resource.DeleteInput{
		Caller: sweeper, Name: key.Name, UID: key.UID, ResourceVersion: key.ResourceVersion, GracePeriodSeconds: new(int64),
	})
	switch {
	case ended && apierrors.IsNotFound(err):
		// Reading it was enough.
		done.Removed++
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		done.Changed++
	case err != nil:
		return fmt.Errorf("removing access key %q: %w", key.Name, err)
	case answer.GetObjectKind().GroupVersionKind().Kind == accesskey.Definition.Kind:
		done.Held++
	default:
		done.Removed++
	}
	return nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "expirekeys",
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		return []slog.Attr{
			slog.Int("removed", done.Removed), slog.Int("held", done.Held),
			slog.Int("later", done.Later), slog.Int("changed", done.Changed),
			slog.Int("broken", done.Broken), slog.Int("forgotten", done.Forgotten),
		}
	}),
}

func open(env *frame.Environment) Deps {
	return Deps{
		Keys: env.AccessKeys(), Now: env.Now, Limits: env.KeyLimits,
		// To forget them needs no key.
		Attempts: &idempotency.Keeper{Store: env.Stores(idempotency.Resource), Now: env.Now},
	}
}

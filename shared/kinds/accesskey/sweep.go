package accesskey

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

const (
	// sweepPage is how many keys are read in one round trip.
	sweepPage = 100
	// maxSwept is how many keys one run looks at; the next run goes on.
	maxSwept = 10_000
)

// sweeper is the caller that removes the keys: an admin without a key, named after the operation that sweeps.
var sweeper = identity.New(identity.Owner{Kind: identity.Subject, Name: "expirekeys"}, []string{identity.Admins})

// Swept has the counts of a run.
type Swept struct {
	// Removed counts the keys that were removed. Held counts the keys that finalizers or dependents keep. Later counts the keys
	// that turned out not to be due. Changed counts the keys that another client changed or removed meanwhile. Broken counts the
	// keys that cannot be read.
	Removed, Held, Later, Changed, Broken int
}

// Sweep removes the keys that have expired by their own lifetime or the limits, and the keys whose grace period is over, up to a
// bound. It may run late, twice at once or not to its end: an expired key is refused whether it was removed or not, and each
// removal is one write that requires the revision that was read.
//
// Sweep skips keys that cannot be read, and returns the first such error at the end. On any other error, the counts are of the
// work that was done before it. Source: Spec 3, 5.2; ADR-0005, ADR-0009.
func Sweep(ctx context.Context, keys *Registry, limits func() Limits) (Swept, error) {
	var done Swept
	var broken error
	looked := map[string]bool{}
	for _, byCreated := range []bool{false, true} {
		for skip := 0; len(looked) < maxSwept; {
			now := keys.Now()
			until := now
			if byCreated {
				// During the grace period of a lower limit, the earlier, higher limit still ends keys.
				limit := limits().inForce(now)
				if limit <= 0 {
					break
				}
				until = now.Add(-limit)
			}
			due, err := keys.Store.Due(ctx, store.DueQuery{ByCreated: byCreated, Until: until, Skip: skip, Limit: sweepPage})
			if err != nil {
				return done, fmt.Errorf("looking for due access keys: %w", err)
			}
			if len(due) == 0 {
				break
			}
			for _, record := range due {
				if looked[record.Name] {
					// A key that is still due after the run has seen it is at the head of the queue.
					skip++
					continue
				}
				looked[record.Name] = true
				key, err := keys.Decode(record)
				if err != nil {
					done.Broken++
					broken = cmp.Or(broken, err)
					continue
				}
				if err := sweepKey(ctx, keys, key, record, limits(), now, &done); err != nil {
					return done, err
				}
			}
		}
	}
	return done, broken
}

// sweepKey removes one key, or puts it back into the queue at its due time, and counts it.
func sweepKey(ctx context.Context, keys *Registry, key *model.OwnedAccessKey, record store.Record, limits Limits, now time.Time, done *Swept) error {
	ended := gc.Deleted(key, now)
	if !ended && !Expired(Expiry(key, record.Activity, limits), now) {
		if key.DeletionTimestamp != nil {
			// The key waits for the objects that it owns, which the garbage collector removes.
			done.Held++
			return nil
		}
		// A use in the meantime moved the end of the key.
		done.Later++
		return keys.Store.Touch(ctx, record, time.Time{}, keys.Due(key, record.Activity))
	}
	answer, err := resource.Delete(ctx, keys, resource.DeleteInput{
		Caller: sweeper, Name: key.Name, UID: key.UID, ResourceVersion: key.ResourceVersion, GracePeriodSeconds: new(int64),
	})
	switch {
	case ended && apierrors.IsNotFound(err):
		// Delete has read the key, and reading a key that has ended removes it.
		done.Removed++
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		done.Changed++
	case err != nil:
		return fmt.Errorf("removing access key %q: %w", key.Name, err)
	case answer.GetObjectKind().GroupVersionKind().Kind == Definition.Kind:
		done.Held++
	default:
		done.Removed++
	}
	return nil
}

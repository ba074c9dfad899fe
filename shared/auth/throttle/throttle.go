// Package throttle counts attempts for all processes, such as wrong passwords for a user. An attempt is counted before anything is
// looked at, and is taken off again if it was right, so that many at the same time are no more than the limit. Source: ADR-0032.
package throttle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

// Throttle counts attempts in a state. It is safe for concurrent use.
type Throttle struct {
	// Records is where the counts are. Each expires with its latest entry.
	Records store.Store
	// Now is the clock.
	Now func() time.Time
	// Text is what a caller reads above a limit. It is the same for all counts.
	Text string
}

// Count is what is counted, and how much of it there may be.
type Count struct {
	// Parts name what is counted. The state has a digest of them.
	Parts []string
	// Most is how many attempts may count at a time.
	Most int
	// Window is how long an attempt counts.
	Window time.Duration
}

// name is the name of the record of a count.
func (c Count) name() string { return Name(c.Parts...) }

// Name returns a name for several texts.
func Name(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:])
}

// maxConflicts bounds how often a count is written anew while others write it.
const maxConflicts = 64

// Take counts an attempt in all counts, unless one of them is full. Giving it back takes the attempt off again.
//
// Errors: TooManyRequests, with the same text for all; those of the store. What was counted before an error stays counted.
func (t *Throttle) Take(ctx context.Context, counts ...Count) (giveBack func(context.Context), err error) {
	// An attempt that a dry run makes counts as well.
	ctx = store.Writable(ctx)
	now := t.Now()
	refs := make([]store.Ref, len(counts))
	for i, one := range counts {
		refs[i] = store.Ref{Resource: t.Records.Name(), Name: one.name()}
	}
	found, err := t.Records.GetRefs(ctx, refs...)
	if err != nil {
		return nil, fmt.Errorf("reading the counts of attempts: %w", err)
	}
	for i, one := range counts {
		times, err := t.times(one, found[refs[i]], now)
		if err != nil {
			return nil, err
		}
		if len(times) >= one.Most {
			return nil, t.full(one, times, now)
		}
	}
	for _, one := range counts {
		if err := t.change(ctx, one, now, func(times []int64) ([]int64, error) {
			if len(times) >= one.Most {
				return nil, t.full(one, times, now)
			}
			return append(times, now.UnixMilli()), nil
		}); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) {
		ctx = store.Writable(ctx)
		for _, one := range counts {
			// An attempt that cannot be taken off counts until it expires.
			_ = t.change(ctx, one, now, func(times []int64) ([]int64, error) {
				if i := slices.Index(times, now.UnixMilli()); i >= 0 {
					times = slices.Delete(times, i, i+1)
				}
				return times, nil
			})
		}
	}, nil
}

// times returns the attempts of a record that still count, in Unix milliseconds.
func (t *Throttle) times(one Count, record store.Record, now time.Time) ([]int64, error) {
	if len(record.Object) == 0 {
		return nil, nil
	}
	var times []int64
	if err := json.Unmarshal(record.Object, &times); err != nil {
		return nil, fmt.Errorf("reading a count of attempts: %w", err)
	}
	first := now.Add(-one.Window).UnixMilli()
	return slices.DeleteFunc(times, func(at int64) bool { return at <= first }), nil
}

// change replaces the attempts of a count.
func (t *Throttle) change(ctx context.Context, one Count, now time.Time, next func([]int64) ([]int64, error)) error {
	for range maxConflicts {
		record, err := t.Records.Get(ctx, one.name())
		fresh := errors.Is(err, store.ErrNotFound)
		if err != nil && !fresh {
			return fmt.Errorf("reading a count of attempts: %w", err)
		}
		times, err := t.times(one, record, now)
		if err != nil {
			return err
		}
		if times, err = next(times); err != nil {
			return err
		}
		text, err := json.Marshal(times)
		if err != nil {
			return fmt.Errorf("encoding a count of attempts: %w", err)
		}
		record.Object, record.Expires = text, now.Add(one.Window)
		if fresh {
			record.Name, record.Created = one.name(), now
			_, err = t.Records.Create(ctx, record)
		} else {
			_, err = t.Records.Update(ctx, record)
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("writing a count of attempts: %w", err)
		}
	}
	return t.refuse(time.Second)
}

// full refuses an attempt until the oldest one that counts is forgotten.
func (t *Throttle) full(one Count, times []int64, now time.Time) error {
	return t.refuse(time.UnixMilli(slices.Min(times)).Add(one.Window).Sub(now))
}

func (t *Throttle) refuse(wait time.Duration) error {
	return apierror.TooMany(t.Text, max(1, int32(wait/time.Second)))
}

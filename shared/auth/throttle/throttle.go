// Package throttle counts attempts for all processes, such as wrong passwords for a user. An attempt is counted before anything is
// looked at, and is taken off again if it was right, so that many at the same time are no more than the limit. Source: ADR-0032.
package throttle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/digest"
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

// Count names counted attempts, with their limit.
type Count struct {
	// Parts name what is counted. The state has a digest of them.
	Parts []string
	// Limit is how many attempts may count at a time.
	Limit int
	// Window is how long an attempt counts.
	Window time.Duration
}

// name is the name of the record of a count.
func (c Count) name() string { return digest.Sum(c.Parts...) }

// Take counts an attempt in all counts, unless one of them is full. The function giveBack removes the attempt from the counts.
//
// Errors: TooManyRequests, with the same text for all; the store's errors. Attempts that were counted before an error stay
// counted.
func (t *Throttle) Take(ctx context.Context, counts ...Count) (giveBack func(context.Context), err error) {
	// An attempt that a dry run makes counts as well.
	ctx = store.Writable(ctx)
	now := t.Now()
	refs := make([]store.Ref, len(counts))
	for i, count := range counts {
		refs[i] = store.Ref{Resource: t.Records.Name(), Name: count.name()}
	}
	records, err := t.Records.GetRefs(ctx, refs...)
	if err != nil {
		return nil, fmt.Errorf("reading the counts of attempts: %w", err)
	}
	for i, count := range counts {
		times, err := t.countedAttempts(count, records[refs[i]], now)
		if err != nil {
			return nil, err
		}
		if len(times) >= count.Limit {
			return nil, t.refuseFull(count, times, now)
		}
	}
	for _, count := range counts {
		if err := t.updateCount(ctx, count, now, func(times []int64) ([]int64, error) {
			if len(times) >= count.Limit {
				return nil, t.refuseFull(count, times, now)
			}
			return append(times, now.UnixMilli()), nil
		}); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) {
		ctx = store.Writable(ctx)
		for _, count := range counts {
			// An attempt that cannot be taken off counts until it expires.
			_ = t.updateCount(ctx, count, now, func(times []int64) ([]int64, error) {
				if i := slices.Index(times, now.UnixMilli()); i >= 0 {
					times = slices.Delete(times, i, i+1)
				}
				return times, nil
			})
		}
	}, nil
}

// countedAttempts returns the attempts of a record that still count, in Unix milliseconds.
func (t *Throttle) countedAttempts(count Count, record store.Record, now time.Time) ([]int64, error) {
	if len(record.Object) == 0 {
		return nil, nil
	}
	var times []int64
	if err := json.Unmarshal(record.Object, &times); err != nil {
		return nil, fmt.Errorf("reading a count of attempts: %w", err)
	}
	oldest := now.Add(-count.Window).UnixMilli()
	return slices.DeleteFunc(times, func(at int64) bool { return at <= oldest }), nil
}

// updateCount replaces the attempts of a count.
func (t *Throttle) updateCount(ctx context.Context, count Count, now time.Time, change func([]int64) ([]int64, error)) error {
	err := store.Retry(ctx, nil, func() error {
		record, err := t.Records.Get(ctx, count.name())
		isNew := errors.Is(err, store.ErrNotFound)
		if err != nil && !isNew {
			return fmt.Errorf("reading a count of attempts: %w", err)
		}
		times, err := t.countedAttempts(count, record, now)
		if err != nil {
			return err
		}
		if times, err = change(times); err != nil {
			return err
		}
		text, err := json.Marshal(times)
		if err != nil {
			return fmt.Errorf("encoding a count of attempts: %w", err)
		}
		record.Object, record.Expires = text, now.Add(count.Window)
		if isNew {
			record.Name, record.Created = count.name(), now
			_, err = t.Records.Create(ctx, record)
		} else {
			_, err = t.Records.Update(ctx, record)
		}
		if err != nil {
			return fmt.Errorf("writing a count of attempts: %w", err)
		}
		return nil
	})
	if store.Outrun(err) {
		return t.refuse(time.Second)
	}
	return err
}

// refuseFull refuses an attempt until the oldest counted attempt expires.
func (t *Throttle) refuseFull(count Count, times []int64, now time.Time) error {
	return t.refuse(time.UnixMilli(slices.Min(times)).Add(count.Window).Sub(now))
}

func (t *Throttle) refuse(wait time.Duration) error {
	return apierror.TooMany(t.Text, max(1, int32(wait/time.Second)))
}

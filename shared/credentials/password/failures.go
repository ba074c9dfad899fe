package password

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

// failures counts wrong passwords, for all processes. An attempt is counted before the password is looked at, and is taken off again if
// it is right, so that many at the same time are no more than the limit. Source: ADR-0032.
type failures struct {
	records store.Store
	now     func() time.Time
}

// count is what a count is of, and how much it may be.
type count struct {
	name string
	most int
}

// ofUser counts the attempts for a user name, whether or not there is such a user.
func ofUser(name string) count { return count{countName("user", name), limits.PasswordFailures} }

func countName(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:])
}

// maxConflicts bounds how often a count is written anew while others write it.
const maxConflicts = 64

// take counts an attempt in all counts, unless one of them is full. Giving it back takes the attempt off again.
//
// Errors: TooManyRequests, with the same text for all; those of the store. What was counted before an error stays counted.
func (f *failures) take(ctx context.Context, counts ...count) (giveBack func(context.Context), err error) {
	now := f.now()
	refs := make([]store.Ref, len(counts))
	for i, one := range counts {
		refs[i] = store.Ref{Resource: f.records.Name(), Name: one.name}
	}
	found, err := f.records.GetRefs(ctx, refs...)
	if err != nil {
		return nil, fmt.Errorf("reading the counts of wrong passwords: %w", err)
	}
	for i, one := range counts {
		times, err := f.times(found[refs[i]], now)
		if err != nil {
			return nil, err
		}
		if len(times) >= one.most {
			return nil, f.tooMany(times, now)
		}
	}
	for _, one := range counts {
		if err := f.change(ctx, one, now, func(times []int64) ([]int64, error) {
			if len(times) >= one.most {
				return nil, f.tooMany(times, now)
			}
			return append(times, now.UnixMilli()), nil
		}); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) {
		for _, one := range counts {
			// An attempt that cannot be taken off counts until it expires.
			_ = f.change(ctx, one, now, func(times []int64) ([]int64, error) {
				if i := slices.Index(times, now.UnixMilli()); i >= 0 {
					times = slices.Delete(times, i, i+1)
				}
				return times, nil
			})
		}
	}, nil
}

// times returns the attempts of a record that still count, in Unix milliseconds.
func (f *failures) times(record store.Record, now time.Time) ([]int64, error) {
	if len(record.Object) == 0 {
		return nil, nil
	}
	var times []int64
	if err := json.Unmarshal(record.Object, &times); err != nil {
		return nil, fmt.Errorf("reading a count of wrong passwords: %w", err)
	}
	first := now.Add(-limits.PasswordFailuresWindow).UnixMilli()
	return slices.DeleteFunc(times, func(at int64) bool { return at <= first }), nil
}

// change replaces the attempts of a count.
func (f *failures) change(ctx context.Context, one count, now time.Time, next func([]int64) ([]int64, error)) error {
	for range maxConflicts {
		record, err := f.records.Get(ctx, one.name)
		fresh := errors.Is(err, store.ErrNotFound)
		if err != nil && !fresh {
			return fmt.Errorf("reading a count of wrong passwords: %w", err)
		}
		times, err := f.times(record, now)
		if err != nil {
			return err
		}
		if times, err = next(times); err != nil {
			return err
		}
		text, err := json.Marshal(times)
		if err != nil {
			return fmt.Errorf("encoding a count of wrong passwords: %w", err)
		}
		record.Object, record.Expires = text, now.Add(limits.PasswordFailuresWindow)
		if fresh {
			record.Name, record.Created = one.name, now
			_, err = f.records.Create(ctx, record)
		} else {
			_, err = f.records.Update(ctx, record)
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("writing a count of wrong passwords: %w", err)
		}
	}
	return tooMany(time.Second)
}

// tooMany refuses an attempt until the oldest one that counts is forgotten.
func (f *failures) tooMany(times []int64, now time.Time) error {
	return tooMany(time.UnixMilli(slices.Min(times)).Add(limits.PasswordFailuresWindow).Sub(now))
}

func tooMany(wait time.Duration) error {
	return apierror.TooMany("too many wrong passwords: try again later", max(1, int32(wait/time.Second)))
}

package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"management.platform.sh/shared/state/store"
)

// A write is repeated while other writers are faster, up to a bound, and not after anything else.
func TestRetry(t *testing.T) {
	t.Parallel()
	other := errors.New("away")
	for _, row := range []struct {
		name  string
		fails int
		err   error
		calls int
		want  error
	}{
		{"at once", 0, nil, 1, nil},
		{"after others", 5, store.ErrConflict, 6, nil},
		{"wrapped", 2, fmt.Errorf("writing: %w", store.ErrExists), 3, nil},
		{"gone", 2, store.ErrNotFound, 3, nil},
		{"another error", 1, other, 1, other},
		{"always outrun", 1000, store.ErrConflict, 32, store.ErrConflict},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				err := store.Retry(t.Context(), nil, func() error {
					if calls++; calls <= row.fails {
						return row.err
					}
					return nil
				})
				if calls != row.calls || !errors.Is(err, row.want) {
					t.Errorf("%d calls, %v", calls, err)
				}
			})
		})
	}
}

// Retry stops when the context ends, and callers can decide which errors are retried.
func TestRetryEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	outrun := func() error { calls++; return store.ErrConflict }
	if err := store.Retry(ctx, nil, outrun); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if err := store.Retry(t.Context(), func(error) bool { return false }, outrun); !errors.Is(err, store.ErrConflict) || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// attempts bounds how often Retry calls a write. If several writers depend on the same record, one of them succeeds in each
// round.
const attempts = 32

// Retry calls write until it succeeds, or fails with an error that outrun does not attribute to other writers. A nil outrun
// stands for Outrun. Each call of write must read the records on which it depends again. The pauses between the calls are random,
// so that writers which collided do not collide again.
//
// It returns the last error of write, after a bounded number of calls, or the error of the context. It is safe for concurrent
// use.
func Retry(ctx context.Context, outrun func(error) bool, write func() error) error {
	if outrun == nil {
		outrun = Outrun
	}
	for attempt := 1; ; attempt++ {
		err := write()
		if err == nil || attempt == attempts || !outrun(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller knows what it was doing
		case <-time.After(rand.N(time.Duration(attempt) * time.Millisecond)): //nolint:gosec // a pause is no secret
		}
	}
}

// Outrun reports whether a write failed because another writer of the same record was faster: the record was changed, created or deleted
// since it was read.
func Outrun(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrExists) || errors.Is(err, ErrNotFound)
}

// Package idempotency makes a request that is repeated with the same key answer the same, so that a client who lost an
// answer does not breed a second credential. It keeps the answer, sealed, for ten minutes; and from the beginning on a
// seed, so that an attempt that died half-way is done again with the same random bytes. Source: ADR-0017.
//
// It knows no HTTP: package frame reads the header and writes the answer.
package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Resource is the name of the state in which attempts are kept.
const Resource = "idempotency"

const (
	// Lifetime is how long an answer is given again, from the first attempt on.
	Lifetime = 10 * time.Minute
	// Lease is how long an attempt may be under way before another one takes over: longer than a request lasts.
	Lease = 65 * time.Second
	// maxTries is how often an attempt that changes meanwhile is looked at again.
	maxTries = 4
	// batch and maxSwept are how many attempts one run of the schedule removes at a time, and in all.
	batch    = 100
	maxSwept = 10_000
)

// Errors of Begin, beside those of store.Store and encryption.Keyring.
var (
	// ErrOther: the key was used for another request.
	ErrOther = errors.New("the key was used with another request")
	// ErrUnderWay: the same request is being served.
	ErrUnderWay = errors.New("the same request is being served")
)

// The states of an attempt.
const (
	begun = "begun"
	left  = "left"
	done  = "done"
)

// attempt is what is stored.
type attempt struct {
	State string `json:"state"`
	// Fingerprint is the request.
	Fingerprint string `json:"fingerprint"`
	// Begun is when the last attempt began, in milliseconds.
	Begun int64 `json:"begun"`
	// Seed is what random bytes come from, and Answer what was answered; both sealed.
	Seed   string `json:"seed"`
	Answer string `json:"answer,omitempty"`
}

// Store keeps attempts. It is safe for concurrent use.
type Store struct {
	Records store.Store
	Keyring *encryption.Keyring
	Now     func() time.Time
}

// Attempt is a request that is being served under a key. One of Finish and Leave ends it.
type Attempt struct {
	// Random gives the same bytes at each attempt under this key.
	Random io.Reader

	store  *Store
	record store.Record
	state  attempt
}

// Begin begins to serve a request, or returns the answer that it was given before. Who names the caller, and everything
// that the key is to be unique within; fingerprint is the request.
//
// Errors: ErrOther, ErrUnderWay, and those of the store and the keyring. Then nothing is to be done.
func (s *Store) Begin(ctx context.Context, who, key, fingerprint string) (*Attempt, []byte, error) {
	name := digest(who, key)
	for range maxTries {
		now := s.Now()
		record, err := s.Records.Get(ctx, name)
		switch {
		case errors.Is(err, store.ErrNotFound):
			record = store.Record{}
		case err != nil:
			return nil, nil, err
		}
		var made *Attempt
		if record.Name == "" || !now.Before(record.Expires) {
			made, err = s.fresh(name, fingerprint, now)
		} else {
			var answer []byte
			if made, answer, err = s.known(record, fingerprint, now); answer != nil {
				return nil, answer, nil
			}
		}
		if err != nil {
			return nil, nil, err
		}
		made.record.Revision = record.Revision
		err = made.write(ctx)
		switch {
		case err == nil:
			return made, nil, nil
		case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
			// Somebody else was faster: see what he did.
		default:
			return nil, nil, err
		}
	}
	return nil, nil, ErrUnderWay
}

// fresh is the first attempt under a key.
func (s *Store) fresh(name, fingerprint string, now time.Time) (*Attempt, error) {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	sealed, err := s.Keyring.Seal(seed[:], place(name, "seed"))
	if err != nil {
		return nil, err
	}
	return &Attempt{
		Random: mathrand.NewChaCha8(seed), store: s,
		record: store.Record{Name: name, Created: now, Expires: now.Add(Lifetime)},
		state:  attempt{State: begun, Fingerprint: fingerprint, Begun: now.UnixMilli(), Seed: sealed},
	}, nil
}

// known goes on with an attempt of before, or returns its answer.
func (s *Store) known(record store.Record, fingerprint string, now time.Time) (*Attempt, []byte, error) {
	var state attempt
	if err := json.Unmarshal(record.Object, &state); err != nil {
		return nil, nil, fmt.Errorf("reading an attempt: %w", err)
	}
	switch {
	case state.Fingerprint != fingerprint:
		return nil, nil, ErrOther
	case state.State == done:
		answer, err := s.Keyring.Open(state.Answer, place(record.Name, "answer"))
		return nil, answer, err
	case state.State == begun && now.Sub(time.UnixMilli(state.Begun)) < Lease:
		return nil, nil, ErrUnderWay
	}
	seed, err := s.Keyring.Open(state.Seed, place(record.Name, "seed"))
	if err != nil {
		return nil, nil, err
	}
	if len(seed) != 32 {
		return nil, nil, encryption.ErrAltered
	}
	state.State, state.Begun = begun, now.UnixMilli()
	return &Attempt{Random: mathrand.NewChaCha8([32]byte(seed)), store: s, record: record, state: state}, nil, nil
}

// write stores the attempt as it is now.
func (a *Attempt) write(ctx context.Context) error {
	var err error
	if a.record.Object, err = json.Marshal(a.state); err != nil {
		return fmt.Errorf("encoding an attempt: %w", err)
	}
	if a.record.Revision == 0 {
		a.record.Revision, err = a.store.Records.Create(ctx, a.record)
	} else {
		a.record.Revision, err = a.store.Records.Update(ctx, a.record)
	}
	return err
}

// Finish keeps the answer, which is not empty, to be given again.
func (a *Attempt) Finish(ctx context.Context, answer []byte) error {
	sealed, err := a.store.Keyring.Seal(answer, place(a.record.Name, "answer"))
	if err != nil {
		return err
	}
	a.state.State, a.state.Answer = done, sealed
	return a.write(ctx)
}

// Leave ends an attempt without an answer. Where nothing can have been done, the key is free for any request; otherwise
// the same request may be made again, and goes on where this one stopped.
func (a *Attempt) Leave(ctx context.Context, nothingDone bool) error {
	if nothingDone {
		_, err := a.store.Records.Delete(ctx, a.record.Name, a.record.Revision)
		return err
	}
	a.state.State = left
	return a.write(ctx)
}

// Sweep removes the attempts whose time is over, up to a bound, and their events. It returns how many.
func (s *Store) Sweep(ctx context.Context) (int, error) {
	now := s.Now()
	if err := s.Records.Trim(ctx, now.Add(-Lifetime)); err != nil {
		return 0, fmt.Errorf("trimming the events of attempts: %w", err)
	}
	removed := 0
	for removed < maxSwept {
		due, err := s.Records.Due(ctx, now, time.Time{}, batch)
		if err != nil {
			return removed, fmt.Errorf("looking for attempts that are over: %w", err)
		}
		before := removed
		for _, record := range due {
			switch _, err := s.Records.Delete(ctx, record.Name, record.Revision); {
			case err == nil:
				removed++
			case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound):
				return removed, fmt.Errorf("removing an attempt that is over: %w", err)
			}
		}
		if removed == before {
			break
		}
	}
	return removed, nil
}

// place is where a part of an attempt rests. Source: ADR-0018.
func place(name, part string) string { return Resource + "/" + name + "/" + part }

// digest is one name for several texts. Keys of clients are not seen in the state.
func digest(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:])
}

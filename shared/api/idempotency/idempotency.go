// Package idempotency gives a request that is repeated with the same key the same answer, so that a client that lost an
// answer does not create a second credential. It stores a sealed seed before the first attempt, so that a retry after a
// crash uses the same random bytes, and the sealed answer after it, both for ten minutes. Source: ADR-0017.
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
	// Lifetime is how long an answer is repeated, from the first attempt on.
	Lifetime = 10 * time.Minute
	// Lease is how long an attempt may run before another one takes over: longer than any request.
	Lease = 65 * time.Second
	// maxTries bounds how often Begin reads an attempt that others change meanwhile.
	maxTries = 4
	// batch and maxSwept bound how many attempts one run of the schedule removes at a time, and in total.
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
	// Begun is when the last attempt began, in Unix milliseconds.
	Begun int64 `json:"begun"`
	// Seed is the source of random bytes, and Answer the answer; both are sealed.
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

// Begin begins an attempt, or returns the stored answer. Keys are unique within who, which names the caller;
// fingerprint identifies the request.
//
// Errors: ErrOther, ErrUnderWay, and those of the store and the keyring. The request must not be served then.
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
			// Another attempt was faster: read again.
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

// known takes over an earlier attempt, or returns its answer.
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

// write stores the current state of the attempt.
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

// Finish stores the answer, which is not empty, for repeated requests.
func (a *Attempt) Finish(ctx context.Context, answer []byte) error {
	sealed, err := a.store.Keyring.Seal(answer, place(a.record.Name, "answer"))
	if err != nil {
		return err
	}
	a.state.State, a.state.Answer = done, sealed
	return a.write(ctx)
}

// Leave ends an attempt without an answer. When nothing can have been done, the key is free for any request; otherwise
// the same request may be repeated, and continues where this one stopped.
func (a *Attempt) Leave(ctx context.Context, nothingDone bool) error {
	if nothingDone {
		_, err := a.store.Records.Delete(ctx, a.record.Name, a.record.Revision)
		return err
	}
	a.state.State = left
	return a.write(ctx)
}

// Sweep removes attempts that have expired, up to a bound, and trims their events. It returns how many it removed.
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

// place is the context that a part of an attempt is sealed for. Source: ADR-0018.
func place(name, part string) string { return Resource + "/" + name + "/" + part }

// digest makes one name of several texts. The keys of clients do not appear in the state.
func digest(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:])
}

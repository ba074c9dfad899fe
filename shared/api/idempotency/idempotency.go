// Package idempotency returns the same response to a request that is repeated with the same key, so that a client that has
// lost a response does not create a second credential. Before the first attempt it stores an encrypted seed, so that a retry
// after a crash uses the same random bytes. After the attempt it stores the encrypted response. It keeps both for ten minutes.
// Source: ADR-0017.
//
// It knows no HTTP: package frame reads the header and writes the response.
package idempotency

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Resource is the name under which attempts are stored in the state.
const Resource = "idempotency"

const (
	// Lifetime is how long a response is repeated, counted from the first attempt.
	Lifetime = 10 * time.Minute
	// Lease is how long an attempt may run before another attempt takes over. It is longer than any request.
	Lease = 65 * time.Second
	// batch and maxSwept are the maximum numbers of attempts that Sweep removes at a time and in total.
	batch    = 100
	maxSwept = 10_000
)

// Errors of Begin, besides the errors of store.Store and encryption.Keyring.
var (
	// ErrOther says that the key has been used for another request.
	ErrOther = errors.New("the key has been used for another request")
	// ErrUnderWay says that the same request is still being served.
	ErrUnderWay = errors.New("the same request is still being served")
)

// The states of an attempt.
const (
	begun = "begun"
	left  = "left"
	done  = "done"
)

// attempt is an attempt in the form in which it is stored.
type attempt struct {
	State string `json:"state"`
	// Fingerprint identifies the content of the request.
	Fingerprint string `json:"fingerprint"`
	// Begun is the time at which the last attempt began, in Unix milliseconds.
	Begun int64 `json:"begun"`
	// Seed is the seed of the random bytes. Answer is the response; empty until there is one. Both are encrypted.
	Seed   string `json:"seed"`
	Answer string `json:"answer,omitempty"`
}

// Store stores attempts. It is safe for concurrent use. Sweep needs no Keyring.
type Store struct {
	Records store.Store
	Keyring *encryption.Keyring
	Now     func() time.Time
	// Owner is the owner of new attempts, and Quota bounds what each owner may have. An answer that is stored for an attempt
	// counts, but is not refused: it is there already.
	Owner string
	Quota store.Quota
}

// Attempt is a request that is being served under a key. Finish or Leave ends it.
type Attempt struct {
	// Random returns the same bytes in each attempt under this key.
	Random io.Reader

	store  *Store
	record store.Record
	state  attempt
}

// Begin begins an attempt or, if the request has been answered, returns the stored response. Keys are unique within who, which
// names the caller. Fingerprint identifies the content of the request.
//
// Errors: ErrOther, ErrUnderWay, and the errors of the store, such as ErrQuota, and of the keyring. After an error, the request must
// not be served.
func (s *Store) Begin(ctx context.Context, who, key, fingerprint string) (*Attempt, []byte, error) {
	name := digest.Sum(who, key)
	var attempt *Attempt
	var answer []byte
	err := store.Retry(ctx, nil, func() error {
		now := s.Now()
		record, err := s.Records.Get(ctx, name)
		switch {
		case errors.Is(err, store.ErrNotFound):
			record = store.Record{}
		case err != nil:
			return err
		}
		if record.Name == "" || !now.Before(record.Expires) {
			attempt, err = s.fresh(name, fingerprint, now)
		} else {
			attempt, answer, err = s.known(record, fingerprint, now)
		}
		if err != nil || answer != nil {
			return err
		}
		attempt.record.Revision = record.Revision
		return attempt.write(ctx)
	})
	switch {
	case store.Outrun(err):
		return nil, nil, ErrUnderWay
	case err != nil:
		return nil, nil, err
	case answer != nil:
		return nil, answer, nil
	default:
		return attempt, nil, nil
	}
}

// fresh returns the first attempt under a key.
func (s *Store) fresh(name, fingerprint string, now time.Time) (*Attempt, error) {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	sealed, err := s.Keyring.Seal(seed[:], place(name, "seed"))
	if err != nil {
		return nil, err
	}
	return &Attempt{
		Random: mathrand.NewChaCha8(seed), store: s,
		record: store.Record{Name: name, Created: now, Expires: now.Add(Lifetime), Owner: s.Owner, Quota: s.Quota},
		state:  attempt{State: begun, Fingerprint: fingerprint, Begun: now.UnixMilli(), Seed: sealed},
	}, nil
}

// known takes over an earlier attempt, or returns its response.
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
	a.record.Quota = store.Quota{}
	return err
}

// Finish stores the response for repeated requests. It must not be empty.
func (a *Attempt) Finish(ctx context.Context, answer []byte) error {
	sealed, err := a.store.Keyring.Seal(answer, place(a.record.Name, "answer"))
	if err != nil {
		return err
	}
	a.state.State, a.state.Answer = done, sealed
	return a.write(ctx)
}

// Leave ends an attempt without a response. If the attempt has certainly done nothing, the key can be used for any request.
// Otherwise only the same request can be repeated, with the same random bytes.
func (a *Attempt) Leave(ctx context.Context, nothingDone bool) error {
	if nothingDone {
		_, err := a.store.Records.Delete(ctx, a.record.Name, a.record.Revision)
		return err
	}
	a.state.State = left
	return a.write(ctx)
}

// Sweep removes expired attempts, up to a maximum, and trims their events. It returns the number of removed attempts, also
// together with an error. Errors: the errors of the store.
func (s *Store) Sweep(ctx context.Context) (int, error) {
	now := s.Now()
	if err := s.Records.Trim(ctx, now.Add(-Lifetime)); err != nil {
		return 0, fmt.Errorf("trimming the events of attempts: %w", err)
	}
	removed := 0
	for removed < maxSwept {
		due, err := s.Records.Due(ctx, store.DueQuery{Until: now, Limit: batch})
		if err != nil {
			return removed, fmt.Errorf("looking for expired attempts: %w", err)
		}
		before := removed
		for _, record := range due {
			switch _, err := s.Records.Delete(ctx, record.Name, record.Revision); {
			case err == nil:
				removed++
			case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound):
				return removed, fmt.Errorf("removing an expired attempt: %w", err)
			}
		}
		if removed == before {
			break
		}
	}
	return removed, nil
}

// place returns the context for which a part of an attempt is encrypted. Source: ADR-0018.
func place(name, part string) string { return Resource + "/" + name + "/" + part }

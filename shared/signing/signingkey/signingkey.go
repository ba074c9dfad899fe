// Package signingkey manages the keys that sign direct cluster endpoint tokens: which key signs, which keys are
// published for verifiers, and when the next key takes over. All keys are one record in the state, encrypted as a
// whole, so that a change of several keys is one write, and write access to the state alone adds no key. Operators who
// manage the keys themselves give them as PEM; then nothing is stored here. Source: Spec 2.4, 5.3; ADR-0011.
//
// It issues no tokens. Of tokens, it only knows the maximum lifetime.
package signingkey

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

const (
	// Resource is the resource of the record in the state.
	Resource = "signingkeys"
	// recordName is the name of the record, and place the place for which the record is encrypted.
	recordName = "ring"
	place      = Resource + "/" + recordName
)

// refreshAfter is how long a process uses the keys before it reads them again: it notices a change by another process
// within that time. Source: ADR-0011.
const refreshAfter = 10 * time.Second

// renewAfter is the same time for callers that need the latest keys. It bounds how often invented kids cause a read.
const renewAfter = time.Second

// Settings say how keys are made and rotated. Source: ADR-0011.
type Settings struct {
	// Algorithm is ES256 or RS256. A change takes effect with the next rotation, which begins at once.
	Algorithm string
	// RotateEvery is how long a key signs.
	RotateEvery time.Duration
	// PublishBefore is how long a key is published before it signs. It must be longer than verifiers may cache what is
	// published.
	PublishBefore time.Duration
	// MaxTTL is the longest life of a token.
	MaxTTL time.Duration
	// PEM holds keys that the operator manages; the first one signs. Empty: the keys are in the state, and the other
	// settings apply.
	PEM secret.String
}

// Set has the keys at one moment. It is shared and never changed.
type Set struct {
	Signing *token.SigningKey
	// Public are the keys to publish; the key that signs is the first.
	Public token.JWKS
}

// ErrUnknown means that no key has the kid.
var ErrUnknown = errors.New("no signing key has that kid")

// ErrManaged means that the operator manages the keys as PEM, and must change them there.
var ErrManaged = errors.New("the signing keys come from PLATFORM_SIGNING_KEY and are changed there")

// Keys are the signing keys of the platform. They are safe for concurrent use.
type Keys struct {
	state    store.Store
	keyring  func(context.Context) (*encryption.Keyring, error)
	now      func() time.Time
	settings Settings
	// fixed are the keys that were given as PEM, and fixedErr is the error in them.
	fixed    *Set
	fixedErr error

	mu   sync.Mutex
	set  *Set
	text []byte
	read time.Time
}

// New returns the keys in a store. Keyring returns the keys that decrypt the record; it is called at the first use.
func New(state store.Store, keyring func(context.Context) (*encryption.Keyring, error), now func() time.Time, settings Settings) *Keys {
	k := &Keys{state: state, keyring: keyring, now: now, settings: settings}
	if settings.PEM != "" {
		k.fixed, k.fixedErr = parsePEM(settings.PEM)
	}
	return k
}

// Current returns the keys as they were within the last ten seconds. If there are none yet, it makes the first keys; if
// several processes do so at once, one of them wins.
//
// It returns the store's errors, and the errors of encryption if the keys cannot be decrypted. It then makes no keys.
func (k *Keys) Current(ctx context.Context) (*Set, error) { return k.readWithin(ctx, refreshAfter) }

// Latest returns the keys as they were within the last second. It is for callers that sign, or look up a kid that
// Current does not have. However many callers there are, a process reads the keys at most once a second. Source:
// ADR-0022.
func (k *Keys) Latest(ctx context.Context) (*Set, error) { return k.readWithin(ctx, renewAfter) }

// readWithin returns the keys as they were within some time.
func (k *Keys) readWithin(ctx context.Context, age time.Duration) (*Set, error) {
	if k.settings.PEM != "" {
		return k.fixed, k.fixedErr
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if passed := now.Sub(k.read); k.set != nil && passed >= 0 && passed < age {
		return k.set, nil
	}
	record, err := k.state.Get(ctx, recordName)
	if errors.Is(err, store.ErrNotFound) {
		if _, err = k.change(ctx, func(r ring, now time.Time) (ring, error) { return r.advance(now, k.settings, false) }); err != nil {
			return nil, err
		}
		record, err = k.state.Get(ctx, recordName)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the signing keys: %w", err)
	}
	if k.set == nil || !bytes.Equal(k.text, record.Object) {
		opened, _, err := k.open(ctx, record)
		if err != nil {
			return nil, err
		}
		set, err := opened.set()
		if err != nil {
			return nil, err
		}
		k.set, k.text = set, record.Object
	}
	k.read = now
	return k.set, nil
}

// Report has the keys after a change.
type Report struct {
	// Keys are all keys, in the order in which they were made.
	Keys []Key
	// Changed reports whether keys were added or removed, or changed their state.
	Changed bool
	// Resealed reports whether the keys were encrypted with another key before and have been encrypted again.
	Resealed bool
}

// Rotate makes the changes that are due, and reports the keys after them. It also encrypts the keys again if the first
// encryption key has changed. It may run late, twice at once, or be interrupted. Hurry makes the next key take over
// once it has been published long enough. It returns the errors of Current, and ErrManaged for a hurry with keys that
// the operator manages.
func (k *Keys) Rotate(ctx context.Context, hurry bool) (Report, error) {
	if k.settings.PEM != "" {
		if hurry {
			return Report{}, ErrManaged
		}
		return Report{}, k.fixedErr
	}
	report, err := k.change(ctx, func(r ring, now time.Time) (ring, error) { return r.advance(now, k.settings, hurry) })
	if err != nil {
		return Report{}, err
	}
	return report, k.trim(ctx)
}

// Taint withdraws a key at once: it no longer signs, it is no longer published, and its private half is deleted.
// Another key takes its place. Processes notice within ten seconds, verifiers when they fetch the published keys again.
// It returns ErrUnknown, ErrManaged, and the errors of Current.
func (k *Keys) Taint(ctx context.Context, id string) (Report, error) {
	if k.settings.PEM != "" {
		return Report{}, ErrManaged
	}
	report, err := k.change(ctx, func(r ring, now time.Time) (ring, error) {
		tainted, ok, err := r.taint(id, now, k.settings)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q", ErrUnknown, id)
		}
		return tainted, err
	})
	if err != nil {
		return Report{}, err
	}
	return report, k.trim(ctx)
}

// trim removes all events of the record but the last. No process watches these events, and they hold private halves
// that are deleted elsewhere.
func (k *Keys) trim(ctx context.Context) error {
	if err := k.state.Trim(ctx, k.now()); err != nil {
		return fmt.Errorf("trimming the events of the signing keys: %w", err)
	}
	return nil
}

// List returns the keys. It returns no keys if none were made yet. It returns the errors of Current.
func (k *Keys) List(ctx context.Context) ([]Key, error) {
	if k.settings.PEM != "" {
		if k.fixedErr != nil {
			return nil, k.fixedErr
		}
		list := make([]Key, len(k.fixed.Public.Keys))
		for i, key := range k.fixed.Public.Keys {
			list[i] = Key{ID: key.ID, State: Retired}
		}
		list[0].State, list[0].Algorithm = Active, k.fixed.Signing.Algorithm()
		return list, nil
	}
	record, err := k.state.Get(ctx, recordName)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the signing keys: %w", err)
	}
	opened, _, err := k.open(ctx, record)
	return opened.keys(), err
}

// object is the record in JSON.
type object struct {
	// Sealed is the ring in JSON, encrypted.
	Sealed string `json:"sealed"`
}

// open decrypts the ring of a record. Stale reports whether it should be encrypted again.
func (k *Keys) open(ctx context.Context, record store.Record) (opened ring, stale bool, err error) {
	var read object
	if err := json.Unmarshal(record.Object, &read); err != nil {
		return nil, false, fmt.Errorf("reading the signing keys: %w", err)
	}
	keyring, err := k.keyring(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("opening the signing keys: %w", err)
	}
	plain, err := keyring.Open(read.Sealed, place)
	if err != nil {
		return nil, false, fmt.Errorf("opening the signing keys: %w", err)
	}
	if err := json.Unmarshal(plain, &opened); err != nil {
		return nil, false, errors.New("reading the signing keys: the decrypted text is not a ring of keys")
	}
	return opened, keyring.Stale(read.Sealed), nil
}

// change calls step with the current ring and writes the result if it differs. If another process changed the ring in
// the meantime, it starts again.
func (k *Keys) change(ctx context.Context, step func(ring, time.Time) (ring, error)) (Report, error) {
	var report Report
	err := store.Retry(ctx, nil, func() (err error) {
		report, err = k.tryChange(ctx, step)
		return err
	})
	return report, err
}

func (k *Keys) tryChange(ctx context.Context, step func(ring, time.Time) (ring, error)) (Report, error) {
	// The state keeps milliseconds: decide by the time that will be written.
	now := k.now().UTC().Truncate(time.Millisecond)
	record, err := k.state.Get(ctx, recordName)
	fresh := errors.Is(err, store.ErrNotFound)
	if err != nil && !fresh {
		return Report{}, fmt.Errorf("reading the signing keys: %w", err)
	}
	var before ring
	stale := false
	if !fresh {
		if before, stale, err = k.open(ctx, record); err != nil {
			return Report{}, err
		}
	}
	after, err := step(before, now)
	if err != nil {
		return Report{}, err
	}
	was, err := json.Marshal(before)
	if err != nil {
		return Report{}, fmt.Errorf("encoding the signing keys: %w", err)
	}
	plain, err := json.Marshal(after)
	if err != nil {
		return Report{}, fmt.Errorf("encoding the signing keys: %w", err)
	}
	if !fresh && !stale && bytes.Equal(was, plain) {
		return Report{Keys: after.keys()}, nil
	}
	keyring, err := k.keyring(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("sealing the signing keys: %w", err)
	}
	sealed, err := keyring.Seal(plain, place)
	if err != nil {
		return Report{}, fmt.Errorf("sealing the signing keys: %w", err)
	}
	text, err := json.Marshal(object{Sealed: sealed})
	if err != nil {
		return Report{}, fmt.Errorf("encoding the signing keys: %w", err)
	}
	if fresh {
		_, err = k.state.Create(ctx, store.Record{Name: recordName, Created: now, Object: text})
	} else {
		record.Object = text
		_, err = k.state.Update(ctx, record)
	}
	if err != nil {
		return Report{}, fmt.Errorf("writing the signing keys: %w", err)
	}
	return Report{Keys: after.keys(), Changed: !bytes.Equal(was, plain), Resealed: stale}, nil
}

// Describe returns a key in one line, for people.
func (k Key) Describe() string {
	parts := []string{k.ID, k.Algorithm, string(k.State)}
	if !k.Since.IsZero() {
		parts = append(parts, "since "+k.Since.Format(time.RFC3339))
	}
	if !k.Ends.IsZero() {
		parts = append(parts, "until "+k.Ends.Format(time.RFC3339))
	}
	return strings.Join(parts, "  ")
}

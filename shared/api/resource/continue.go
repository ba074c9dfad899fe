package resource

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// continueResource is the place of the keys of continue tokens in the state, and continueRecord the name of their record.
const (
	continueResource = "continuekeys"
	continueRecord   = "current"
)

const (
	// continueRotation is the age at which a key of continue tokens is replaced. The one before it still opens tokens.
	continueRotation = 30 * 24 * time.Hour
	// continueRefresh is how long a process seals tokens with the keys that it has read.
	continueRefresh = time.Minute
	// continuePadding is the size of which a position is a multiple when it is sealed, so that the length of a token does not
	// tell that of a name.
	continuePadding = 128
	// continuePlace binds what is sealed to its use.
	continuePlace = "continue"
)

// ContinueKeys seal the continue tokens of lists: a token tells a caller nothing, and only the server can make one. The keys are
// in the state, so that every process opens the tokens of the others. It is safe for concurrent use. Source: ADR-0025.
type ContinueKeys struct {
	state store.Store
	now   func() time.Time

	mu   sync.Mutex
	ring *encryption.Keyring
	// since is when the key that seals was made, and read when the keys were read.
	since, read time.Time
}

// OpenContinueKeys returns the keys of an environment. It reads nothing yet.
//
//go:noinline
func OpenContinueKeys(env *platform.Environment) *ContinueKeys {
	return platform.Single(env, func(env *platform.Environment) *ContinueKeys {
		return &ContinueKeys{state: env.Stores(continueResource), now: env.Now}
	})
}

// ownContinueKeys are those of lists that have none: they seal for this process alone.
var ownContinueKeys = sync.OnceValue(func() *ContinueKeys {
	// A key that was just made can be read.
	ring, _ := encryption.Parse(encryption.Generate())
	return &ContinueKeys{ring: ring}
})

// storedKeys is the record of the keys.
type storedKeys struct {
	// Keys is a text for encryption.Parse: the key that seals, and the one before it.
	Keys string `json:"keys"`
	// Since is when the key that seals was made.
	Since time.Time `json:"since"`
}

// sealing returns the keys to seal with. The first list that needs a key makes it, and others replace it when it is old.
// Errors: ServiceUnavailable; others if the record cannot be read.
func (k *ContinueKeys) sealing(ctx context.Context) (*encryption.Keyring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == nil {
		return k.ring, nil
	}
	due := func() bool { return !k.now().Before(k.since.Add(continueRotation)) }
	if k.ring != nil && k.now().Before(k.read.Add(continueRefresh)) && !due() {
		return k.ring, nil
	}
	fetchedKeys, err := k.fetch(ctx)
	if err != nil {
		return nil, err
	}
	k.keep(fetchedKeys)
	if k.ring != nil && !due() {
		return k.ring, nil
	}
	next := storedKeys{Keys: encryption.Generate().Reveal(), Since: k.now().UTC()}
	if k.ring != nil {
		before, _, _ := strings.Cut(fetchedKeys.stored.Keys, ",")
		next.Keys += "," + before
	}
	// A text and a time always marshal.
	record := fetchedKeys.record
	record.Name, record.Created = continueRecord, k.now()
	record.Object, _ = json.Marshal(next)
	write := k.state.Update
	if k.ring == nil {
		write = k.state.Create
	}
	if _, err := write(store.Writable(ctx), record); err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
		return nil, keysFailed("writing", err)
	}
	// Another process may have been faster: its keys are those of all.
	if fetchedKeys, err = k.fetch(ctx); err != nil {
		return nil, err
	}
	if k.keep(fetchedKeys); k.ring == nil {
		return nil, keysFailed("writing", store.ErrUnavailable)
	}
	return k.ring, nil
}

// fetchedKeys are the keys as they were read. The zero value: there are none.
type fetchedKeys struct {
	record store.Record
	stored storedKeys
	ring   *encryption.Keyring
}

// fetch reads the keys from the state.
func (k *ContinueKeys) fetch(ctx context.Context) (found fetchedKeys, err error) {
	found.record, err = k.state.Get(ctx, continueRecord)
	if errors.Is(err, store.ErrNotFound) {
		return fetchedKeys{}, nil
	}
	if err == nil {
		err = json.Unmarshal(found.record.Object, &found.stored)
	}
	if err == nil {
		found.ring, err = encryption.Parse(secret.String(found.stored.Keys))
	}
	if err != nil {
		return fetchedKeys{}, keysFailed("reading", err)
	}
	return found, nil
}

// keep uses keys that were read, from now on. The caller holds the lock.
func (k *ContinueKeys) keep(found fetchedKeys) {
	k.ring, k.since, k.read = found.ring, found.stored.Since, k.now()
}

// keysFailed returns the error of the API for one of the state.
func keysFailed(what string, err error) error {
	err = fmt.Errorf("%s the keys of continue tokens: %w", what, err)
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}

// open decrypts what writeContinue has sealed. If it is sealed with a key that the process does not know, which may be new, the
// keys are read once. Nobody else waits for that, because everybody can send such a token.
// Errors: those of encryption.Keyring.Open, and those of sealing.
func (k *ContinueKeys) open(ctx context.Context, sealed string) ([]byte, error) {
	k.mu.Lock()
	ring := k.ring
	k.mu.Unlock()
	text, err := ring.Open(sealed, continuePlace)
	if k.state == nil || !errors.Is(err, encryption.ErrUnknownKey) && !errors.Is(err, encryption.ErrNoKey) {
		return text, err
	}
	fetchedKeys, err := k.fetch(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.keep(fetchedKeys)
	k.mu.Unlock()
	return fetchedKeys.ring.Open(sealed, continuePlace)
}

// position is where the next page of a list begins. The continue token holds it.
type position struct {
	// Revision is that of the first page.
	Revision int64 `json:"rv"`
	// After is the last name that was read. The caller may not see it.
	After string `json:"after"`
	// Query is a fingerprint of the request: a token is valid for the same query only.
	Query string `json:"query"`
}

// Token returns the continue token of a list that is not of the state, from the place behind which it goes on. Errors:
// ServiceUnavailable; others if the keys cannot be read.
func (k *ContinueKeys) Token(ctx context.Context, place, query string) (string, error) {
	return writeContinue(ctx, k, position{Revision: 1, After: place, Query: query})
}

// Place returns the place of a token that Token has made for the same query. Errors: BadRequest for another token, and those of Token.
func (k *ContinueKeys) Place(ctx context.Context, token, query string) (string, error) {
	at, err := readContinue(ctx, k, token, query)
	return at.After, err
}

// writeContinue returns the token of a position. Errors: those of ContinueKeys.sealing.
func writeContinue(ctx context.Context, keys *ContinueKeys, at position) (string, error) {
	ring, err := keys.sealing(ctx)
	if err != nil {
		return "", err
	}
	// A struct of strings and a number always marshals. Blanks after it mean nothing.
	text, _ := json.Marshal(at)
	text = append(text, bytes.Repeat([]byte(" "), (continuePadding-len(text)%continuePadding)%continuePadding)...)
	sealed, err := ring.Seal(text, continuePlace)
	return base64.RawURLEncoding.EncodeToString([]byte(sealed)), err
}

// readContinue returns the position of a token that belongs to the request with a fingerprint. Errors: BadRequest, and those of
// ContinueKeys.sealing.
func readContinue(ctx context.Context, keys *ContinueKeys, token, fingerprint string) (position, error) {
	refuse := func(why string) (position, error) {
		return position{}, apierror.BadRequest("continue key is not valid: "+why,
			field.ErrorList{field.Invalid(field.NewPath("continue"), field.OmitValueType{}, why)})
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return refuse("it is not a token of this server")
	}
	text, err := keys.open(ctx, string(sealed))
	var at position
	switch {
	case errors.Is(err, encryption.ErrUnknownKey), errors.Is(err, encryption.ErrNoKey), errors.Is(err, encryption.ErrAltered):
		return refuse("it is not a token of this server, or it has been altered; begin the list again")
	case err != nil:
		return position{}, err
	case json.Unmarshal(text, &at) != nil || at.Revision < 1:
		return refuse("it is a token of another version; begin the list again")
	case at.Query != fingerprint:
		return refuse("it belongs to a list with other selectors or another caller")
	}
	return at, nil
}

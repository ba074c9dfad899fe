// Package continuetoken makes the continue tokens of lists: where the next page begins, sealed with keys that are in the state.
// Source: ADR-0025.
package continuetoken

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

// keyResource is the place of the keys of continue tokens in the state, and keyRecord the name of their record.
const (
	keyResource = "continuekeys"
	keyRecord   = "current"
)

const (
	// rotation is the age at which a key is replaced. The key before it still opens tokens.
	rotation = 30 * 24 * time.Hour
	// refresh is how long a process seals tokens with the keys that it has read.
	refresh = time.Minute
	// padding is the size of which a position is a multiple when it is sealed, so that the length of a token does not
	// reveal the length of a name.
	padding = 128
	// purpose binds a sealed text to its use.
	purpose = "continue"
)

// Keys seal and open the continue tokens of lists: a caller learns nothing from a token, and only the server can make one. The keys
// are in the state, so that every process opens the tokens of the others. Keys are safe for concurrent use.
type Keys struct {
	state store.Store
	now   func() time.Time

	mu   sync.Mutex
	ring *encryption.Keyring
	// since is when the key that seals was made, and readAt when the keys were read.
	since, readAt time.Time
}

// Open returns the keys of an environment. It reads nothing yet.
//
//go:noinline
func Open(env *platform.Environment) *Keys {
	return platform.Single(env, func(env *platform.Environment) *Keys {
		return &Keys{state: env.Stores(keyResource), now: env.Now}
	})
}

// ProcessKeys returns keys that are not in the state: other processes cannot open their tokens.
var ProcessKeys = sync.OnceValue(func() *Keys {
	// A key that was just made can be read.
	ring, _ := encryption.Parse(encryption.Generate())
	return &Keys{ring: ring}
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
func (k *Keys) sealing(ctx context.Context) (*encryption.Keyring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == nil {
		return k.ring, nil
	}
	due := func() bool { return !k.now().Before(k.since.Add(rotation)) }
	if k.ring != nil && k.now().Before(k.readAt.Add(refresh)) && !due() {
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
	record.Name, record.Created = keyRecord, k.now()
	record.Object, _ = json.Marshal(next)
	write := k.state.Update
	if k.ring == nil {
		write = k.state.Create
	}
	if _, err := write(store.Writable(ctx), record); err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
		return nil, keysFailed("writing", err)
	}
	// Another process may have been faster: then all processes use its keys.
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
func (k *Keys) fetch(ctx context.Context) (found fetchedKeys, err error) {
	found.record, err = k.state.Get(ctx, keyRecord)
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
func (k *Keys) keep(found fetchedKeys) {
	k.ring, k.since, k.readAt = found.ring, found.stored.Since, k.now()
}

// keysFailed returns the error of the API for one of the state.
func keysFailed(what string, err error) error {
	err = fmt.Errorf("%s the keys of continue tokens: %w", what, err)
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}

// decrypt decrypts what Seal has sealed. If it is sealed with a key that the process does not know, which may be new, the
// keys are read once. No other caller waits for that, because any client can send such a token.
// Errors: the errors of encryption.Keyring.Open and of sealing.
func (k *Keys) decrypt(ctx context.Context, sealed string) ([]byte, error) {
	k.mu.Lock()
	ring := k.ring
	k.mu.Unlock()
	text, err := ring.Open(sealed, purpose)
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
	return fetchedKeys.ring.Open(sealed, purpose)
}

// Position is where the next page of a list begins. A token holds it.
type Position struct {
	// Revision is the revision of the first page, at least 1.
	Revision int64 `json:"rv"`
	// After is the last name that was read, or another place behind which the list goes on. The caller may not see it.
	After string `json:"after"`
	// Query is a fingerprint of the request: a token is valid for the same query only.
	Query string `json:"query"`
}

// Seal returns the token of a position. Errors: ServiceUnavailable; others if the keys cannot be read.
func (k *Keys) Seal(ctx context.Context, position Position) (string, error) {
	ring, err := k.sealing(ctx)
	if err != nil {
		return "", err
	}
	// A struct of strings and a number always marshals. Blanks after it mean nothing.
	text, _ := json.Marshal(position)
	text = append(text, bytes.Repeat([]byte(" "), (padding-len(text)%padding)%padding)...)
	sealed, err := ring.Seal(text, purpose)
	return base64.RawURLEncoding.EncodeToString([]byte(sealed)), err
}

// Open returns the position of a token that was sealed for the same query. Errors: BadRequest for another token, and the errors of
// Seal.
func (k *Keys) Open(ctx context.Context, token, query string) (Position, error) {
	refuse := func(why string) (Position, error) {
		return Position{}, apierror.BadRequest("continue key is not valid: "+why,
			field.ErrorList{field.Invalid(field.NewPath("continue"), field.OmitValueType{}, why)})
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return refuse("it is not a token of this server")
	}
	text, err := k.decrypt(ctx, string(sealed))
	var position Position
	switch {
	case errors.Is(err, encryption.ErrUnknownKey), errors.Is(err, encryption.ErrNoKey), errors.Is(err, encryption.ErrAltered):
		return refuse("it is not a token of this server, or it has been altered; begin the list again")
	case err != nil:
		return Position{}, err
	case json.Unmarshal(text, &position) != nil || position.Revision < 1:
		return refuse("it is a token of another version; begin the list again")
	case position.Query != query:
		return refuse("it belongs to a list with other selectors or another caller")
	}
	return position, nil
}

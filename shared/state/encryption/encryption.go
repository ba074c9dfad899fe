// Package encryption seals small secrets for their rest in the state: private keys, the secrets of the configuration,
// material that clients hand over. A sealed text names its key, so that keys can be changed: the first key of a
// Keyring seals, all of them open. It is bound to its place, so that nobody who can write the state can move a sealed
// secret to another record or field.
// Source: Spec 2.7; ADR-0018.
package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"management.platform.sh/shared/model/secret"
)

const (
	// keyBytes is the length of a key: AES-256.
	keyBytes = 32
	// idBytes is how much of a key's hash is its id.
	idBytes = 4
)

// Errors of a Keyring. None holds any of the key or the text.
var (
	// ErrNoKey: nothing can be sealed or opened, since no key is configured.
	ErrNoKey = errors.New("no encryption key is configured: PLATFORM_ENCRYPTION_KEY is not set")
	// ErrUnknownKey: the text is sealed with a key that is not in the ring.
	ErrUnknownKey = errors.New("sealed with an encryption key that is not configured")
	// ErrAltered: the text is not what was sealed, or not at this place.
	ErrAltered = errors.New("the sealed text is damaged, or belongs elsewhere")
)

// Keyring holds encryption keys. A nil one has none: all of its methods fail with ErrNoKey. It is safe for concurrent
// use.
type Keyring struct {
	first string
	keys  map[string]cipher.AEAD
}

// Parse reads keys in base64, 32 bytes each, separated by commas: the first seals, all of them open. Errors say which
// one is wrong by its position, and quote none.
func Parse(text secret.String) (*Keyring, error) {
	ring := &Keyring{keys: map[string]cipher.AEAD{}}
	for i, field := range strings.Split(text.Reveal(), ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(field))
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("key %d is not the base64 of %d bytes; `openssl rand -base64 %d` makes one", i+1, keyBytes, keyBytes)
		}
		id := idOf(key)
		if _, twice := ring.keys[id]; twice {
			return nil, fmt.Errorf("key %d stands there twice", i+1)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if ring.keys[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if ring.first == "" {
			ring.first = id
		}
	}
	return ring, nil
}

// Generate makes a key as Parse reads it.
func Generate() secret.String {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	return secret.String(base64.StdEncoding.EncodeToString(key))
}

// idOf names a key without telling anything of it.
func idOf(key []byte) string {
	sum := sha256.Sum256(append([]byte("encryption key id\x00"), key...))
	return hex.EncodeToString(sum[:idBytes])
}

// Seal encrypts a text for a place, such as "signingkeys/abc/private": printable ASCII, "<key id>.<base64url>".
// Errors: ErrNoKey.
func (k *Keyring) Seal(text []byte, place string) (string, error) {
	if k == nil {
		return "", ErrNoKey
	}
	// The cipher draws the nonce itself.
	sealed := k.keys[k.first].Seal(nil, nil, text, []byte(place)) //nolint:gosec // a nil nonce is what this cipher wants
	return k.first + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open decrypts what Seal made for the same place. Errors: ErrNoKey, ErrUnknownKey with the id of the key, ErrAltered.
func (k *Keyring) Open(sealed, place string) ([]byte, error) {
	if k == nil {
		return nil, ErrNoKey
	}
	id, rest, found := strings.Cut(sealed, ".")
	if !found {
		return nil, ErrAltered
	}
	key, known := k.keys[id]
	if !known {
		return nil, fmt.Errorf("%w: key id %.*q", ErrUnknownKey, 2*idBytes, id)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		return nil, ErrAltered
	}
	opened, err := key.Open(nil, nil, raw, []byte(place))
	if err != nil {
		return nil, ErrAltered
	}
	return opened, nil
}

// Stale tells whether a text is sealed with another key than the first, and should be sealed anew.
func (k *Keyring) Stale(sealed string) bool {
	return k != nil && !strings.HasPrefix(sealed, k.first+".")
}

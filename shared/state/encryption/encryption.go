// Package encryption encrypts small secrets at rest in the state: private keys, secrets of the configuration and
// material that clients send. A sealed text names its key, so that keys can be changed: the first key of a Keyring
// seals, and all its keys open. A sealed text is bound to its place: it does not open after it was copied to another
// record or field of the state. Source: Spec 2.7; ADR-0018.
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
	// idBytes is the length of a key's id, the beginning of its hash.
	idBytes = 4
)

// Errors of a Keyring. They contain no part of the key or the text.
var (
	// ErrNoKey means that nothing can be sealed or opened, because no key is configured.
	ErrNoKey = errors.New("no encryption key is configured: PLATFORM_ENCRYPTION_KEY is not set")
	// ErrUnknownKey means that the text is sealed with a key that is not in the ring.
	ErrUnknownKey = errors.New("sealed with an encryption key that is not configured")
	// ErrAltered means that the sealed text was changed, or was sealed for another place.
	ErrAltered = errors.New("the sealed text is damaged or was sealed for another place")
)

// Keyring holds encryption keys. A nil Keyring has none: all of its methods fail with ErrNoKey. It is safe for
// concurrent use.
type Keyring struct {
	first string
	keys  map[string]cipher.AEAD
}

// Parse reads keys in base64, 32 bytes each, separated by commas. The first key seals, and all keys open. Errors give
// the position of the wrong key and never quote a key.
func Parse(text secret.String) (*Keyring, error) {
	ring := &Keyring{keys: map[string]cipher.AEAD{}}
	for i, field := range strings.Split(text.Reveal(), ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(field))
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("key %d is not the base64 of %d bytes; `openssl rand -base64 %d` makes one", i+1, keyBytes, keyBytes)
		}
		id := idOf(key)
		if _, twice := ring.keys[id]; twice {
			return nil, fmt.Errorf("key %d repeats an earlier key", i+1)
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

// Generate makes a random key in the form that Parse reads.
func Generate() secret.String {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	return secret.String(base64.StdEncoding.EncodeToString(key))
}

// idOf returns a key's id, which reveals nothing about the key.
func idOf(key []byte) string {
	sum := sha256.Sum256(append([]byte("encryption key id\x00"), key...))
	return hex.EncodeToString(sum[:idBytes])
}

// Seal encrypts a text for a place, such as "signingkeys/abc/private". The result is printable ASCII:
// "<key id>.<base64url>". Errors: ErrNoKey.
func (k *Keyring) Seal(text []byte, place string) (string, error) {
	if k == nil {
		return "", ErrNoKey
	}
	// The cipher draws the nonce itself.
	sealed := k.keys[k.first].Seal(nil, nil, text, []byte(place)) //nolint:gosec // this cipher requires a nil nonce
	return k.first + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open decrypts a text that Seal encrypted for the same place. Errors: ErrNoKey, ErrUnknownKey with the id of the key,
// ErrAltered.
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

// Knows reports whether a key of the ring has sealed a text.
func (k *Keyring) Knows(sealed string) bool {
	id, _, _ := strings.Cut(sealed, ".")
	return k != nil && k.keys[id] != nil
}

// Stale reports whether a text is sealed with a key other than the first, and should be sealed again.
func (k *Keyring) Stale(sealed string) bool {
	return k != nil && !strings.HasPrefix(sealed, k.first+".")
}

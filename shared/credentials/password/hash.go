package password

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/secret"
)

// The cost of a digest, and the sizes of its parts in bytes. Source: ADR-0032; OWASP Password Storage Cheat Sheet; RFC 9106.
const (
	memoryKiB = 19 << 10
	passes    = 2
	lanes     = 1
	saltBytes = 16
	hashBytes = 32
)

// digestPrefix begins each digest.
var digestPrefix = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, memoryKiB, passes, lanes)

// Hasher hashes passwords, a few at a time: each hash takes memory and a processor. It is safe for concurrent use.
type Hasher struct {
	random io.Reader
	slots  chan struct{}
	runs   atomic.Int64
}

// NewHasher returns a hasher that draws salts from a source.
func NewHasher(random io.Reader) *Hasher {
	return &Hasher{random: random, slots: make(chan struct{}, limits.PasswordHashes)}
}

// Runs returns how many passwords have been hashed so far.
func (h *Hasher) Runs() int64 { return h.runs.Load() }

// Hash returns the digest of a password with a new salt, as a text that names its parameters. It returns the error of ctx or of
// the random source.
func (h *Hasher) Hash(ctx context.Context, password secret.String) (string, error) {
	salt := make([]byte, saltBytes)
	if _, err := io.ReadFull(h.random, salt); err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	hash, err := h.derive(ctx, password, salt)
	if err != nil {
		return "", err
	}
	return digestPrefix + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(hash), nil
}

// errDigest means that a stored digest has a form that this build does not know.
var errDigest = errors.New("the digest of the password is in no known form")

// Matches reports whether a digest belongs to a password. It costs the same whatever the answer. It returns the error of ctx, or
// an error for a digest in another form than Hash makes.
func (h *Hasher) Matches(ctx context.Context, digest string, password secret.String) (bool, error) {
	rest, ok := strings.CutPrefix(digest, digestPrefix)
	saltText, hashText, separated := strings.Cut(rest, "$")
	salt, saltErr := base64.RawStdEncoding.DecodeString(saltText)
	want, hashErr := base64.RawStdEncoding.DecodeString(hashText)
	if !ok || !separated || saltErr != nil || hashErr != nil || len(salt) != saltBytes || len(want) != hashBytes {
		return false, errDigest
	}
	hash, err := h.derive(ctx, password, salt)
	return err == nil && subtle.ConstantTimeCompare(hash, want) == 1, err
}

// derive hashes a password as soon as a slot is free.
func (h *Hasher) derive(ctx context.Context, password secret.String, salt []byte) ([]byte, error) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.slots }()
	h.runs.Add(1)
	return argon2.IDKey([]byte(normalize(password)), salt, passes, memoryKiB, lanes, hashBytes), nil
}

// normalize returns a password in the form in which passwords are compared: texts that look the same are equal, whatever the
// keyboard.
func normalize(password secret.String) string { return norm.NFKC.String(password.Reveal()) }

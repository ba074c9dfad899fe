package accesskey

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"management.platform.sh/shared/model/secret"
)

// The form of a key that the server makes: a prefix that secret scanners can look for, random base62 characters
// (238 bits), and a CRC-32 of both. Source: ADR-0005.
const (
	bearerPrefix   = "pak_"
	randomLength   = 40
	checksumLength = 6
	bearerLength   = len(bearerPrefix) + randomLength + checksumLength

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// The length of a key that a client brings. Source: ADR-0005.
const (
	minBearerLength = 32
	maxBearerLength = 256
)

// NewBearer makes a key from random bytes.
func NewBearer(random io.Reader) (secret.String, error) {
	text := make([]byte, 0, bearerLength)
	text = append(text, bearerPrefix...)
	const usable = 256 - 256%len(base62)
	buffer := make([]byte, randomLength)
	for len(text) < len(bearerPrefix)+randomLength {
		if _, err := io.ReadFull(random, buffer); err != nil {
			return "", fmt.Errorf("reading random bytes: %w", err)
		}
		for _, b := range buffer {
			if int(b) < usable && len(text) < len(bearerPrefix)+randomLength {
				text = append(text, base62[int(b)%len(base62)])
			}
		}
	}
	return secret.String(append(text, checksum(text)...)), nil
}

// CheckBearer returns what is wrong with the form of a key, without quoting it. A key that begins with the prefix of the server's
// keys must have the form of such a key.
func CheckBearer(bearer secret.String) error {
	text := bearer.Reveal()
	if rest, ours := strings.CutPrefix(text, bearerPrefix); ours {
		if len(text) != bearerLength {
			return fmt.Errorf("a key that begins with %s has %d characters", bearerPrefix, bearerLength)
		}
		if strings.ContainsFunc(rest, func(c rune) bool { return !strings.ContainsRune(base62, c) }) {
			return fmt.Errorf("a key that begins with %s has only letters and digits after it", bearerPrefix)
		}
		body := text[:bearerLength-checksumLength]
		if !secret.String(checksum([]byte(body))).Equal(secret.String(text[len(body):])) {
			return errors.New("the checksum of the key is wrong")
		}
		return nil
	}
	if len(text) < minBearerLength || len(text) > maxBearerLength {
		return fmt.Errorf("must have %d to %d characters", minBearerLength, maxBearerLength)
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return errors.New("must be printable ASCII without blanks")
		}
	}
	return nil
}

// Digest returns the SHA-256 of a key in hexadecimal, which the server stores in place of the key. Keys are random, so a slow
// hash would protect nothing. Source: ADR-0005.
func Digest(bearer secret.String) string {
	sum := sha256.Sum256([]byte(bearer.Reveal()))
	return hex.EncodeToString(sum[:])
}

// checksum returns the CRC-32 (IEEE) of the text in six base62 digits.
func checksum(text []byte) []byte {
	sum := crc32.ChecksumIEEE(text)
	digits := make([]byte, checksumLength)
	for i := checksumLength - 1; i >= 0; i-- {
		digits[i] = base62[sum%uint32(len(base62))]
		sum /= uint32(len(base62))
	}
	return digits
}

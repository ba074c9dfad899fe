// Package keypem reads keys in PEM. It needs only the standard library, so that every program can refuse unusable
// signing keys at its start without linking the signing libraries. Package signing/signingkey turns the keys into keys
// that sign tokens. Package signing/clusterca reads the keys of certificate authorities with ParsePrivate. Source: Spec
// 2.4; ADR-0011, ADR-0012.
package keypem

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	"management.platform.sh/shared/model/secret"
)

// Minimum and maximum size of RSA keys, in bits. Smaller keys are weak, larger keys make each verification slow.
// Source: ADR-0012.
const (
	MinRSABits = 2048
	MaxRSABits = 8192
)

// Key is one key of a text.
type Key struct {
	// Private is the private key: an *ecdsa.PrivateKey or *rsa.PrivateKey. Nil: the text has only the public key, which is
	// published and does not sign.
	Private crypto.Signer
	// Public is the public key: an *ecdsa.PublicKey or *rsa.PublicKey. It is never nil.
	Public crypto.PublicKey
}

// Parse reads the blocks "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY" and, for retired keys, "PUBLIC KEY". It
// skips the blocks "EC PARAMETERS". The first key must be private, since it signs. Errors name the position of the key,
// and do not quote keys. Source: ADR-0011.
func Parse(text secret.String) ([]Key, error) {
	var keys []Key
	rest := []byte(text.Reveal())
	// Package pem skips damaged blocks. Without this count, a key that should be published could be missing.
	blocks := 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		blocks++
		if block.Type == "EC PARAMETERS" {
			continue
		}
		position := len(keys) + 1
		key, err := parseBlock(block)
		if err == nil && position == 1 && key.Private == nil {
			err = errors.New("is public; the first key must be private, since it signs")
		}
		if err == nil {
			err = Check(key.Public)
		}
		if err != nil {
			return nil, fmt.Errorf("signing key %d: %w", position, err)
		}
		for i, earlier := range keys {
			if equal(earlier.Public, key.Public) {
				return nil, fmt.Errorf("signing keys %d and %d are the same key", i+1, position)
			}
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no PEM block with a key")
	}
	if begun := bytes.Count([]byte(text.Reveal()), []byte("-----BEGIN ")); begun != blocks {
		return nil, fmt.Errorf("there are %d PEM blocks, of which only %d can be read", begun, blocks)
	}
	return keys, nil
}

// parseBlock reads a private or public key from one block.
func parseBlock(block *pem.Block) (Key, error) {
	if block.Type == "PUBLIC KEY" {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return Key{}, errNoKey(block)
		}
		return Key{Public: key}, nil
	}
	signer, err := ParsePrivate(block)
	if errors.Is(err, errType) {
		return Key{}, fmt.Errorf("%w or PUBLIC KEY", err)
	}
	if err != nil {
		return Key{}, err
	}
	return Key{Private: signer, Public: signer.Public()}, nil
}

// ErrEncrypted is the error of ParsePrivate for a key that is encrypted with a password.
var ErrEncrypted = errors.New("is encrypted; give it unencrypted, the platform encrypts what it stores")

// errType is the error of ParsePrivate for a block of another type.
var errType = errors.New("use PRIVATE KEY, EC PRIVATE KEY, RSA PRIVATE KEY")

func errNoKey(block *pem.Block) error {
	return fmt.Errorf("the block %s holds no such key", block.Type)
}

// ParsePrivate reads a private key from one block: PKCS 8, SEC 1 or PKCS 1. It does not check the strength of the key. Errors:
// ErrEncrypted, and others that describe the problem without quoting the key. Source: RFC 7468 10 and 11; RFC 5915 4; RFC
// 8017 A.1.2.
func ParsePrivate(block *pem.Block) (crypto.Signer, error) {
	if block.Headers["DEK-Info"] != "" || block.Type == "ENCRYPTED PRIVATE KEY" {
		return nil, ErrEncrypted
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("is a %.32q; %w", block.Type, errType)
	}
	if err != nil {
		return nil, errNoKey(block)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// equal reports whether two public keys are the same.
func equal(a, b crypto.PublicKey) bool {
	key, ok := a.(interface {
		Equal(other crypto.PublicKey) bool
	})
	return ok && key.Equal(b)
}

// Check returns an error for a public key whose private key cannot sign tokens. The error says which keys can: ECDSA keys of
// P-256 sign ES256, and RSA keys of 2048 to 8192 bits sign RS256. Source: ADR-0012.
func Check(public crypto.PublicKey) error {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return errors.New("an elliptic curve key must be of the curve P-256")
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < MinRSABits || bits > MaxRSABits {
			return fmt.Errorf("an RSA key must have %d to %d bits, this one has %d", MinRSABits, MaxRSABits, bits)
		}
		if key.E < 3 || key.E&1 == 0 {
			return errors.New("the exponent of an RSA key must be odd and at least 3")
		}
		if isGuessable(key.N) {
			return errors.New("the RSA key was made by a generator whose keys can be factored (CVE-2017-15361)")
		}
	default:
		return fmt.Errorf("a %T cannot sign tokens: an ECDSA key of P-256 or an RSA key of %d bits or more can", public, MinRSABits)
	}
	return nil
}

// isGuessable reports whether a modulus has the form that a widespread library for smart cards produced: modulo each
// small prime, it is a power of 65537. One in a hundred million other keys has that form. Source: Nemec et al., The
// Return of Coppersmith's Attack, 2017, section 4.2; CVE-2017-15361.
func isGuessable(n *big.Int) bool {
	for _, p := range []int64{
		3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113,
		127, 131, 137, 139, 149, 151, 157, 163, 167,
	} {
		rest := new(big.Int).Mod(n, big.NewInt(p)).Int64()
		power := int64(1)
		for power != rest {
			if power = power * 65537 % p; power == 1 {
				return false
			}
		}
	}
	return true
}

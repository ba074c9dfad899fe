package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The algorithms. Which one it is follows from the key, never from a token. Source: RFC 7518 3.1, RFC 8725 3.1.
const (
	ES256 = "ES256"
	RS256 = "RS256"
)

// The sizes of RSA keys. Smaller ones are weak, larger ones make each verification slow.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// encoding is base64url as JOSE writes it: no padding, no stray bits. Source: RFC 7515 2.
var encoding = base64.RawURLEncoding.Strict()

// method is the algorithm of a public key. The error says which keys are right.
func method(public crypto.PublicKey) (jwt.SigningMethod, error) {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return nil, errors.New("an elliptic curve key must be of the curve P-256")
		}
		return jwt.SigningMethodES256, nil
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, fmt.Errorf("an RSA key must have %d to %d bits, this one has %d", minRSABits, maxRSABits, bits)
		}
		if key.E < 3 || key.E&1 == 0 {
			return nil, errors.New("the exponent of an RSA key must be odd and at least 3")
		}
		if guessable(key.N) {
			return nil, errors.New("the RSA key was made by a generator whose keys can be factored (CVE-2017-15361)")
		}
		return jwt.SigningMethodRS256, nil
	default:
		return nil, fmt.Errorf("a %T cannot sign tokens: an ECDSA key of P-256 or an RSA key of %d bits or more can", public, minRSABits)
	}
}

// guessable tells whether a modulus is the product of primes as a widespread library for smart cards made them: modulo
// each small prime it is then a power of 65537. Of other keys, one in a hundred million has that form.
// Source: Nemec et al., The Return of Coppersmith's Attack, 2017, section 4.2; CVE-2017-15361.
func guessable(n *big.Int) bool {
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

// SigningKey signs tokens. It is safe for concurrent use.
type SigningKey struct {
	private crypto.Signer
	method  jwt.SigningMethod
	public  JWK
	header  string
}

// NewSigningKey takes an *ecdsa.PrivateKey of P-256, which signs ES256, or an *rsa.PrivateKey of 2048 to 8192
// bits, which signs RS256. The error says what is wrong with another. Source: ADR-0012.
func NewSigningKey(private crypto.Signer) (*SigningKey, error) {
	switch private.(type) {
	case *ecdsa.PrivateKey, *rsa.PrivateKey:
	default:
		return nil, fmt.Errorf("a %T cannot sign tokens: an *ecdsa.PrivateKey or *rsa.PrivateKey can", private)
	}
	public, err := NewJWK(private.Public())
	if err != nil {
		return nil, err
	}
	signs, err := method(public.Key)
	if err != nil {
		return nil, err
	}
	header, err := json.Marshal(header{Algorithm: signs.Alg(), KeyID: public.ID, Type: typeJWT})
	if err != nil {
		return nil, err
	}
	return &SigningKey{private: private, method: signs, public: public, header: encoding.EncodeToString(header)}, nil
}

// ID is the kid: the thumbprint of the public key.
func (k *SigningKey) ID() string { return k.public.ID }

// Algorithm is ES256 or RS256.
func (k *SigningKey) Algorithm() string { return k.method.Alg() }

// Public is the key that verifies what this one signs.
func (k *SigningKey) Public() JWK { return k.public }

// Sign returns claims as a signed token in compact form. Fractions of seconds are cut off. Errors: those of Check.
func (k *SigningKey) Sign(claims Claims) (string, error) {
	text, err := k.unsigned(claims)
	if err != nil {
		return "", err
	}
	signature, err := k.method.Sign(text, k.private)
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text + "." + encoding.EncodeToString(signature), nil
}

// Check returns the error for claims that Sign refuses, and signs nothing. Sign refuses what no verifier accepts: claims
// that ParseClaims refuses, an end that is not after the beginning, a token beyond MaxBytes (ErrTooLarge).
func (k *SigningKey) Check(claims Claims) error {
	_, err := k.unsigned(claims)
	return err
}

// unsigned is what is signed of a token: header and claims.
func (k *SigningKey) unsigned(claims Claims) (string, error) {
	w, err := claims.wire()
	if err != nil {
		return "", fmt.Errorf("writing the claims: %w", err)
	}
	if err := w.check(); err != nil {
		return "", err
	}
	payload, err := json.Marshal(w)
	if err != nil {
		return "", fmt.Errorf("writing the claims: %w", err)
	}
	if !claims.Expires.Truncate(time.Second).After(claims.NotBefore) {
		return "", fmt.Errorf("%w: exp must be after nbf", ErrMalformed)
	}
	text := k.header + "." + encoding.EncodeToString(payload)
	if size := len(text) + 1 + encoding.EncodedLen(k.signatureBytes()); size > MaxBytes {
		return "", fmt.Errorf("%w: it has %d bytes, at most %d are possible", ErrTooLarge, size, MaxBytes)
	}
	return text, nil
}

// signatureBytes is how long each signature is. Source: RFC 7518 3.3, 3.4.
func (k *SigningKey) signatureBytes() int {
	switch key := k.public.Key.(type) {
	case *rsa.PublicKey:
		return key.Size()
	case *ecdsa.PublicKey:
		return 2 * ((key.Curve.Params().BitSize + 7) / 8)
	default:
		return 0
	}
}

// Thumbprint is the SHA-256 thumbprint of a public key, in base64url. It is the kid of our keys.
// Source: RFC 7638 3.
func Thumbprint(public crypto.PublicKey) (string, error) {
	w, err := toWire(public)
	if err != nil {
		return "", err
	}
	// The required members in the order of their names, and no others.
	var canonical any
	switch w.Type {
	case typeEC:
		canonical = struct {
			Curve string `json:"crv"`
			Type  string `json:"kty"`
			X     string `json:"x"`
			Y     string `json:"y"`
		}{w.Curve, w.Type, w.X, w.Y}
	default:
		canonical = struct {
			E    string `json:"e"`
			Type string `json:"kty"`
			N    string `json:"n"`
		}{w.E, w.Type, w.N}
	}
	text, err := json.Marshal(canonical)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return encoding.EncodeToString(sum[:]), nil
}

package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"management.platform.sh/shared/settings/keypem"
)

// The algorithms. The key determines the algorithm, never the token. Source: RFC 7518 3.1, RFC 8725 3.1.
const (
	ES256 = "ES256"
	RS256 = "RS256"
)

// encoding is base64url as JOSE writes it: no padding, no stray bits. Source: RFC 7515 2.
var encoding = base64.RawURLEncoding.Strict()

// method returns the algorithm of a public key. The error says which keys are supported.
func method(public crypto.PublicKey) (jwt.SigningMethod, error) {
	if err := keypem.Check(public); err != nil {
		return nil, err
	}
	if _, ok := public.(*ecdsa.PublicKey); ok {
		return jwt.SigningMethodES256, nil
	}
	return jwt.SigningMethodRS256, nil
}

// SigningKey signs tokens. It is safe for concurrent use.
type SigningKey struct {
	private crypto.Signer
	method  jwt.SigningMethod
	public  JWK
	header  string
}

// NewSigningKey returns a key that signs ES256 with an *ecdsa.PrivateKey of P-256, or RS256 with an *rsa.PrivateKey of
// 2048 to 8192 bits. The error describes what is wrong with any other key. Source: ADR-0012.
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
	_, hasTwo := public.Key.(*ecdsa.PublicKey)
	header, err := json.Marshal(header{Algorithm: signs.Alg(), KeyID: public.ID, Type: typeJWT, LowS: hasTwo})
	if err != nil {
		return nil, err
	}
	return &SigningKey{private: private, method: signs, public: public, header: encoding.EncodeToString(header)}, nil
}

// ID returns the kid: the thumbprint of the public key.
func (k *SigningKey) ID() string { return k.public.ID }

// Algorithm returns ES256 or RS256.
func (k *SigningKey) Algorithm() string { return k.method.Alg() }

// Public returns the key that verifies the signatures of this key.
func (k *SigningKey) Public() JWK { return k.public }

// Sign returns claims as a signed token in compact form. Fractions of seconds are cut off. It returns the errors of
// Check.
func (k *SigningKey) Sign(claims Claims) (string, error) {
	text, err := k.signingInput(claims)
	if err != nil {
		return "", err
	}
	signature, err := k.method.Sign(text, k.private)
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text + "." + encoding.EncodeToString(normalizeSignature(k.public.Key, signature)), nil
}

// An ECDSA signature (r, s) has a second valid form, (r, n-s), which anyone can compute. Tokens have the form with the
// smaller s. RSA signatures have one form. Source: ADR-0022.

// normalizeSignature returns the form of a signature that tokens have.
func normalizeSignature(public crypto.PublicKey, signature []byte) []byte {
	if lowS(public, signature) {
		return signature
	}
	half := len(signature) / 2
	order := public.(*ecdsa.PublicKey).Params().N
	s := new(big.Int).Sub(order, new(big.Int).SetBytes(signature[half:]))
	return append(signature[:half:half], s.FillBytes(make([]byte, half))...)
}

// lowS reports whether a verified signature has the form that tokens have.
func lowS(public crypto.PublicKey, signature []byte) bool {
	key, hasTwo := public.(*ecdsa.PublicKey)
	if !hasTwo {
		return true
	}
	s := new(big.Int).SetBytes(signature[len(signature)/2:])
	return s.Lsh(s, 1).Cmp(key.Params().N) <= 0
}

// Check returns the error for claims that Sign refuses, and signs nothing. Sign refuses what no verifier accepts:
// claims that ParseClaims refuses, an end that is not after the beginning, a token beyond MaxBytes (ErrTooLarge).
func (k *SigningKey) Check(claims Claims) error {
	_, err := k.signingInput(claims)
	return err
}

// signingInput returns the part of a token that is signed: header and claims.
func (k *SigningKey) signingInput(claims Claims) (string, error) {
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
		return "", fmt.Errorf("%w: it has %d bytes and may have at most %d", ErrTooLarge, size, MaxBytes)
	}
	return text, nil
}

// signatureBytes is the length of each signature. Source: RFC 7518 3.3, 3.4.
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

// Thumbprint returns the SHA-256 thumbprint of a public key, in base64url. It is the kid of the platform's keys.
// Source: RFC 7638 3.
func Thumbprint(public crypto.PublicKey) (string, error) {
	w, err := toWire(public)
	if err != nil {
		return "", err
	}
	// The thumbprint covers the required members in the order of their names, and no other members.
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

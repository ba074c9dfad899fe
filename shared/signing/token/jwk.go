package token

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	kjson "sigs.k8s.io/json"
)

// The values of members of a JWK. Source: RFC 7517 4, RFC 7518 6.
const (
	typeEC       = "EC"
	typeRSA      = "RSA"
	curveP256    = "P-256"
	useSignature = "sig"
	opVerify     = "verify"
)

// coordinateBytes is the length of a coordinate of P-256.
const coordinateBytes = 32

// JWK is a public key that verifies tokens. Source: RFC 7517.
type JWK struct {
	// Key is an *ecdsa.PublicKey of P-256 or an *rsa.PublicKey of 2048 to 8192 bits.
	Key crypto.PublicKey
	// ID is the kid, by which tokens name the key.
	ID string
}

// JWKS is a set of public keys. In JSON it is the document that clusters fetch. Source: RFC 7517 5.
type JWKS struct {
	// Keys are the keys. Their IDs differ.
	Keys []JWK
}

type wireJWK struct {
	Type       string          `json:"kty"`
	Use        string          `json:"use,omitempty"`
	Operations []string        `json:"key_ops,omitempty"`
	Algorithm  string          `json:"alg,omitempty"`
	ID         string          `json:"kid,omitempty"`
	Curve      string          `json:"crv,omitempty"`
	X          string          `json:"x,omitempty"`
	Y          string          `json:"y,omitempty"`
	N          string          `json:"n,omitempty"`
	E          string          `json:"e,omitempty"`
	Private    json.RawMessage `json:"d,omitempty"`
	Symmetric  json.RawMessage `json:"k,omitempty"`
}

// NewJWK returns a public key under its thumbprint. The error says which keys are supported.
func NewJWK(public crypto.PublicKey) (JWK, error) {
	id, err := Thumbprint(public)
	if err != nil {
		return JWK{}, err
	}
	return JWK{Key: public, ID: id}, nil
}

// toWire returns the members of a JWK that hold the key itself.
func toWire(public crypto.PublicKey) (wireJWK, error) {
	if _, err := method(public); err != nil {
		return wireJWK{}, err
	}
	if key, ok := public.(*ecdsa.PublicKey); ok {
		point, err := key.Bytes()
		if err != nil {
			return wireJWK{}, fmt.Errorf("reading an elliptic curve key: %w", err)
		}
		// The encoding of the point is the byte 4, x and y.
		return wireJWK{
			Type: typeEC, Curve: curveP256,
			X: encoding.EncodeToString(point[1 : 1+coordinateBytes]), Y: encoding.EncodeToString(point[1+coordinateBytes:]),
		}, nil
	}
	key := public.(*rsa.PublicKey)
	return wireJWK{
		Type: typeRSA, N: encoding.EncodeToString(key.N.Bytes()), E: encoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
	}, nil
}

// MarshalJSON prints the key with its kid and algorithm, for use with signatures.
func (k JWK) MarshalJSON() ([]byte, error) {
	w, err := toWire(k.Key)
	if err != nil {
		return nil, err
	}
	signs, err := method(k.Key)
	if err != nil {
		return nil, err
	}
	w.Use, w.Algorithm, w.ID = useSignature, signs.Alg(), k.ID
	return json.Marshal(w)
}

// errForeign means that a key seems well formed, but is for another purpose than signatures.
var errForeign = errors.New("is not a public key that verifies ES256 or RS256 signatures")

// UnmarshalJSON reads a key. The key must have a kid. If it names its use, the use must be signatures. A private key is
// refused.
func (k *JWK) UnmarshalJSON(text []byte) error {
	if _, err := object(text); err != nil {
		return fmt.Errorf("a key: %w", err)
	}
	var w wireJWK
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &w); err != nil {
		return errors.New("a key has members of a wrong type")
	}
	key, err := w.key()
	if err != nil {
		return fmt.Errorf("the key %q: %w", w.ID, err)
	}
	*k = JWK{Key: key, ID: w.ID}
	return nil
}

// key returns the public key that w describes, or errForeign.
func (w wireJWK) key() (crypto.PublicKey, error) {
	if w.Private != nil || w.Symmetric != nil {
		return nil, errors.New("is a secret key, which must not be published")
	}
	if w.Use != "" && w.Use != useSignature || len(w.Operations) > 0 && !slices.Contains(w.Operations, opVerify) {
		return nil, errForeign
	}
	var key crypto.PublicKey
	switch {
	case w.Type == typeEC && w.Curve == curveP256 && (w.Algorithm == "" || w.Algorithm == ES256):
		x, errX := encoding.DecodeString(w.X)
		y, errY := encoding.DecodeString(w.Y)
		if errX != nil || errY != nil || len(x) != coordinateBytes || len(y) != coordinateBytes {
			return nil, fmt.Errorf("x and y must be %d bytes each, in base64url without padding", coordinateBytes)
		}
		point, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), bytes.Join([][]byte{{4}, x, y}, nil))
		if err != nil {
			return nil, errors.New("is not a point of its curve")
		}
		key = point
	case w.Type == typeRSA && (w.Algorithm == "" || w.Algorithm == RS256):
		n, errN := encoding.DecodeString(w.N)
		e, errE := encoding.DecodeString(w.E)
		if errN != nil || errE != nil || len(n) == 0 || n[0] == 0 || len(e) == 0 || e[0] == 0 || len(e) > 4 {
			return nil, errors.New("n and e must be positive numbers in base64url, without padding and leading zeros, e of at most 4 bytes")
		}
		exponent := new(big.Int).SetBytes(e)
		if exponent.Int64() > 1<<31-1 {
			return nil, errors.New("the exponent is too large")
		}
		key = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent.Int64())}
	default:
		return nil, errForeign
	}
	if _, err := method(key); err != nil {
		return nil, err
	}
	if w.ID == "" {
		return nil, errors.New("has no kid")
	}
	return key, nil
}

func (s JWKS) MarshalJSON() ([]byte, error) {
	keys := s.Keys
	if keys == nil {
		keys = []JWK{}
	}
	return json.Marshal(map[string][]JWK{"keys": keys})
}

// UnmarshalJSON reads a set. Keys for other purposes are left out, as RFC 7517 5 demands. A set with a malformed, weak
// or secret key, or with two keys of one kid, is refused as a whole.
func (s *JWKS) UnmarshalJSON(text []byte) error {
	if _, err := object(text); err != nil {
		return fmt.Errorf("a key set: %w", err)
	}
	var w struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &w); err != nil || w.Keys == nil {
		return errors.New("a key set must have an array \"keys\"")
	}
	read, seen := JWKS{}, map[string]bool{}
	for _, one := range w.Keys {
		var key JWK
		switch err := key.UnmarshalJSON(one); {
		case errors.Is(err, errForeign):
			continue
		case err != nil:
			return err
		case seen[key.ID]:
			return fmt.Errorf("two keys have the kid %q", key.ID)
		}
		seen[key.ID] = true
		read.Keys = append(read.Keys, key)
	}
	*s = read
	return nil
}

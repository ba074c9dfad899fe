package token

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"

	"management.platform.sh/shared/model/secret"
)

// The reasons why a token is refused or not signed. They are wrapped with details. The texts quote no secret and may be
// shown to the sender of the token. Any other error means that the token could not be checked. Source: ADR-0012.
var (
	// ErrMalformed means that the text is not a token of this platform, whatever its signature.
	ErrMalformed = errors.New("malformed token")
	// ErrTooLarge means that the token is larger than MaxBytes.
	ErrTooLarge = errors.New("token too large")
	// ErrUnknownKey means that the issuer does not publish a key with the kid, or no longer.
	ErrUnknownKey = errors.New("token signed with an unknown key")
	// ErrSignature means that the key did not make the signature.
	ErrSignature = errors.New("token with a wrong signature")
	// ErrIssuer means that another platform issued the token.
	ErrIssuer = errors.New("token of another issuer")
	// ErrAudience means that the token is for other audiences.
	ErrAudience = errors.New("token for another audience")
	// ErrExpired means that the token has expired.
	ErrExpired = errors.New("token expired")
	// ErrNotYetValid means that the token is not valid yet.
	ErrNotYetValid = errors.New("token not yet valid")
	// ErrRevoked means that the token was revoked.
	ErrRevoked = errors.New("token revoked")
)

// refusals are the errors above.
var refusals = []error{
	ErrMalformed, ErrTooLarge, ErrUnknownKey, ErrSignature, ErrIssuer, ErrAudience, ErrExpired, ErrNotYetValid, ErrRevoked,
}

// Refusal returns which of the errors above err is. Nil: err is none of them, and the token could not be checked.
func Refusal(err error) error {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return refusal
		}
	}
	return nil
}

// Leeway is how far the clock of a verifier may be behind the clock of the issuer: a token is accepted this long before
// its nbf and iat. There is no leeway at the end: a token is refused from its exp on. Source: ADR-0012.
const Leeway = time.Minute

// Keys are the public keys of an issuer. JWKS is a fixed set of them.
type Keys interface {
	// Key returns the key with a kid. Errors: ErrUnknownKey; others if the keys could not be fetched.
	Key(ctx context.Context, id string) (JWK, error)
}

// Key returns the key with a kid. Error: ErrUnknownKey, also if two keys have the kid.
func (s JWKS) Key(_ context.Context, id string) (JWK, error) {
	match := JWK{}
	for _, key := range s.Keys {
		if key.ID != id {
			continue
		}
		if match.Key != nil {
			return JWK{}, ErrUnknownKey
		}
		match = key
	}
	if match.Key == nil {
		return JWK{}, ErrUnknownKey
	}
	return match, nil
}

const typeJWT = "JWT"

type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
	// LowS reports whether the signature is in the form with the smaller s. Tokens of earlier builds do not have this
	// member.
	LowS bool `json:"low_s,omitempty"`
}

// Open checks the form and the signature of a token and returns its payload, unread. The key that the kid names must be
// known, and determines the algorithm. Members of the header that could bring another key are ignored. A header with
// crit is refused, whatever crit lists, because no extension is supported. Errors: ErrMalformed, ErrTooLarge,
// ErrUnknownKey, ErrSignature, and the errors of keys. Source: RFC 7515 5.2, RFC 8725 3.
func Open(ctx context.Context, keys Keys, text secret.String) ([]byte, error) {
	compact := text.Reveal()
	if len(compact) > MaxBytes {
		return nil, fmt.Errorf("%w: it may have at most %d bytes", ErrTooLarge, MaxBytes)
	}
	parts := strings.SplitN(compact, ".", 4)
	if len(parts) != 3 {
		return nil, fmt.Errorf("%w: it must have three parts", ErrMalformed)
	}
	var decoded [3][]byte
	for i, part := range parts {
		raw, err := encoding.DecodeString(part)
		// Go's base64 decoder skips line ends.
		if err != nil || strings.ContainsAny(part, "\r\n") {
			return nil, fmt.Errorf("%w: its parts must be base64url without padding", ErrMalformed)
		}
		decoded[i] = raw
	}
	h, err := readHeader(decoded[0])
	if err != nil {
		return nil, err
	}
	key, err := keys.Key(ctx, h.KeyID)
	if err != nil {
		return nil, err
	}
	verifies, err := method(key.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknownKey, err)
	}
	if h.Algorithm != verifies.Alg() {
		return nil, fmt.Errorf("%w: its key is for %s", ErrSignature, verifies.Alg())
	}
	if err := verifies.Verify(parts[0]+"."+parts[1], decoded[2], key.Key); err != nil {
		return nil, ErrSignature
	}
	if h.LowS && !lowS(key.Key, decoded[2]) {
		return nil, ErrSignature
	}
	return decoded[1], nil
}

func readHeader(text []byte) (header, error) {
	members, err := object(text)
	if err != nil {
		return header{}, fmt.Errorf("%w: the header: %w", ErrMalformed, err)
	}
	if _, critical := members["crit"]; critical {
		return header{}, fmt.Errorf("%w: the header has critical members, which are not supported", ErrMalformed)
	}
	var h header
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &h); err != nil || h.Algorithm == "" || h.KeyID == "" {
		return header{}, fmt.Errorf("%w: the header must have alg and kid", ErrMalformed)
	}
	if _, typed := members["typ"]; typed && !strings.EqualFold(h.Type, typeJWT) {
		return header{}, fmt.Errorf("%w: its type is not %s", ErrMalformed, typeJWT)
	}
	return h, nil
}

// Verifier accepts the tokens of one issuer. Its fields are set once; after that it is safe for concurrent use.
type Verifier struct {
	Keys Keys
	// Issuer is the iss that tokens must have.
	Issuer string
	// Audiences are the accepted audiences: a token must be for one of them. Empty: no token is accepted.
	Audiences []string
	// Revoked reports whether a token was revoked. Nil: tokens are accepted until they expire.
	Revoked func(context.Context, Claims) (bool, error)
	Now     func() time.Time
}

// Verify returns the claims of a token, or the reason for refusing it: see Refusal. It calls Revoked last, when
// everything else is right. Source: Spec 5.3; RFC 7519 7.2; ADR-0012.
func (v *Verifier) Verify(ctx context.Context, text secret.String) (Claims, error) {
	payload, err := Open(ctx, v.Keys, text)
	if err != nil {
		return Claims{}, err
	}
	claims, err := ParseClaims(payload)
	if err != nil {
		return Claims{}, err
	}
	now := v.Now()
	switch {
	case claims.Issuer != v.Issuer:
		return Claims{}, ErrIssuer
	case !claims.HasAudience(v.Audiences...):
		return Claims{}, ErrAudience
	case !now.Before(claims.Expires):
		return Claims{}, ErrExpired
	case now.Add(Leeway).Before(claims.NotBefore) || now.Add(Leeway).Before(claims.IssuedAt):
		return Claims{}, ErrNotYetValid
	}
	if v.Revoked != nil {
		revoked, err := v.Revoked(ctx, claims)
		if err != nil {
			return Claims{}, fmt.Errorf("asking whether a token is revoked: %w", err)
		}
		if revoked {
			return Claims{}, ErrRevoked
		}
	}
	return claims, nil
}

// DenyList is the document that lists the tokens that were revoked before they expired. Source: ADR-0012.
type DenyList struct {
	Issuer string `json:"issuer"`
	// Revoked are the revoked tokens that have not expired.
	Revoked []Revoked `json:"revoked"`
}

// Revoked is a token that was revoked before it expired.
type Revoked struct {
	// ID is its jti.
	ID string `json:"jti"`
	// Expires is its exp, in seconds since 1970: it is refused without the list from then on.
	Expires int64 `json:"exp"`
}

package token

import "errors"

// Why a token is refused, and why one is not signed. They are wrapped with what is wrong; the texts may be
// shown to whoever sent the token. Source: ADR-0012.
var (
	// ErrMalformed is a text that is no token of ours, whatever its signature.
	ErrMalformed = errors.New("malformed token")
	// ErrTooLarge is a token beyond MaxBytes.
	ErrTooLarge = errors.New("token too large")
)

// typeJWT is the type of our tokens.
const typeJWT = "JWT"

// header is the protected header of our tokens.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

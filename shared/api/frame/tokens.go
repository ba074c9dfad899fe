package frame

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"management.platform.sh/shared/model/secret"
)

// TokenSettings say how direct cluster endpoint tokens are issued. Zero values stand for the defaults that package issuer
// has. Source: ADR-0011.
type TokenSettings struct {
	// Issuer is the URL that publishkeys is reached below, from which verifiers fetch the keys. Empty: no tokens are
	// issued.
	Issuer string
	// Audiences are whom tokens are for. Empty: the issuer.
	Audiences []string
	// MaxTTL is the longest life of a token.
	MaxTTL time.Duration
	// Algorithm is ES256 or RS256.
	Algorithm string
	// RotateEvery is how long a signing key signs, and PublishBefore how long it is published before it does.
	RotateEvery, PublishBefore time.Duration
	// SigningKeys are keys that somebody else manages, in PEM; the first one signs. Empty: they are kept in the state.
	SigningKeys secret.String
}

// CheckIssuer tells what is wrong with the URL of an issuer, without quoting it. Verifiers put paths behind it.
// Source: OpenID Connect Discovery 1.0, section 3.
func CheckIssuer(issuer string) error {
	parsed, err := url.Parse(issuer)
	switch {
	case err != nil || parsed.Scheme != "https" || parsed.Host == "":
		return errors.New("must be a URL that begins with https:// and names a host")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" || strings.Contains(issuer, "#"):
		return errors.New("must have no user, query or fragment")
	case strings.HasSuffix(issuer, "/"):
		return errors.New("must not end with a slash")
	}
	return nil
}

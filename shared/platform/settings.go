package platform

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"management.platform.sh/shared/model/secret"
)

// PatchSettings bound the evaluation of sync patches. 0 means the default of package syncpatch, and of Workers one per
// CPU. Source: ADR-0014.
type PatchSettings struct {
	// ExpressionTime and ObjectTime are the time for an expression at one path, and for all patches of an object.
	ExpressionTime, ObjectTime time.Duration
	// MemoryBytes and ResultBytes are what an evaluation may use, and what it may make.
	MemoryBytes, ResultBytes int64
	// Depth is how deep calls and results may be nested.
	Depth int
	// Workers is how many evaluations run at a time, each in a process of its own.
	Workers int
	// InProcess evaluates without workers: for trusted patches, since limits do not hold within a single operation then.
	InProcess bool
}

// The bounds of PatchSettings, whoever sets them. Source: ADR-0014.
const (
	LeastPatchTime   = time.Millisecond
	MostPatchTime    = 25 * time.Second
	LeastPatchMemory = 16 << 20
	MostPatchMemory  = 1 << 30
	LeastPatchResult = 1 << 10
	MostPatchResult  = 16 << 20
	LeastPatchDepth  = 10
	MostPatchDepth   = 1000
	MostPatchWorkers = 64
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

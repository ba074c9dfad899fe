// Package token has the form of direct cluster endpoint tokens: their claims, how they are signed, and how a receiver
// verifies them. Programs of connected clusters use it as well as this API, so it needs no state and has few
// dependencies. It refuses what it does not understand: a claim with two values, a scope with an unknown restriction, a
// key that is too weak. It does not decide which caller gets a token. Source: Spec 2.4, 5.3; RFC 7515, 7517, 7519,
// 7638, 8725; ADR-0012.
package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"management.platform.sh/shared/model"
)

// MaxBytes is the maximum size of a token. Gateways and servers limit their headers to about this size; larger tokens
// are neither signed nor read. Source: ADR-0012.
const MaxBytes = 16 << 10

// Claims are the content of a token. In JSON they are the members iss, sub, aud (an array), iat, nbf, exp (whole
// seconds), jti, groups and scope. Times are UTC, without fractions of a second. Source: RFC 7519 4.1; ADR-0012.
type Claims struct {
	// Issuer is the URL of the platform that signed the token.
	Issuer string
	// Subject is the username that clusters see.
	Subject string
	// Audience names the verifiers that the token is for. It is never empty.
	Audience []string
	// IssuedAt is when the token was signed.
	IssuedAt time.Time
	// NotBefore is the moment from which the token is accepted.
	NotBefore time.Time
	// Expires is the moment from which the token is refused.
	Expires time.Time
	// ID is unique to this token.
	ID string
	// Groups are the groups of the subject; they may be empty.
	Groups []string
	// Scope narrows the token. Nil does not narrow it, an empty scope permits nothing. Source: Spec 2.3.
	Scope *model.Scope
}

// HasAudience reports whether the token is for one of the audiences.
func (c Claims) HasAudience(audiences ...string) bool {
	return slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(audiences, a) })
}

// wire is the JSON form of Claims.
type wire struct {
	Issuer    string          `json:"iss"`
	Subject   string          `json:"sub"`
	Audience  audience        `json:"aud"`
	IssuedAt  int64           `json:"iat"`
	NotBefore int64           `json:"nbf"`
	Expires   int64           `json:"exp"`
	ID        string          `json:"jti"`
	Groups    []string        `json:"groups,omitempty"`
	Scope     json.RawMessage `json:"scope,omitempty"`
}

// audience is one string or several. Source: RFC 7519 4.1.3.
type audience []string

// UnmarshalJSON reads a string or an array of strings.
func (a *audience) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*a = make(audience, 1)
		return json.Unmarshal(text, &(*a)[0])
	}
	return json.Unmarshal(text, (*[]string)(a))
}

func (c Claims) wire() (w wire, err error) {
	w = wire{
		Issuer: c.Issuer, Subject: c.Subject, Audience: c.Audience, ID: c.ID, Groups: c.Groups,
		IssuedAt: c.IssuedAt.Unix(), NotBefore: c.NotBefore.Unix(), Expires: c.Expires.Unix(),
	}
	if c.Scope != nil {
		w.Scope, err = json.Marshal(c.Scope)
	}
	return w, err
}

// check returns ErrMalformed for empty claims and times out of range.
func (w wire) check() error {
	if w.Issuer == "" || w.Subject == "" || w.ID == "" || len(w.Audience) == 0 || slices.Contains(w.Audience, "") {
		return fmt.Errorf("%w: iss, sub, aud and jti must not be empty", ErrMalformed)
	}
	for _, seconds := range []int64{w.IssuedAt, w.NotBefore, w.Expires} {
		if seconds < 0 || seconds > maxSeconds {
			return fmt.Errorf("%w: iat, nbf and exp must be seconds since 1970", ErrMalformed)
		}
	}
	return nil
}

func (c Claims) MarshalJSON() ([]byte, error) {
	w, err := c.wire()
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads claims as ParseClaims does.
func (c *Claims) UnmarshalJSON(text []byte) error {
	parsed, err := ParseClaims(text)
	if err == nil {
		*c = parsed
	}
	return err
}

// maxSeconds is 9999-12-31T23:59:59Z, the last second that RFC 3339 can write.
const maxSeconds = 253402300799

// ParseClaims reads the payload of a token. It refuses, with ErrMalformed: a duplicate member at any depth; a claim of
// Claims that is null; a missing claim of Claims, except groups and scope; names in another case; a scope with fields
// that this build does not know, because one of them could be a restriction; times that are not whole seconds. Other
// claims are ignored.
func ParseClaims(text []byte) (Claims, error) {
	members, err := object(text)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: the claims: %w", ErrMalformed, err)
	}
	refuse := func(format string, args ...any) (Claims, error) {
		return Claims{}, fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	for _, name := range []string{"iss", "sub", "aud", "iat", "nbf", "exp", "jti"} {
		if _, there := members[name]; !there {
			return refuse("the claim %q is missing", name)
		}
	}
	for _, name := range []string{"iss", "sub", "aud", "iat", "nbf", "exp", "jti", "groups", "scope"} {
		if value, there := members[name]; there && value == nil {
			return refuse("the claim %q is null", name)
		}
	}
	for _, name := range []string{"aud", "groups"} {
		if list, ok := members[name].([]any); ok && slices.Contains(list, nil) {
			return refuse("the claim %q holds null", name)
		}
	}
	var w wire
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &w); err != nil {
		return refuse("the claims have a wrong type")
	}
	if err := w.check(); err != nil {
		return Claims{}, err
	}
	claims := Claims{
		Issuer: w.Issuer, Subject: w.Subject, Audience: w.Audience, ID: w.ID, Groups: w.Groups,
		IssuedAt: time.Unix(w.IssuedAt, 0).UTC(), NotBefore: time.Unix(w.NotBefore, 0).UTC(), Expires: time.Unix(w.Expires, 0).UTC(),
	}
	if w.Scope != nil {
		if claims.Scope, err = ParseScope(w.Scope); err != nil {
			return Claims{}, fmt.Errorf("%w: the claim \"scope\": %w", ErrMalformed, err)
		}
	}
	return claims, nil
}

// ParseScope reads a scope in JSON. It refuses a scope with fields that this build does not know, because one of them
// could be a restriction.
func ParseScope(text []byte) (*model.Scope, error) {
	scope := &model.Scope{}
	strict, err := kjson.UnmarshalStrict(text, scope)
	if err != nil || len(strict) > 0 || !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return nil, errors.New("unsupported scope")
	}
	return scope, nil
}

// object reads a JSON object, in UTF-8 and without duplicate members.
func object(text []byte) (map[string]any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not UTF-8")
	}
	var members map[string]any
	strict, err := kjson.UnmarshalStrict(text, &members)
	switch {
	case err != nil || members == nil:
		return nil, errors.New("is not a JSON object")
	case len(strict) > 0:
		return nil, errors.New("has a duplicate member")
	}
	return members, nil
}

package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// newKeySet returns the keys at an address, which are read when they are needed. Keys that cannot be read are left out.
func newKeySet(ctx context.Context, client *http.Client, address string) goidc.KeySet {
	reading := *client
	reading.Transport = readableKeys{client.Transport}
	return goidc.NewRemoteKeySet(goidc.ClientContext(ctx, &reading), address)
}

// readableKeys leaves out of a JWK set each key that the library cannot read, since the library refuses the set for it.
// Source: RFC 7517, 5.
type readableKeys struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readableKeys) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		// The library refuses the beginning of a set that is too large.
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil //nolint:nilerr // the library says what is wrong
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(text, &set) == nil {
		set.Keys = slices.DeleteFunc(set.Keys, func(key json.RawMessage) bool { return json.Unmarshal(key, &jose.JSONWebKey{}) != nil })
		if text, err = json.Marshal(set); err != nil {
			return nil, err
		}
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}

// mistakeOf says which check an ID token fails, with what the settings want and what the token says. It reads the token without believing it.
// Unsigned means that no key of the provider fits.
func mistakeOf(raw, issuer string, settings source, now time.Time, unsigned bool, err error) string {
	var known []jose.SignatureAlgorithm
	for _, name := range algorithms {
		known = append(known, jose.SignatureAlgorithm(name))
	}
	var claims struct {
		Issuer   string       `json:"iss"`
		Audience jwt.Audience `json:"aud"`
	}
	token, malformed := jose.ParseSigned(raw, known)
	var expired *goidc.TokenExpiredError
	switch {
	case malformed != nil || json.Unmarshal(token.UnsafePayloadWithoutVerification(), &claims) != nil:
		return "is no signed token, or is signed with an algorithm other than " + strings.Join(algorithms, ", ")
	case !settings.tenants && claims.Issuer != issuer:
		return fmt.Sprintf("names the issuer %q, not %q", claims.Issuer, issuer)
	case !claims.Audience.Contains(settings.ClientID):
		return fmt.Sprintf("is not for the client %q", settings.ClientID)
	case errors.As(err, &expired):
		return fmt.Sprintf("expired at %s, and it is %s here", expired.Expiry.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case unsigned:
		return fmt.Sprintf("is signed with no key of the provider, whose ID would be %q", token.Signatures[0].Header.KeyID)
	default:
		return "is not valid yet, by its claim nbf"
	}
}

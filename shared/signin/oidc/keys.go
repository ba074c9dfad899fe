package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"management.platform.sh/shared/signin/upstream"
)

// keySet is the key set at an address. It is fetched when a signature is verified. Keys that cannot be read are left out.
type keySet struct {
	goidc.KeySet
	// latest is the latest fetch of the keys.
	latest *upstream.Exchange
}

// newKeySet returns the keys at an address.
func newKeySet(ctx context.Context, client *http.Client, address string) keySet {
	observed, latest := upstream.Observe(client, upstream.KeySet)
	return keySet{goidc.NewRemoteKeySet(goidc.ClientContext(ctx, observed), address), latest}
}

// explainTokenError says which check an ID token fails, with the wanted and the actual value. It reads the token without trusting it.
// Unsigned means that no key of the provider fits.
func explainTokenError(raw, issuer string, config providerConfig, now time.Time, unsigned bool, err error) string {
	var accepted []jose.SignatureAlgorithm
	for _, name := range algorithms {
		accepted = append(accepted, jose.SignatureAlgorithm(name))
	}
	token, malformed := jose.ParseSigned(raw, accepted)
	claims := map[string]json.RawMessage{}
	if malformed != nil || json.Unmarshal(token.UnsafePayloadWithoutVerification(), &claims) != nil {
		return "is no signed token, or is signed with an algorithm other than " + strings.Join(algorithms, ", ")
	}
	var read struct {
		issuer, subject, nonce string
		audience               jwt.Audience
		expiry, issued         float64
	}
	for _, claim := range []struct {
		name     string
		into     any
		required bool
	}{
		{"iss", &read.issuer, true}, {"aud", &read.audience, true}, {"exp", &read.expiry, true}, {"iat", &read.issued, false},
		{"sub", &read.subject, false}, {"nonce", &read.nonce, false},
	} {
		switch text := string(claims[claim.name]); {
		case text == "" || text == "null":
			// The library reads no null as a time.
			if claim.required || text == "null" && claim.name == "iat" {
				return "has no claim " + claim.name
			}
		case json.Unmarshal(claims[claim.name], claim.into) != nil:
			return "has a claim " + claim.name + " of another type"
		}
	}
	var expired *goidc.TokenExpiredError
	switch {
	case !config.multiTenant && read.issuer != issuer:
		return fmt.Sprintf("names the issuer %q, not %q", read.issuer, issuer)
	case !read.audience.Contains(config.ClientID):
		return fmt.Sprintf("is not for the client %q", config.ClientID)
	case errors.As(err, &expired):
		return fmt.Sprintf("expired at %s, and it is %s here", expired.Expiry.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case unsigned:
		return fmt.Sprintf("is signed with no key of the provider, whose ID would be %q", token.Signatures[0].Header.KeyID)
	default:
		return "is not valid yet, by its claim nbf"
	}
}

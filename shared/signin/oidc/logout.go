package oidc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/upstream"
)

// logoutEvent is the member of the claim events that makes a token a logout token.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// maxAgeWithoutExpiry is the lifetime of a logout token without the claim exp, which has been required since the end of 2023. Older servers
// do not send it.
const maxAgeWithoutExpiry = 2 * time.Minute

// logoutTypes are the types that a logout token may name in its header. No type means JWT.
var logoutTypes = []string{"", "jwt", "logout+jwt", "application/logout+jwt"}

// VerifyLogoutToken verifies a logout token. The library checks the signature, the issuer and the audience. The checks of logout tokens
// alone are made here, because the library refuses a token without exp. Source: OpenID Connect Back-Channel Logout 1.0, 2.4 and 2.6;
// ADR-0042.
func (p *Providers) VerifyLogoutToken(ctx context.Context, conn provider.Connector, raw string) (provider.LogoutToken, error) {
	settings := conn.Settings.OIDC
	if kind, ok := tokenType(raw); !ok || !slices.Contains(logoutTypes, strings.ToLower(kind)) {
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it is no logout token")
	}
	var token *goidc.IDToken
	trust := upstream.Trust{CAFile: settings.CAFile, Insecure: settings.InsecureCA}
	err := OpenIssuers(p.env).verify(
		ctx, settings.IssuerURL, trust, &goidc.Config{ClientID: settings.ClientID, SkipExpiryCheck: true},
		func(ctx context.Context, verifier *goidc.IDTokenVerifier) (err error) {
			token, err = verifier.Verify(ctx, raw)
			return err
		})
	switch {
	case errors.Is(err, ErrUnreachable):
		return provider.LogoutToken{}, refusal.Unreachable(err)
	case err != nil:
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("the provider has not signed it, or it is not for this client")
	}
	var claims struct {
		ID      string                     `json:"jti"`
		Session string                     `json:"sid"`
		Events  map[string]json.RawMessage `json:"events"`
		// Nonce marks an ID token, also if it is null.
		Nonce json.RawMessage `json:"nonce"`
	}
	now := p.env.Now()
	switch {
	case token.Claims(&claims) != nil || !bytes.HasPrefix(claims.Events[logoutEvent], []byte("{")):
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("its event is absent or not an object")
	case claims.ID == "":
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it has no jti")
	case token.Subject == "" && claims.Session == "":
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it has neither sub nor sid")
	case claims.Nonce != nil:
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it has a nonce, as ID tokens have")
	case len(token.Audience) != 1:
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it is for others as well")
	case token.IssuedAt.Unix() <= 0 || token.IssuedAt.After(now.Add(skew)):
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it does not say when it was issued, or was issued in the future")
	case !token.Expiry.IsZero() && !now.Before(token.Expiry):
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it has expired")
	case token.Expiry.IsZero() && !now.Before(token.IssuedAt.Add(maxAgeWithoutExpiry)):
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it does not say when it expires, and was issued more than " + maxAgeWithoutExpiry.String() + " ago")
	case !now.Before(token.IssuedAt.Add(provider.MaxLogoutTokenAge)):
		return provider.LogoutToken{}, refusal.LogoutTokenRefused("it was issued more than " + provider.MaxLogoutTokenAge.String() + " ago")
	}
	return provider.LogoutToken{ID: claims.ID, SessionID: claims.Session, Subject: token.Subject}, nil
}

// tokenType returns the type in the header of a token. False: the text is not a token.
func tokenType(raw string) (string, bool) {
	header, _, _ := strings.Cut(raw, ".")
	text, err := base64.RawURLEncoding.DecodeString(header)
	var fields struct {
		Type string `json:"typ"`
	}
	return fields.Type, err == nil && json.Unmarshal(text, &fields) == nil
}

// Revoke revokes the refresh token of a session. Source: RFC 7009, 2.1; ADR-0042.
func (p *Providers) Revoke(ctx context.Context, conn provider.Connector, session provider.Session) (bool, error) {
	config := providerConfig{OIDCProvider: conn.Settings.OIDC}
	if session.RefreshToken == "" {
		return false, nil
	}
	idp, err := p.discover(ctx, config, conn.Fingerprint())
	if err != nil || idp.revocationEndpoint == "" {
		return false, err
	}
	form := url.Values{"token": {session.RefreshToken.Reveal()}, "token_type_hint": {"refresh_token"}}
	if idp.revocationAuthStyle == oauth2.AuthStyleInParams {
		form.Set("client_id", config.ClientID)
		if config.ClientSecret != "" {
			form.Set("client_secret", config.ClientSecret.Reveal())
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, idp.revocationEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return false, refusal.Misconfigured("the revocation endpoint of the provider is not an https URL")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if idp.revocationAuthStyle == oauth2.AuthStyleInHeader {
		request.SetBasicAuth(url.QueryEscape(config.ClientID), url.QueryEscape(config.ClientSecret.Reveal()))
	}
	answer, err := idp.client.Do(request)
	if err != nil {
		return false, upstream.TranslateError(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return false, refusal.Misconfigured("the provider answers " + strconv.Itoa(answer.StatusCode) + " to a revocation")
	}
	return true, nil
}

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

	"management.platform.sh/shared/signin"
	"management.platform.sh/shared/signin/upstream"
)

// logoutEvent is the member of the claim events that makes a token a logout token.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// withoutExpiry is how long a logout token counts that does not say when it expires. The claim exp has been required since the end of 2023, and
// servers from before do not send it.
const withoutExpiry = 2 * time.Minute

// logoutTypes are the types that a logout token may name in its header. None is as good as JWT.
var logoutTypes = []string{"", "jwt", "logout+jwt", "application/logout+jwt"}

// Ended implements signin.Notifier. The library checks the signature, the issuer and the audience. What it checks of logout tokens alone is checked
// here, because it refuses a token without exp. Source: OpenID Connect Back-Channel Logout 1.0, 2.4 and 2.6; ADR-0042.
func (p *Providers) Ended(ctx context.Context, connector signin.Connector, raw string) (signin.Ended, error) {
	settings := connector.Settings.OIDC
	if kind, is := typeOf(raw); !is || !slices.Contains(logoutTypes, strings.ToLower(kind)) {
		return signin.Ended{}, signin.NotLoggedOut("it is no logout token")
	}
	var token *goidc.IDToken
	trust := upstream.Trust{CAFile: settings.CAFile, Insecure: settings.InsecureCA}
	err := OpenIssuers(p.env).check(
		ctx, settings.IssuerURL, trust, &goidc.Config{ClientID: settings.ClientID, SkipExpiryCheck: true},
		func(ctx context.Context, verifier *goidc.IDTokenVerifier) (err error) {
			token, err = verifier.Verify(ctx, raw)
			return err
		})
	switch {
	case errors.Is(err, ErrUnreachable):
		return signin.Ended{}, signin.Unreachable(err)
	case err != nil:
		return signin.Ended{}, signin.NotLoggedOut("the provider has not signed it, or it is not for this client")
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
		return signin.Ended{}, signin.NotLoggedOut("its event is absent or not an object")
	case claims.ID == "":
		return signin.Ended{}, signin.NotLoggedOut("it has no jti")
	case token.Subject == "" && claims.Session == "":
		return signin.Ended{}, signin.NotLoggedOut("it has neither sub nor sid")
	case claims.Nonce != nil:
		return signin.Ended{}, signin.NotLoggedOut("it has a nonce, as ID tokens have")
	case len(token.Audience) != 1:
		return signin.Ended{}, signin.NotLoggedOut("it is for others as well")
	case token.IssuedAt.Unix() <= 0 || token.IssuedAt.After(now.Add(skew)):
		return signin.Ended{}, signin.NotLoggedOut("it does not say when it was issued, or was issued in the future")
	case !token.Expiry.IsZero() && !now.Before(token.Expiry):
		return signin.Ended{}, signin.NotLoggedOut("it has expired")
	case token.Expiry.IsZero() && !now.Before(token.IssuedAt.Add(withoutExpiry)):
		return signin.Ended{}, signin.NotLoggedOut("it does not say when it expires, and was issued more than " + withoutExpiry.String() + " ago")
	case !now.Before(token.IssuedAt.Add(signin.LogoutTokenAge)):
		return signin.Ended{}, signin.NotLoggedOut("it was issued more than " + signin.LogoutTokenAge.String() + " ago")
	}
	return signin.Ended{TokenID: claims.ID, Session: claims.Session, Subject: token.Subject}, nil
}

// typeOf returns the type that the header of a token names. False: it is no token.
func typeOf(raw string) (string, bool) {
	header, _, _ := strings.Cut(raw, ".")
	text, err := base64.RawURLEncoding.DecodeString(header)
	var said struct {
		Type string `json:"typ"`
	}
	return said.Type, err == nil && json.Unmarshal(text, &said) == nil
}

// Revoke implements signin.Revoker. Source: RFC 7009, 2.1; ADR-0042.
func (p *Providers) Revoke(ctx context.Context, connector signin.Connector, session signin.Session) (bool, error) {
	settings := source{OIDCProvider: connector.Settings.OIDC}
	if session.Refresh == "" {
		return false, nil
	}
	found, err := p.get(ctx, settings, connector.Fingerprint())
	if err != nil || found.revocation == "" {
		return false, err
	}
	form := url.Values{"token": {session.Refresh.Reveal()}, "token_type_hint": {"refresh_token"}}
	if found.revocationStyle == oauth2.AuthStyleInParams {
		form.Set("client_id", settings.ClientID)
		if settings.ClientSecret != "" {
			form.Set("client_secret", settings.ClientSecret.Reveal())
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, found.revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return false, signin.Misconfigured("the revocation endpoint of the provider is not an https URL")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if found.revocationStyle == oauth2.AuthStyleInHeader {
		request.SetBasicAuth(url.QueryEscape(settings.ClientID), url.QueryEscape(settings.ClientSecret.Reveal()))
	}
	answer, err := found.client.Do(request)
	if err != nil {
		return false, upstream.Unanswered(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return false, signin.Misconfigured("the provider answers " + strconv.Itoa(answer.StatusCode) + " to a revocation")
	}
	return true, nil
}

// Package provider is the contract of the providers at which people sign in: what a step gives to a provider, and what a provider says of a
// person. The packages oidc, saml, codehost and clustermanager implement it; package connectors has the provider of each kind. Source: Spec
// 5.4; ADR-0031.
package provider

import (
	"context"
	"net/url"
	"time"

	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/refusal"
)

// Connector is a connector of the configuration at which people can sign in.
type Connector = connector.Connector

// Request identifies one attempt. A provider repeats it in its response.
type Request struct{ State, Nonce, Verifier string }

// Response is the authorization response that a browser brings from a provider.
type Response struct {
	// Request is the request of the attempt.
	Request
	// Values are the parameters with which the browser comes.
	Values url.Values
}

// Code returns the authorization code of a response, and its parameter iss (RFC 9207); an empty issuer is absent. Errors: Refusal, also for
// an error response.
func (a Response) Code() (code, issuer string, err error) {
	params, err := oauth.Parameters(a.Values, "code", "iss", "error", "error_description")
	switch {
	case err != nil:
		return "", "", err
	case params[2] != "":
		return "", "", refusal.ByProvider(params[2] + " " + params[3])
	case params[0] == "":
		return "", "", refusal.ByProvider("no code")
	}
	return params[0], params[1], nil
}

// Person is a person as a provider describes them. Groups are the groups of the provider.
type Person struct {
	Subject, Username, PreferredUsername, DisplayName, Email string
	EmailVerified                                            bool
	Groups                                                   []string
	// Absent names the settings of the connector whose claims did not come, each with its claim.
	Absent []string
	// LeftOut names what came, decides nothing and cannot be read.
	LeftOut []string
	Extra   map[string]string
	// Claims are the names of all claims that came, sorted. Only trials show them.
	Claims []string `json:"-"`
	// SessionEnds is when the session at the provider ends. The key ends with it. Zero: the provider does not say.
	SessionEnds time.Time
	// SameGroups means that a provider that was asked again does not name the groups: the person keeps the groups of the last
	// sign-in.
	SameGroups bool
	// Session has the tokens with which the platform can ask the provider again. It proves nothing about the person.
	Session Session `json:"-"`
}

// Session has the tokens of a session at a provider, with which the platform refreshes the person, and the names by which the provider may
// end it. The zero value has nothing.
type Session struct {
	// AccessToken and RefreshToken are tokens of the provider.
	AccessToken, RefreshToken secret.String
	// ID is what the provider calls the session of the browser, and Subject what it calls the person: the claims sid and sub. The state
	// has digests of them. A provider that is asked again need not name them.
	ID, Subject string
}

// Refresher asks a provider again about a person who has signed in there. Implementations are safe for concurrent use.
type Refresher interface {
	// Refresh returns who the owner of a session is now. It passes new tokens to keep before it uses them, because the old tokens
	// may not work any more, and stops if keep fails. Errors: a definite Refusal if the provider, or the settings of the
	// connector, refuse the person; the error of keep; any other error means that the answer is not known.
	Refresh(ctx context.Context, connector Connector, session Session, keep func(Session) error) (Person, error)
}

// Revoker revokes refresh tokens at a provider. Implementations are safe for concurrent use.
type Revoker interface {
	// Revoke tells a provider that the refresh token of a session is not used any more. False: the provider takes none back. Errors:
	// Refusal; the token may work or not.
	Revoke(ctx context.Context, connector Connector, session Session) (bool, error)
}

// SessionProvider refreshes sessions at providers and revokes their tokens.
type SessionProvider interface {
	Refresher
	Revoker
}

// Provider speaks the protocol of a connector. Implementations are safe for concurrent use.
type Provider interface {
	// AuthorizationURL returns the address at which the person signs in. Errors: Refusal.
	AuthorizationURL(ctx context.Context, connector Connector, request Request) (string, error)
	// HandleCallback returns who has signed in. Errors: Refusal; on an error no person is signed in, whatever the provider
	// answers.
	HandleCallback(ctx context.Context, connector Connector, answer Response) (Person, error)
	// EndSessionURL returns the address at which the session of a person at the connector ends. It leads back to the address in the
	// configuration alone. Empty: the connector has no such address. Errors: Refusal.
	EndSessionURL(ctx context.Context, connector Connector) (string, error)
}

// LogoutToken has the claims of a verified logout token. One of SessionID and Subject may be empty.
type LogoutToken struct {
	// ID identifies the token at its provider.
	ID string
	// SessionID is what the provider calls the session that has ended, and Subject what it calls the person.
	SessionID, Subject string
}

// LogoutVerifier verifies the logout tokens of providers. Implementations are safe for concurrent use.
type LogoutVerifier interface {
	// VerifyLogoutToken returns what a logout token of a connector says. Errors: Refusal.
	VerifyLogoutToken(ctx context.Context, connector Connector, token string) (LogoutToken, error)
}

// MaxLogoutTokenAge is the age from which a logout token is refused.
const MaxLogoutTokenAge = time.Hour

// TokenField is the field of a form in which a person enters a token of a connector.
const TokenField = "token"

// LogoutNames returns digests of the session ID and the subject, by which a connector may end a session later. Nil: the connector ends no
// sessions.
func LogoutNames(conn Connector, session Session) []string {
	if conn.Kind != connector.OIDC {
		return nil
	}
	var names []string
	if session.ID != "" {
		names = append(names, digest.Sum("sid", conn.ID, session.ID))
	}
	if session.Subject != "" {
		names = append(names, digest.Sum("sub", conn.ID, session.Subject))
	}
	return names
}

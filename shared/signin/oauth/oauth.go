// Package oauth has what the steps of a login share of OAuth 2.0: the only client, grant types, paths, parameters and error responses.
// Source: RFC 6749, 7636, 8252, 8628; ADR-0031.
package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"management.platform.sh/shared/signin/refusal"
)

// ClientID is the client_id of the only client: the program platform, and each program that asks as it does. The client is public: its
// secret is empty.
const ClientID = "platform-cli"

// TokenExchangeGrant is the grant_type of a token exchange. Source: RFC 8693, 2.1.
const TokenExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange" //nolint:gosec // it is a name, and no credential

// OfflineAccess is the scope with which a program asks for a refresh token. Source: OpenID Connect Core, 11; ADR-0045.
const OfflineAccess = "offline_access"

// DeviceGrant is the grant_type of a program that waits until a person enters its code. Source: RFC 8628, 3.4.
const DeviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// ConsolePath is the path of the console. The console is a client like any other, and ConsolePath is its redirect URI.
const ConsolePath = "/console"

// AuthorizePath is the path of the authorization endpoint, for programs that know no connector. Source: RFC 6749, 3.1.
const AuthorizePath = "/auth/authorize"

// RevokePath is the path at which clients of OAuth revoke a token. Source: RFC 7009, 2.
const RevokePath = "/auth/revoke"

// DevicePath is the path of the verification URI, the page where a person enters a user code. Source: RFC 8628, 3.3.
const DevicePath = "/auth/device"

// OutOfBand is the redirect_uri of a program that sends the password itself, so that no browser brings it the code.
const OutOfBand = "urn:ietf:wg:oauth:2.0:oob"

// Error says what is wrong with the request of a program, in the words of OAuth. Source: RFC 6749, 5.2; RFC 8628, 3.5.
type Error struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
	// Status is the status of the answer.
	Status int `json:"-"`
}

// Error returns the code.
func (e *Error) Error() string { return e.Code + ": " + e.Description }

// NewError returns an Error with the status of most of them.
func NewError(code, description string) *Error { return &Error{code, description, 400} }

// CheckClient checks the client_id of a request, which is in the form, in the HTTP Basic authentication, or in both. Where optional is
// true, the client may be absent. Error: Error. Source: RFC 6749, 2.3.1, 3.2.1 and 5.2.
func CheckClient(form url.Values, basic *url.Userinfo, mayLeaveOut bool) error {
	id, err := Parameter(form, "client_id")
	if err != nil {
		return NewError("invalid_request", "client_id is given more than once")
	}
	if basic == nil {
		if id == ClientID || id == "" && mayLeaveOut {
			return nil
		}
		return NewError("invalid_client", "client_id must be "+ClientID)
	}
	if password, _ := basic.Password(); basic.Username() != ClientID || password != "" || id != "" && id != ClientID {
		refused := NewError("invalid_client", "the client must be "+ClientID+", with an empty secret")
		refused.Status = 401
		return refused
	}
	return nil
}

// Parameter returns the only value of a parameter; empty: it is absent. Error: a Refusal if the parameter has several values.
func Parameter(values url.Values, name string) (string, error) {
	switch given := values[name]; len(given) {
	case 0:
		return "", nil
	case 1:
		return given[0], nil
	default:
		return "", refusal.BadRequest("the parameter " + name + " is given more than once")
	}
}

// Parameters returns the values of several parameters, in the order of names. Errors: as Parameter.
func Parameters(values url.Values, names ...string) ([]string, error) {
	results := make([]string, len(names))
	for i, name := range names {
		var err error
		if results[i], err = Parameter(values, name); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// S256 is the challenge of a verifier. Source: RFC 7636, 4.2.
func S256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// IsUnreserved reports whether a text has a length and only unreserved characters. Source: RFC 3986, 2.3.
func IsUnreserved(text string, minLength, maxLength int) bool {
	if len(text) < minLength || len(text) > maxLength {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-._~", c)
	})
}

// IsLoopbackRedirect reports whether an address is a redirect URI on the computer of the browser: http, one of two literal addresses, a
// port and a path. A name such as localhost may lead elsewhere. Source: RFC 8252, 7.3 and 8.3.
func IsLoopbackRedirect(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" || parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" ||
		strings.Contains(address, "#") || parsed.Opaque != "" {
		return false
	}
	port := parsed.Port()
	if port == "" || parsed.Host != "127.0.0.1:"+port && parsed.Host != "[::1]:"+port {
		return false
	}
	path, simple := strings.CutPrefix(parsed.EscapedPath(), "/")
	for part := range strings.SplitSeq(path, "/") {
		simple = simple && (path == "" || IsUnreserved(part, 1, 64) && strings.Trim(part, ".") != "")
	}
	return simple && address == "http://"+parsed.Host+parsed.EscapedPath()
}

// Origin returns the origin of an address.
func Origin(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// WithQuery returns an address with parameters.
func WithQuery(address string, parameters url.Values) string {
	return address + "?" + parameters.Encode()
}

// GrantedScope returns the granted part of the requested scopes: OfflineAccess or nothing. Unknown scopes are left out: openid asks for an
// ID token, which the platform does not issue. Nil: no scope was requested. Source: RFC 6749, 3.3.
func GrantedScope(scope string) *string {
	scopes := strings.Fields(scope)
	if len(scopes) == 0 {
		return nil
	}
	granted := ""
	if slices.Contains(scopes, OfflineAccess) {
		granted = OfflineAccess
	}
	return &granted
}

// randomBytes is the size of a state, nonce, verifier and code.
const randomBytes = 32

// RandomText returns 32 random bytes in base64url.
func RandomText(reader io.Reader) (string, error) {
	var drawn [randomBytes]byte
	if _, err := io.ReadFull(reader, drawn[:]); err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(drawn[:]), nil
}

// EqualSecrets compares two secrets in constant time. An empty secret equals nothing.
func EqualSecrets(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

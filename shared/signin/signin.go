// Package signin signs people in: it sends them to the connector that they choose, learns from it who they are, finds or makes their
// user, and gives an access key of the type Login to the program that asked. Before a connector has said who somebody is, nothing
// is stored: the attempt is in a sealed cookie of the browser. The key is made when the program fetches it, so that no URL, cookie
// or record has it. Source: Spec 5.4; ADR-0031.
//
// The package knows no HTTP and no protocol of a connector: the frame serves it, and package connectors has the Provider of each kind.
package signin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Resource is the name under which sign-ins are stored in the state. Clients cannot read it.
const Resource = "logins"

// ClientID is the id of the only client: the program platform, and each program that asks as it does. It is public: its secret is empty.
const ClientID = "platform-cli"

// ExchangeGrant is the grant_type of a job that exchanges its token. Source: RFC 8693, 2.1.
const ExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

// ConsolePath is the path of the console. The console asks as a program does, and gets its code there.
const ConsolePath = "/console"

const (
	// attemptLifetime is how long a person has for a sign-in, from the start to the confirmation.
	attemptLifetime = 10 * time.Minute
	// codeLifetime is how long a program has to fetch the key after that.
	codeLifetime = time.Minute
	// maxAttempts is how many attempts a browser may have open, because all their cookies come with each request.
	maxAttempts = 5
	// cookiePrefix begins the names of the cookies of attempts.
	cookiePrefix = "__Host-signin-"
	// randomBytes is the size of a state, nonce, verifier and code.
	randomBytes = 32
	// stateLength is the length of a state, in characters.
	stateLength = 43
)

// Connector is a connector of the configuration at which people can sign in.
type Connector = connector.Connector

// Connectors returns the connectors of a configuration at which people can sign in, in its order.
func Connectors(config *model.ConfigStatus) []Connector {
	return slices.DeleteFunc(connector.All(config), func(conn Connector) bool { return !conn.Usable() })
}

// Request is what belongs to one attempt: a Provider sends it along, and finds it in the answer.
type Request struct{ State, Nonce, Verifier string }

// Response is what a browser brings back from a provider.
type Response struct {
	// Request is that of the attempt.
	Request
	// Values are the parameters with which the browser comes.
	Values url.Values
}

// Code returns the authorization code of an answer, and the parameter iss of RFC 9207; empty if there is none. Errors: Refusal, also
// for an answer that says that nobody has signed in.
func (a Response) Code() (code, issuer string, err error) {
	params, err := parameters(a.Values, "code", "iss", "error", "error_description")
	switch {
	case err != nil:
		return "", "", err
	case params[2] != "":
		return "", "", RefusedByProvider(params[2] + " " + params[3])
	case params[0] == "":
		return "", "", RefusedByProvider("no code")
	}
	return params[0], params[1], nil
}

// Person is who a provider says that somebody is. Its groups are those of the provider.
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
	// SameGroups tells that a provider that was asked again does not say the groups: those of the last sign-in stay.
	SameGroups bool
	// Session is what the provider gave to ask it again. It is no part of a proof.
	Session Session `json:"-"`
}

// Session is what a provider gave with a sign-in to ask it again, and by which it may end the sign-in later. The zero value is nothing.
type Session struct {
	// AccessToken and Refresh are tokens of the provider.
	AccessToken, RefreshToken secret.String
	// ID is what the provider calls the session of the browser, and Subject what it calls the person: the claims sid and sub. The state
	// has digests of them. A provider that is asked again need not name them.
	ID, Subject string
}

// Refresher asks a provider again about somebody who has signed in there. Implementations are safe for concurrent use.
type Refresher interface {
	// Refresh returns who the owner of a session is now. It gives new tokens to keep before it uses them, because the old ones may not
	// work any more, and asks no further if keep fails. Errors: a definite Refusal if the provider, or the settings of the connector,
	// refuse the person; that of keep; any other error says that nobody knows.
	Refresh(ctx context.Context, connector Connector, session Session, keep func(Session) error) (Person, error)
}

// Revoker gives the tokens of a session back to a provider. Implementations are safe for concurrent use.
type Revoker interface {
	// Revoke tells a provider that the refresh token of a session is not used any more. False: the provider takes none back. Errors:
	// Refusal; the token may work or not.
	Revoke(ctx context.Context, connector Connector, session Session) (bool, error)
}

// SessionProvider is what becomes of sessions at providers after the sign-in.
type SessionProvider interface {
	Refresher
	Revoker
}

// Provider speaks the protocol of a connector. Implementations are safe for concurrent use.
type Provider interface {
	// AuthorizationURL returns the address at which the person signs in. Errors: Refusal.
	AuthorizationURL(ctx context.Context, connector Connector, request Request) (string, error)
	// HandleCallback returns who has signed in. Errors: Refusal; whatever the provider answers, nobody is signed in then.
	HandleCallback(ctx context.Context, connector Connector, answer Response) (Person, error)
	// EndSessionURL returns the address at which the session of a person at the connector ends. It leads back to the address in the
	// configuration alone. Empty: the connector has no such address. Errors: Refusal.
	EndSessionURL(ctx context.Context, connector Connector) (string, error)
}

// Flow is the sign-in of an environment. It is safe for concurrent use.
type Flow struct {
	env       *platform.Environment
	records   store.Store
	sessions  store.Store
	users     *user.Registry
	directory *directory.Directory
	teams     *team.Registry
	// loginKeys creates the keys of sign-ins, and all are the keys.
	loginKeys, keys *accesskey.Registry
	// trials are the sign-ins on trial.
	trials *Trials
	// refreshAuthenticator authenticates refresh keys.
	refreshAuthenticator *auth.Authenticator
}

// Open returns the sign-in of an environment. Functions that write users or keys call kinds.Join first.
func Open(env *platform.Environment) *Flow {
	return &Flow{
		env: env, records: Records(env), sessions: Sessions(env), users: user.Open(env), directory: directory.Open(env), loginKeys: accesskey.ForLogins(accesskey.Open(env)),
		teams: team.Open(env), trials: OpenTrials(env), keys: accesskey.Open(env), refreshAuthenticator: accesskey.OpenRefreshAuthenticator(env),
	}
}

// Records returns the state of sign-ins.
func Records(env *platform.Environment) store.Store { return env.Stores(Resource) }

// FailuresResource is the name under which wrong passwords, and codes of devices, are counted in the state. Clients cannot read it.
const FailuresResource = "passwordfailures"

// Failures returns the state of the counts of attempts. Each expires with its latest entry. Source: ADR-0032.
func Failures(env *platform.Environment) store.Store { return env.Stores(FailuresResource) }

// Throttle returns what counts attempts in that state. Text is what a caller reads above a limit.
func Throttle(env *platform.Environment, text string) *throttle.Throttle {
	return &throttle.Throttle{Records: Failures(env), Now: env.Now, Text: text}
}

// Starter is the part of the sign-in before a person is known. It reads and writes no state.
type Starter struct{ env *platform.Environment }

// OpenStarter returns the doors of an environment.
func OpenStarter(env *platform.Environment) *Starter { return &Starter{env} }

// findConnector returns the connector with an ID.
func findConnector(config *model.ConfigStatus, id string) (Connector, bool) {
	for _, conn := range Connectors(config) {
		if conn.ID == id {
			return conn, true
		}
	}
	return Connector{}, false
}

// authRequest is what a program asked for that wants a key.
type authRequest struct {
	// RedirectURI is where the browser brings the code, Challenge what proves that the program asked, State what the program knows the
	// request by.
	RedirectURI   string `json:"redirect"`
	CodeChallenge string `json:"challenge"`
	State         string `json:"state"`
	// DeviceDetails is the name of the record of a device for which somebody signs in, and Code the one that they have entered. There is no
	// Redirect, Challenge and State then.
	Device   string `json:"device,omitempty"`
	UserCode string `json:"code,omitempty"`
	// Scope is what the program gets of the scopes that it asked for. Nil: it asked for none.
	Scope *string `json:"scope,omitempty"`
}

// loginAttempt is a sign-in whose person is not known. It is in a cookie, sealed.
type loginAttempt struct {
	State     string `json:"state"`
	Nonce     string `json:"nonce"`
	Verifier  string `json:"verifier"`
	Connector string `json:"connector"`
	// Fingerprint are the Fingerprint of the connector.
	Fingerprint string      `json:"settings"`
	AuthRequest authRequest `json:"client"`
	// Started is the time of the start, in Unix seconds.
	Started int64 `json:"started"`
	// Trial tells that nobody is signed in. The State was chosen by whoever began the trial.
	Trial bool `json:"trial,omitempty"`
}

// providerRequest is what the provider of the attempt gets.
func (a loginAttempt) providerRequest() Request {
	return Request{State: a.State, Nonce: a.Nonce, Verifier: a.Verifier}
}

// id names an attempt in cookies and URLs of the platform. Nobody can compute the state from it.
func (a loginAttempt) id() string { return attemptID(a.State) }

func attemptID(state string) string { return Digest("cookie", state)[:16] }

// cookieSealContext is what the cookie of an attempt is sealed for.
func cookieSealContext(id string) string { return Resource + "/cookie/" + id }

// sealAttempt returns the cookie value of an attempt.
func sealAttempt(ctx context.Context, env *platform.Environment, a loginAttempt) (string, error) {
	ring, err := env.Keyring(ctx)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("encoding a sign-in: %w", err)
	}
	sealed, err := ring.Seal(text, cookieSealContext(a.id()))
	if errors.Is(err, encryption.ErrNoKey) {
		return "", misconfigured("the platform has no encryption key").withCause(err)
	}
	return sealed, err
}

// openAttempt returns the attempt with an ID whose cookie a browser has sent.
func openAttempt(ctx context.Context, env *platform.Environment, id string, cookies map[string]string) (loginAttempt, error) {
	var opened loginAttempt
	ring, err := env.Keyring(ctx)
	if err != nil {
		return opened, err
	}
	sealed, sent := cookies[cookiePrefix+id]
	if !sent || id == "" {
		return opened, notStartedHere("cookie")
	}
	text, err := ring.Open(sealed, cookieSealContext(id))
	if err != nil || json.Unmarshal(text, &opened) != nil {
		return loginAttempt{}, notStartedHere("sealed cookie")
	}
	if age := env.Now().Sub(time.Unix(opened.Started, 0)); age < 0 || age >= attemptLifetime {
		return loginAttempt{}, expired("cookie")
	}
	return opened, nil
}

// randomToken returns a random text that nobody guesses.
func randomToken(reader io.Reader) (string, error) {
	var drawn [randomBytes]byte
	if _, err := io.ReadFull(reader, drawn[:]); err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(drawn[:]), nil
}

// Digest returns one name for several texts.
func Digest(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:])
}

// constantTimeEqual compares secrets in constant time.
func constantTimeEqual(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// S256 is the challenge of a verifier. Source: RFC 7636, 4.2.
func S256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isUnreserved reports whether a text has a length and only characters that URLs have as they are.
func isUnreserved(text string, minLength, maxLength int) bool {
	if len(text) < minLength || len(text) > maxLength {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-._~", c)
	})
}

// isLoopbackRedirect reports whether an address is one of a program on the computer of the browser: http, one of two literal addresses, a port,
// a path. A name such as localhost may lead elsewhere. Source: RFC 8252, 7.3 and 8.3.
func isLoopbackRedirect(address string) bool {
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
		simple = simple && (path == "" || isUnreserved(part, 1, 64) && strings.Trim(part, ".") != "")
	}
	return simple && address == "http://"+parsed.Host+parsed.EscapedPath()
}

// origin returns the origin of an address.
func origin(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// withQuery returns an address with parameters.
func withQuery(address string, parameters url.Values) string {
	return address + "?" + parameters.Encode()
}

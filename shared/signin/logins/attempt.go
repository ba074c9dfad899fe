package logins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/state/encryption"
)

const (
	// AttemptLifetime is how long a person has for a sign-in, from the start to the confirmation.
	AttemptLifetime = 10 * time.Minute
	// CodeLifetime is how long a program has to fetch the key after that.
	CodeLifetime = time.Minute
	// maxAttempts is how many attempts a browser may have open, because all their cookies come with each request.
	maxAttempts = 5
	// CookiePrefix begins the names of the cookies of attempts.
	CookiePrefix = "__Host-signin-"
	// StateLength is the length of a state, in characters.
	StateLength = 43
)

// Cookie is a cookie of an attempt. An empty value removes it.
type Cookie struct {
	Name, Value string
	MaxAge      time.Duration
}

// AuthRequest is the authorization request of a program (RFC 6749, 4.1.1), or the device for which a person signs in.
type AuthRequest struct {
	// RedirectURI is the address to which the browser brings the code. CodeChallenge proves that the program made the request. By
	// State, the program recognizes the request.
	RedirectURI   string `json:"redirect"`
	CodeChallenge string `json:"challenge"`
	State         string `json:"state"`
	// Device is the name of the record of a device for which a person signs in, and UserCode is the code that they have entered.
	// RedirectURI, CodeChallenge and State are empty then.
	Device   string `json:"device,omitempty"`
	UserCode string `json:"code,omitempty"`
	// Scope is the part of the requested scopes that the program gets. Nil: it requested no scopes.
	Scope *string `json:"scope,omitempty"`
}

// WithoutBrowserState returns the part of an authorization request that is stored: only the cookie has the state parameter and the user
// code.
func (c AuthRequest) WithoutBrowserState() AuthRequest {
	c.State, c.UserCode = "", ""
	return c
}

// Attempt is a login whose person is not known yet. It is sealed in a cookie.
type Attempt struct {
	State     string `json:"state"`
	Nonce     string `json:"nonce"`
	Verifier  string `json:"verifier"`
	Connector string `json:"connector"`
	// Fingerprint is the fingerprint of the connector's settings.
	Fingerprint string      `json:"settings"`
	AuthRequest AuthRequest `json:"client"`
	// Started is the time of the start, in Unix seconds.
	Started int64 `json:"started"`
	// Trial means that the attempt signs no person in. The admin or program that began the trial has the State.
	Trial bool `json:"trial,omitempty"`
}

// ProviderRequest returns the request for the provider.
func (a Attempt) ProviderRequest() provider.Request {
	return provider.Request{State: a.State, Nonce: a.Nonce, Verifier: a.Verifier}
}

// ID names an attempt in cookies and URLs of the platform. The state cannot be computed from it.
func (a Attempt) ID() string { return AttemptID(a.State) }

// AttemptID is the ID of the attempt with a state.
func AttemptID(state string) string { return digest.Sum("cookie", state)[:16] }

// cookieSealContext is what the cookie of an attempt is sealed for.
func cookieSealContext(id string) string { return Resource + "/cookie/" + id }

// sealAttempt returns the cookie value of an attempt.
func sealAttempt(ctx context.Context, env *platform.Environment, a Attempt) (string, error) {
	ring, err := env.Keyring(ctx)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("encoding a sign-in: %w", err)
	}
	sealed, err := ring.Seal(text, cookieSealContext(a.ID()))
	if errors.Is(err, encryption.ErrNoKey) {
		return "", refusal.Misconfigured("the platform has no encryption key").WithCause(err)
	}
	return sealed, err
}

// OpenAttempt returns the attempt with an ID from the cookies of a browser. Errors: Refusal if the browser did not start it, or if it has
// expired.
func OpenAttempt(ctx context.Context, env *platform.Environment, id string, cookies map[string]string) (Attempt, error) {
	var opened Attempt
	ring, err := env.Keyring(ctx)
	if err != nil {
		return opened, err
	}
	sealed, sent := cookies[CookiePrefix+id]
	if !sent || id == "" {
		return opened, refusal.NotStartedHere("cookie")
	}
	text, err := ring.Open(sealed, cookieSealContext(id))
	if err != nil || json.Unmarshal(text, &opened) != nil {
		return Attempt{}, refusal.NotStartedHere("sealed cookie")
	}
	if age := env.Now().Sub(time.Unix(opened.Started, 0)); age < 0 || age >= AttemptLifetime {
		return Attempt{}, refusal.Expired("cookie")
	}
	return opened, nil
}

// NewAttempt completes a new attempt, and returns the cookies to set. Cookies of old attempts are removed when there are more than five.
func NewAttempt(ctx context.Context, env *platform.Environment, attempt Attempt, cookies map[string]string) (Attempt, []Cookie, error) {
	attempt.Started = env.Now().Unix()
	var err error
	for _, text := range []*string{&attempt.State, &attempt.Nonce, &attempt.Verifier} {
		if *text != "" {
			continue
		}
		if *text, err = oauth.RandomText(env.Random); err != nil {
			return attempt, nil, err
		}
	}
	value, err := sealAttempt(ctx, env, attempt)
	if err != nil {
		return attempt, nil, err
	}
	newCookies := []Cookie{{Name: CookiePrefix + attempt.ID(), Value: value, MaxAge: AttemptLifetime}}
	var old []string
	for name := range cookies {
		if strings.HasPrefix(name, CookiePrefix) {
			old = append(old, name)
		}
	}
	if len(old) >= maxAttempts {
		slices.Sort(old)
		for _, name := range old {
			newCookies = append(newCookies, Cookie{Name: name})
		}
	}
	return attempt, newCookies, nil
}

package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/encryption"
)

const (
	// attemptLifetime is how long a person has for a sign-in, from the start to the confirmation.
	attemptLifetime = 10 * time.Minute
	// codeLifetime is how long a program has to fetch the key after that.
	codeLifetime = time.Minute
	// maxAttempts is how many attempts a browser may have open, because all their cookies come with each request.
	maxAttempts = 5
	// cookiePrefix begins the names of the cookies of attempts.
	cookiePrefix = "__Host-signin-"
	// stateLength is the length of a state, in characters.
	stateLength = 43
)

// Cookie is a cookie of an attempt. An empty value removes it.
type Cookie struct {
	Name, Value string
	MaxAge      time.Duration
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

// withoutBrowserState is what is stored of a program: only the cookie of its browser has the state that the program has sent, and the code
// that somebody has entered.
func (c authRequest) withoutBrowserState() authRequest {
	c.State, c.UserCode = "", ""
	return c
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
		return "", Misconfigured("the platform has no encryption key").withCause(err)
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

// newAttempt completes a new attempt, and returns the cookies that the browser keeps: the one of this attempt, and those of old attempts
// if it has too many.
func newAttempt(ctx context.Context, env *platform.Environment, attempt loginAttempt, cookies map[string]string) (loginAttempt, []Cookie, error) {
	attempt.Started = env.Now().Unix()
	var err error
	for _, text := range []*string{&attempt.State, &attempt.Nonce, &attempt.Verifier} {
		if *text != "" {
			continue
		}
		if *text, err = randomToken(env.Random); err != nil {
			return attempt, nil, err
		}
	}
	value, err := sealAttempt(ctx, env, attempt)
	if err != nil {
		return attempt, nil, err
	}
	newCookies := []Cookie{{Name: cookiePrefix + attempt.id(), Value: value, MaxAge: attemptLifetime}}
	var old []string
	for name := range cookies {
		if strings.HasPrefix(name, cookiePrefix) {
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

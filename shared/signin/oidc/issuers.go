package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/upstream"
)

// The reasons for which Issuers refuse a token.
var (
	// ErrToken: it is no token, its issuer has not signed it, or the metadata of the issuer cannot be used.
	ErrToken = errors.New("the issuer has not signed the token")
	// ErrExpired: the issuer has signed it, and it has expired.
	ErrExpired = errors.New("the token has expired")
	// ErrUnreachable: the issuer does not answer, so that nothing is known of the token.
	ErrUnreachable = errors.New("the issuer of the token does not answer")
)

const (
	// afterAnswer is how long an address of an issuer is not asked again after it has answered: tokens with unknown keys must not make
	// the platform ask all the time.
	afterAnswer = time.Minute
	// afterFailure is the same for one that has not answered.
	afterFailure = 5 * time.Second
)

// Issuers checks tokens that anybody can send, of jobs and of providers that sign people out: that an issuer has signed them, and when. An
// issuer is asked for its keys once a minute at most. It is safe for concurrent use. Source: ADR-0036, ADR-0042.
type Issuers struct {
	env *platform.Environment

	mu    sync.Mutex
	known map[string]*issuer
	paced *paces
}

// OpenIssuers returns what checks such tokens in an environment. It connects to no issuer yet.
//
//go:noinline
func OpenIssuers(env *platform.Environment) *Issuers {
	return platform.Single(env, func(env *platform.Environment) *Issuers {
		return &Issuers{env: env, known: map[string]*issuer{}, paced: &paces{now: env.Now, until: map[string]pace{}}}
	})
}

// issuer is an issuer. Its metadata are known if it has keys.
type issuer struct {
	// mu is held while the metadata are read: requests that come at the same time wait for the same answer.
	mu   sync.Mutex
	keys goidc.KeySet
	read time.Time
}

// Verify returns the claims of a token that an issuer has signed and that has not expired. It knows nothing of what the token says
// otherwise. Nothing but the address of the issuer and the addresses in its metadata is asked.
//
// Errors: ErrToken, ErrExpired and ErrUnreachable.
func (j *Issuers) Verify(ctx context.Context, from string, trust upstream.Trust, raw string) (map[string]json.RawMessage, error) {
	claims := map[string]json.RawMessage{}
	return claims, j.check(ctx, from, trust, &goidc.Config{SkipClientIDCheck: true}, func(ctx context.Context, verifier *goidc.IDTokenVerifier) error {
		token, err := verifier.Verify(ctx, raw)
		switch {
		case err != nil:
			return err
		case token.Issuer != from:
			return ErrToken
		}
		return token.Claims(&claims)
	})
}

// check lets a verifier of the library read a token of an issuer. Errors: ErrToken, ErrExpired and ErrUnreachable.
func (j *Issuers) check(
	ctx context.Context, from string, trust upstream.Trust, config *goidc.Config, read func(context.Context, *goidc.IDTokenVerifier) error,
) error {
	found, err := j.get(ctx, from, trust)
	if err != nil {
		return err
	}
	keys := &asked{KeySet: found}
	config.SupportedSigningAlgs, config.Now = algorithms, j.env.Now
	err = read(ctx, goidc.NewVerifier(from, keys, config))
	switch {
	case errors.As(err, new(*goidc.TokenExpiredError)):
		return ErrExpired
	case keys.unanswered():
		return ErrUnreachable
	case err != nil:
		return ErrToken
	}
	return nil
}

// asked are keys of an issuer that note why they verify no signature. Nil: they do, or were not asked.
type asked struct {
	goidc.KeySet
	failed error
}

// unanswered reports whether the issuer has not answered.
func (a *asked) unanswered() bool {
	return errors.As(a.failed, new(*url.Error)) && !errors.Is(a.failed, errAnswered)
}

// VerifySignature implements goidc.KeySet.
func (a *asked) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := a.KeySet.VerifySignature(ctx, raw)
	if errors.Is(err, errAnswered) {
		// Another request has read the keys meanwhile.
		payload, err = a.KeySet.VerifySignature(ctx, raw)
	}
	a.failed = err
	return payload, err
}

// get returns the keys of an issuer. Its metadata are at most ten minutes old. Errors: ErrToken and ErrUnreachable.
func (j *Issuers) get(ctx context.Context, from string, trust upstream.Trust) (goidc.KeySet, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t", from, trust.CAFile, trust.CAData, trust.Insecure))
	id := hex.EncodeToString(sum[:])
	found := j.issuer(id)
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.keys != nil && j.env.Now().Sub(found.read) < metadataFor {
		return found.keys, nil
	}
	client, err := upstream.Client(j.env, trust)
	if err != nil {
		return nil, ErrToken
	}
	client.Transport = pacedTransport{client.Transport, j.paced, id}
	// The keys are asked for later, by whichever request needs them.
	ctx = goidc.ClientContext(ctx, client)
	provider, err := goidc.NewProvider(ctx, from)
	var metadata struct {
		Keys string `json:"jwks_uri"`
	}
	switch {
	case errors.As(err, new(*url.Error)) && !errors.Is(err, errAnswered):
		return nil, ErrUnreachable
	case err != nil, provider.Claims(&metadata) != nil, metadata.Keys == "":
		return nil, ErrToken
	}
	found.keys, found.read = newKeySet(ctx, client, metadata.Keys), j.env.Now()
	return found.keys, nil
}

// issuer returns what is known of an issuer.
func (j *Issuers) issuer(id string) *issuer {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := j.known[id]
	if found == nil {
		if len(j.known) >= maxKept {
			clear(j.known)
		}
		found = &issuer{}
		j.known[id] = found
	}
	return found
}

// errAnswered says that an address is not asked because it has answered a moment ago.
var errAnswered = errors.New("the issuer has answered a moment ago")

// errFailed says that an address is not asked because it has not answered a moment ago.
var errFailed = errors.New("the issuer has not answered a moment ago")

// paces is when the addresses of issuers may be asked again.
type paces struct {
	now func() time.Time

	mu    sync.Mutex
	until map[string]pace
}

type pace struct {
	until time.Time
	why   error
}

// check returns why an address may not be asked now.
func (p *paces) check(address string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.until[address]; p.now().Before(held.until) {
		return held.why
	}
	return nil
}

// note remembers whether an address has answered.
func (p *paces) note(address string, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.until) >= maxKept {
		clear(p.until)
	}
	if answered {
		p.until[address] = pace{p.now().Add(afterAnswer), errAnswered}
	} else {
		p.until[address] = pace{p.now().Add(afterFailure), errFailed}
	}
}

// pacedTransport asks each address of an issuer only as often as its pace permits.
type pacedTransport struct {
	next  http.RoundTripper
	paces *paces
	id    string
}

// RoundTrip implements http.RoundTripper.
func (p pacedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	address := p.id + " " + request.URL.String()
	if err := p.paces.check(address); err != nil {
		return nil, err
	}
	answer, err := p.next.RoundTrip(request)
	p.paces.note(address, err == nil && answer.StatusCode == http.StatusOK)
	return answer, err
}

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
	// pauseAfterAnswer is how long an address of an issuer is not asked again after it has answered: tokens with unknown keys must not make
	// the platform ask all the time.
	pauseAfterAnswer = time.Minute
	// pauseAfterFailure is the same for one that has not answered.
	pauseAfterFailure = 5 * time.Second
)

// Issuers verifies tokens from unknown senders, such as jobs and providers with logout tokens: the signature of the issuer, and the times.
// The keys of an issuer are fetched once a minute at most. It is safe for concurrent use. Source: ADR-0036, ADR-0042.
type Issuers struct {
	env *platform.Environment

	mu     sync.Mutex
	cached map[string]*issuer
	pacer  *pacer
}

// OpenIssuers returns the verifier of an environment. It connects to no issuer yet.
//
//go:noinline
func OpenIssuers(env *platform.Environment) *Issuers {
	return platform.Single(env, func(env *platform.Environment) *Issuers {
		return &Issuers{env: env, cached: map[string]*issuer{}, pacer: &pacer{now: env.Now, next: map[string]pause{}}}
	})
}

// issuer is an issuer. Its metadata are known if it has keys.
type issuer struct {
	// mu is held while the metadata are read: requests that come at the same time wait for the same answer.
	mu        sync.Mutex
	keys      goidc.KeySet
	fetchedAt time.Time
}

// Verify returns the claims of a token that an issuer has signed and that has not expired. The caller checks all other claims. It connects
// to the address of the issuer and to the addresses in its metadata alone.
//
// Errors: ErrToken, ErrExpired and ErrUnreachable.
func (j *Issuers) Verify(ctx context.Context, issuerURL string, trust upstream.Trust, raw string) (map[string]json.RawMessage, error) {
	claims := map[string]json.RawMessage{}
	return claims, j.verify(ctx, issuerURL, trust, &goidc.Config{SkipClientIDCheck: true}, func(ctx context.Context, verifier *goidc.IDTokenVerifier) error {
		token, err := verifier.Verify(ctx, raw)
		switch {
		case err != nil:
			return err
		case token.Issuer != issuerURL:
			return ErrToken
		}
		return token.Claims(&claims)
	})
}

// verify lets a verifier of the library read a token of an issuer. Errors: ErrToken, ErrExpired and ErrUnreachable.
func (j *Issuers) verify(
	ctx context.Context, issuerURL string, trust upstream.Trust, config *goidc.Config, read func(context.Context, *goidc.IDTokenVerifier) error,
) error {
	keySet, err := j.discoverKeys(ctx, issuerURL, trust)
	if err != nil {
		return err
	}
	traced := &tracedKeySet{KeySet: keySet}
	config.SupportedSigningAlgs, config.Now = algorithms, j.env.Now
	err = read(ctx, goidc.NewVerifier(issuerURL, traced, config))
	switch {
	case errors.As(err, new(*goidc.TokenExpiredError)):
		return ErrExpired
	case traced.isUnreachable():
		return ErrUnreachable
	case err != nil:
		return ErrToken
	}
	return nil
}

// tracedKeySet is a key set that keeps the reason why it verified no signature. Nil: it verified one, or was not used.
type tracedKeySet struct {
	goidc.KeySet
	failure error
}

// isUnreachable reports whether the issuer has not answered.
func (a *tracedKeySet) isUnreachable() bool {
	return errors.As(a.failure, new(*url.Error)) && !errors.Is(a.failure, errRecentlyAnswered)
}

func (a *tracedKeySet) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := a.KeySet.VerifySignature(ctx, raw)
	if errors.Is(err, errRecentlyAnswered) {
		// Another request has read the keys meanwhile.
		payload, err = a.KeySet.VerifySignature(ctx, raw)
	}
	a.failure = err
	return payload, err
}

// discoverKeys returns the keys of an issuer. Its metadata are at most ten minutes old. Errors: ErrToken and ErrUnreachable.
func (j *Issuers) discoverKeys(ctx context.Context, issuerURL string, trust upstream.Trust) (goidc.KeySet, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t", issuerURL, trust.CAFile, trust.CAData, trust.Insecure))
	id := hex.EncodeToString(sum[:])
	cached := j.cachedIssuer(id)
	cached.mu.Lock()
	defer cached.mu.Unlock()
	if cached.keys != nil && j.env.Now().Sub(cached.fetchedAt) < metadataLifetime {
		return cached.keys, nil
	}
	client, err := upstream.NewClient(j.env, trust)
	if err != nil {
		return nil, ErrToken
	}
	client.Transport = pacedTransport{client.Transport, j.pacer, id}
	// The keys are asked for later, by whichever request needs them.
	ctx = goidc.ClientContext(ctx, client)
	provider, err := goidc.NewProvider(ctx, issuerURL)
	var metadata struct {
		Keys string `json:"jwks_uri"`
	}
	switch {
	case errors.As(err, new(*url.Error)) && !errors.Is(err, errRecentlyAnswered):
		return nil, ErrUnreachable
	case err != nil, provider.Claims(&metadata) != nil, metadata.Keys == "":
		return nil, ErrToken
	}
	cached.keys, cached.fetchedAt = newKeySet(ctx, client, metadata.Keys), j.env.Now()
	return cached.keys, nil
}

// cachedIssuer returns the cache entry of an issuer.
func (j *Issuers) cachedIssuer(id string) *issuer {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := j.cached[id]
	if entry == nil {
		if len(j.cached) >= maxCached {
			clear(j.cached)
		}
		entry = &issuer{}
		j.cached[id] = entry
	}
	return entry
}

// errRecentlyAnswered says that an address is skipped because it has answered recently.
var errRecentlyAnswered = errors.New("the issuer has answered a moment ago")

// errRecentlyFailed says that an address is skipped because it has failed recently.
var errRecentlyFailed = errors.New("the issuer has not answered a moment ago")

// pacer says when the addresses of issuers may be requested again.
type pacer struct {
	now func() time.Time

	mu   sync.Mutex
	next map[string]pause
}

type pause struct {
	until  time.Time
	reason error
}

// pauseReason returns why an address may not be asked now.
func (p *pacer) pauseReason(address string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paused := p.next[address]; p.now().Before(paused.until) {
		return paused.reason
	}
	return nil
}

// record remembers whether an address has answered.
func (p *pacer) record(address string, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.next) >= maxCached {
		clear(p.next)
	}
	if answered {
		p.next[address] = pause{p.now().Add(pauseAfterAnswer), errRecentlyAnswered}
	} else {
		p.next[address] = pause{p.now().Add(pauseAfterFailure), errRecentlyFailed}
	}
}

// pacedTransport requests each address of an issuer only as often as its pacer permits.
type pacedTransport struct {
	next  http.RoundTripper
	paces *pacer
	id    string
}

func (p pacedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	address := p.id + " " + request.URL.String()
	if err := p.paces.pauseReason(address); err != nil {
		return nil, err
	}
	answer, err := p.next.RoundTrip(request)
	p.paces.record(address, err == nil && answer.StatusCode == http.StatusOK)
	return answer, err
}

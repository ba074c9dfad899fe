// Package remote verifies the tokens of a platform in the programs of connected clusters, without a request per token. It
// fetches the public keys and the list of revoked tokens over HTTPS and keeps them for as long as the platform says. Data
// that is too old is not used: a token that cannot be checked is refused. Source: Spec 5.3; RFC 9111; ADR-0012.
//
//	platform, err := remote.New(remote.Options{Issuer: "https://platform.example", Now: time.Now})
//	...
//	claims, err := platform.Verifier("https://platform.example").Verify(ctx, bearer)
//
// # Stability
//
// No program of the platform imports this package: it is for others to import, together with what its functions return
// (token.Claims, token.Verifier and the errors of package token). Exported names and their meaning change only with a note
// in CHANGELOG.md. How soon a revoked token is refused is promised in docs/security.md, and a test measures it.
//
// # What is left to the caller
//
// The scope of a token, Claims.Scope, is not applied here: a program that ignores it gives the token too much. Access keys
// are opaque and are checked by the webhook reviewtokens.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/signing/token"
)

// Paths of the documents below the issuer. Source: ADR-0011.
const (
	keysPath = "/openid/v1/jwks"
	denyPath = "/openid/v1/revoked"
)

const (
	// DefaultMaxStale is as long as tokens live by default.
	DefaultMaxStale = time.Hour
	// RetryAfter is the shortest time between two attempts to fetch a document after a failure, and between two fetches
	// because of an unknown kid. It bounds the requests that invented kids cause.
	RetryAfter = 10 * time.Second
	// defaultAge is how long a document is fresh that does not say so itself. maxAge bounds how long any document is
	// fresh.
	defaultAge   = 5 * time.Minute
	maxAge       = 24 * time.Hour
	fetchTimeout = 5 * time.Second
	// maxDocument is the maximum size of a document, in bytes.
	maxDocument = 64 << 20
)

// ErrUnavailable means that a document could not be fetched and the stored copy is too old. The token could not be
// checked.
var ErrUnavailable = errors.New("the platform cannot be reached")

// Options name the platform and say how to use the documents that it publishes.
type Options struct {
	// Issuer is the URL of the platform, as in the claim iss of its tokens: https, or http on loopback.
	Issuer string
	// Client makes the requests; redirects are not followed. Nil: a client that trusts the system's certificate
	// authorities.
	Client *http.Client
	// MaxStale is how long keys and revocations that are no longer fresh are used while the platform does not answer.
	// 0: DefaultMaxStale; negative: they are not used.
	MaxStale time.Duration
	// WithoutDenyList ignores revocations: tokens are accepted until they expire.
	WithoutDenyList bool
	// Now is the clock, usually time.Now. It must be set.
	Now func() time.Time
}

// Platform has the keys and revocations of a platform. It is safe for concurrent use. It fetches a document when it
// first needs it.
type Platform struct {
	issuer string
	keys   *document[token.JWKS]
	denied *document[map[string]bool]
	now    func() time.Time
}

// New returns a platform. The error describes what is wrong with the options.
func New(options Options) (*Platform, error) {
	parsed, err := url.Parse(options.Issuer)
	if err != nil || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil ||
		parsed.Scheme != "https" && (parsed.Scheme != "http" || !loopback(parsed.Hostname())) {
		return nil, fmt.Errorf("the issuer %q must be an https URL without user, query and fragment", options.Issuer)
	}
	client := http.Client{Timeout: fetchTimeout}
	if options.Client != nil {
		client = *options.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	now := options.Now
	if now == nil {
		return nil, errors.New("the clock is missing: set Now")
	}
	stale := options.MaxStale
	switch {
	case stale == 0:
		stale = DefaultMaxStale
	case stale < 0:
		stale = 0
	}
	base := strings.TrimSuffix(options.Issuer, "/")
	platform := &Platform{issuer: options.Issuer, now: now, keys: newDocument(base+keysPath, &client, stale, now, readKeys)}
	if !options.WithoutDenyList {
		platform.denied = newDocument(base+denyPath, &client, stale, now, func(text []byte) (*map[string]bool, error) {
			return readList(text, options.Issuer)
		})
	}
	return platform, nil
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// Verifier returns a verifier of the platform's tokens for one of the audiences.
func (p *Platform) Verifier(audiences ...string) *token.Verifier {
	verifier := &token.Verifier{Keys: p, Issuer: p.issuer, Audiences: audiences, Now: p.now}
	if p.denied != nil {
		verifier.Revoked = p.Revoked
	}
	return verifier
}

// Key implements token.Keys. For an unknown kid, which may belong to a new key, it fetches the keys again, at most once
// in RetryAfter. Errors: token.ErrUnknownKey, ErrUnavailable.
func (p *Platform) Key(ctx context.Context, id string) (token.JWK, error) {
	keys, err := p.keys.current(ctx, false)
	if err != nil {
		return token.JWK{}, err
	}
	key, err := keys.Key(ctx, id)
	if !errors.Is(err, token.ErrUnknownKey) {
		return key, err
	}
	if keys, err = p.keys.current(ctx, true); err != nil {
		return token.JWK{}, err
	}
	return keys.Key(ctx, id)
}

// Revoked reports whether the platform has revoked a token. Error: ErrUnavailable.
func (p *Platform) Revoked(ctx context.Context, claims token.Claims) (bool, error) {
	list, err := p.denied.current(ctx, false)
	if err != nil {
		return false, err
	}
	return (*list)[claims.ID], nil
}

func readKeys(text []byte) (*token.JWKS, error) {
	keys := &token.JWKS{}
	return keys, json.Unmarshal(text, keys)
}

// readList reads the ids of a list of revoked tokens. Any other text is an error, and never an empty list.
func readList(text []byte, issuer string) (*map[string]bool, error) {
	var list token.DenyList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if list.Issuer != issuer || list.Revoked == nil {
		return nil, errors.New("it is not a list of revoked tokens of this issuer")
	}
	ids := make(map[string]bool, len(list.Revoked))
	for _, revoked := range list.Revoked {
		ids[revoked.ID] = true
	}
	return &ids, nil
}

// document is a published document, which is fetched again when it is no longer fresh.
type document[T any] struct {
	url    string
	client *http.Client
	stale  time.Duration
	now    func() time.Time
	read   func([]byte) (*T, error)
	// turn is held by the goroutine that uses the fields below.
	turn chan struct{}
	// value is the content that was read last; nil before the first fetch.
	value *T
	etag  string
	// until is the end of the time in which value is fresh.
	until time.Time
	// tried is when the document was last fetched, and problem the error of that attempt, or nil.
	tried   time.Time
	problem error
}

func newDocument[T any](
	url string, client *http.Client, stale time.Duration, now func() time.Time, read func([]byte) (*T, error),
) *document[T] {
	return &document[T]{url: url, client: client, stale: stale, now: now, read: read, turn: make(chan struct{}, 1)}
}

// current returns the document, which is shared and must not be changed. Anew asks for a newer document even while this
// one is fresh. While one goroutine fetches it, the others wait. A document that was just fetched is used once, however
// short it is fresh.
func (d *document[T]) current(ctx context.Context, anew bool) (*T, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	now := d.now()
	fresh := d.value != nil && now.Before(d.until)
	if fresh && !anew {
		return d.value, nil
	}
	recently := !d.tried.IsZero() && now.Sub(d.tried) < RetryAfter
	if !recently || !fresh && d.problem == nil {
		problem := d.fetch(ctx, now)
		if problem != nil && ctx.Err() != nil {
			// The caller gave up, which says nothing about the platform.
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, problem)
		}
		d.tried, d.problem = now, problem
		if problem == nil {
			return d.value, nil
		}
	}
	if d.value == nil || !now.Before(d.until.Add(d.stale)) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, d.problem)
	}
	return d.value, nil
}

// fetch requests the document once. On an error it changes nothing.
func (d *document[T]) fetch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if d.etag != "" {
		request.Header.Set("If-None-Match", d.etag)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", d.url, err)
	}
	defer func() { _ = response.Body.Close() }()
	// The time counts from the request, so that the time until the response is not added.
	until := now.Add(freshFor(response.Header))
	switch {
	case response.StatusCode == http.StatusNotModified && d.value != nil:
		d.until = until
		return nil
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("fetching %s: the server answered with status %d", d.url, response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return fmt.Errorf("fetching %s: %w", d.url, err)
	}
	if len(text) > maxDocument {
		return fmt.Errorf("fetching %s: it is larger than %d bytes", d.url, maxDocument)
	}
	value, err := d.read(text)
	if err != nil {
		return fmt.Errorf("reading %s: %w", d.url, err)
	}
	d.value, d.etag, d.until = value, response.Header.Get("ETag"), until
	return nil
}

// freshFor returns how long a response is fresh, at most maxAge. The header Age of caches gives its age. Source: RFC
// 9111 4.2.
func freshFor(header http.Header) time.Duration {
	fresh := defaultAge
	for directive := range strings.SplitSeq(strings.Join(header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			fresh = seconds(strings.Trim(value, `"`))
		}
	}
	return max(0, min(fresh, maxAge)-seconds(header.Get("Age")))
}

// seconds reads a number of seconds; 0 for any other text.
func seconds(text string) time.Duration {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0
	}
	return model.Seconds(number)
}

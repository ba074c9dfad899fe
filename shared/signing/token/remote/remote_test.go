package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/signing/token/remote"
)

// born is when the tests begin.
var born = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// platform has keys and revoked tokens that a test changes, and counts the requests.
type platform struct {
	mu     sync.Mutex
	keys   []token.JWK
	denied token.DenyList
	header http.Header
	status int
	body   string
	asked  map[string]int
	now    time.Time
	server *httptest.Server
}

func newPlatform(t *testing.T) *platform {
	p := &platform{header: http.Header{"Cache-Control": {"public, max-age=60"}}, asked: map[string]int{}, now: born}
	p.server = httptest.NewTLSServer(p)
	t.Cleanup(p.server.Close)
	return p
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.Path]++
	for name, values := range p.header {
		w.Header()[name] = values
	}
	if tag := p.header.Get("ETag"); tag != "" && r.Header.Get("If-None-Match") == tag {
		p.asked["304"]++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
		return
	}
	if p.body != "" {
		_, _ = w.Write([]byte(p.body))
		return
	}
	if strings.HasSuffix(r.URL.Path, "/openid/v1/jwks") {
		_ = json.NewEncoder(w).Encode(token.JWKS{Keys: p.keys})
		return
	}
	list := p.denied
	list.Issuer = p.server.URL + "/base"
	if list.Revoked == nil {
		list.Revoked = []token.Revoked{}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// change runs do while no request is served.
func (p *platform) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *platform) count(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

func (p *platform) setTime(d time.Duration) { p.change(func() { p.now = born.Add(d) }) }

func (p *platform) open(t *testing.T, options remote.Options) *remote.Platform {
	t.Helper()
	options.Issuer, options.Client = p.server.URL+"/base", p.server.Client()
	options.Now = func() time.Time { p.mu.Lock(); defer p.mu.Unlock(); return p.now }
	opened, err := remote.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

const (
	keysPath = "/base/openid/v1/jwks"
	denyPath = "/base/openid/v1/revoked"
)

func newKey(t *testing.T) *token.SigningKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := token.NewSigningKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (p *platform) sign(t *testing.T, key *token.SigningKey, id string) secret.String {
	t.Helper()
	text, err := key.Sign(token.Claims{
		Issuer: p.server.URL + "/base", Subject: "ana", Audience: []string{"c"}, ID: id,
		IssuedAt: born, NotBefore: born, Expires: born.Add(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret.String(text)
}

// Within the time that the platform states no document is fetched twice; after it a changed list is noticed.
func TestRevocationIsSeenWithinMaxAge(t *testing.T) {
	p, key := newPlatform(t), newKey(t)
	p.keys = []token.JWK{key.Public()}
	verifier := p.open(t, remote.Options{}).Verifier("c")
	text := p.sign(t, key, "one")
	for range 3 {
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if p.count(keysPath) != 1 || p.count(denyPath) != 1 {
		t.Errorf("asked %d and %d times", p.count(keysPath), p.count(denyPath))
	}
	p.change(func() {
		p.denied = token.DenyList{Revoked: []token.Revoked{{ID: "one", Expires: born.Add(24 * time.Hour).Unix()}}}
	})
	p.setTime(time.Minute)
	if _, err := verifier.Verify(t.Context(), text); !errors.Is(err, token.ErrRevoked) {
		t.Errorf("after the maximum age of the list: %v", err)
	}
	if _, err := verifier.Verify(t.Context(), p.sign(t, key, "two")); err != nil {
		t.Errorf("another token: %v", err)
	}
}

func TestWithoutDenyList(t *testing.T) {
	p, key := newPlatform(t), newKey(t)
	p.keys = []token.JWK{key.Public()}
	p.denied = token.DenyList{Revoked: []token.Revoked{{ID: "one"}}}
	if _, err := p.open(t, remote.Options{WithoutDenyList: true}).Verifier("c").Verify(t.Context(), p.sign(t, key, "one")); err != nil || p.count(denyPath) != 0 {
		t.Errorf("%v, asked %d times", err, p.count(denyPath))
	}
}

// A new key is found at its first token; invented kids cause no requests.
func TestUnknownKids(t *testing.T) {
	p, first, second := newPlatform(t), newKey(t), newKey(t)
	p.keys = []token.JWK{first.Public()}
	verifier := p.open(t, remote.Options{}).Verifier("c")
	if _, err := verifier.Verify(t.Context(), p.sign(t, first, "one")); err != nil {
		t.Fatal(err)
	}
	p.change(func() { p.keys = append(p.keys, second.Public()) })
	p.setTime(remote.RetryAfter)
	if _, err := verifier.Verify(t.Context(), p.sign(t, second, "two")); err != nil || p.count(keysPath) != 2 {
		t.Errorf("%v, asked %d times", err, p.count(keysPath))
	}
	for range 100 {
		if _, err := verifier.Verify(t.Context(), p.sign(t, newKey(t), "x")); !errors.Is(err, token.ErrUnknownKey) {
			t.Fatal(err)
		}
	}
	if p.count(keysPath) != 2 {
		t.Errorf("made-up kids asked %d times", p.count(keysPath)-2)
	}
	// A key that is withdrawn is refused when the keys are due.
	p.change(func() { p.keys = []token.JWK{second.Public()} })
	p.setTime(remote.RetryAfter + time.Minute)
	if _, err := verifier.Verify(t.Context(), p.sign(t, first, "one")); !errors.Is(err, token.ErrUnknownKey) {
		t.Errorf("a withdrawn key: %v", err)
	}
}

// While the platform is away, the fetched documents are used for as long as the options allow, and no longer.
func TestStale(t *testing.T) {
	for _, row := range []struct {
		stale, good, bad time.Duration
	}{
		{0, time.Minute + remote.DefaultMaxStale - 1, time.Minute + remote.DefaultMaxStale},
		{5 * time.Minute, 6*time.Minute - 1, 6 * time.Minute},
		{-1, time.Minute - 1, time.Minute},
	} {
		p, key := newPlatform(t), newKey(t)
		p.keys = []token.JWK{key.Public()}
		verifier := p.open(t, remote.Options{MaxStale: row.stale}).Verifier("c")
		text := p.sign(t, key, "one")
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		p.change(func() { p.status = http.StatusServiceUnavailable })
		p.setTime(row.good)
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Errorf("%v: after %v: %v", row.stale, row.good, err)
		}
		p.setTime(row.bad)
		if _, err := verifier.Verify(t.Context(), text); !errors.Is(err, remote.ErrUnavailable) || token.Refusal(err) != nil {
			t.Errorf("%v: after %v: %v", row.stale, row.bad, err)
		}
		asked := p.count(keysPath)
		for range 10 {
			_, _ = verifier.Verify(t.Context(), text)
		}
		if p.count(keysPath) != asked {
			t.Errorf("a platform that is away is asked %d times at once", p.count(keysPath)-asked)
		}
		p.change(func() { p.status = 0 })
		p.setTime(row.bad + remote.RetryAfter)
		if _, err := verifier.Verify(t.Context(), text); err != nil {
			t.Errorf("%v: when it is back: %v", row.stale, err)
		}
	}
}

// A document that must not be kept is used for the request that fetched it, even if nothing stale may be used.
func TestNoStore(t *testing.T) {
	p, key := newPlatform(t), newKey(t)
	p.keys, p.header = []token.JWK{key.Public()}, http.Header{"Cache-Control": {"no-store"}}
	verifier := p.open(t, remote.Options{MaxStale: -1}).Verifier("c")
	for range 2 {
		if _, err := verifier.Verify(t.Context(), p.sign(t, key, "one")); err != nil {
			t.Fatal(err)
		}
	}
	if p.count(keysPath) != 2 || p.count(denyPath) != 2 {
		t.Errorf("asked %d and %d times", p.count(keysPath), p.count(denyPath))
	}
}

// The list of another platform does not concern the tokens of this one. Source: ADR-0012.
func TestListOfAnotherIssuer(t *testing.T) {
	p := newPlatform(t)
	opened := p.open(t, remote.Options{})
	p.change(func() { p.body = `{"issuer":"https://other.example","revoked":[]}` })
	if revoked, err := opened.Revoked(t.Context(), token.Claims{ID: "one"}); revoked || !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("revoked %t, %v", revoked, err)
	}
}

// A wrong response changes nothing, and is never taken for an empty list.
func TestBadAnswers(t *testing.T) {
	for about, change := range map[string]func(*platform){
		"500":            func(p *platform) { p.status = http.StatusInternalServerError },
		"404":            func(p *platform) { p.status = http.StatusNotFound },
		"204":            func(p *platform) { p.status = http.StatusNoContent },
		"304 to nothing": func(p *platform) { p.status = http.StatusNotModified },
		"a redirect":     func(p *platform) { p.status, p.header = http.StatusFound, http.Header{"Location": {"/elsewhere"}} },
		"no JSON":        func(p *platform) { p.body = "<html>" },
		"another object": func(p *platform) { p.body = "{}" },
		"null":           func(p *platform) { p.body = "null" },
		"a giant":        func(p *platform) { p.body = `{"keys":[],"revoked":[],"x":"` + strings.Repeat("x", 65<<20) + `"}` },
	} {
		p, key := newPlatform(t), newKey(t)
		p.keys = []token.JWK{key.Public()}
		verifier := p.open(t, remote.Options{}).Verifier("c")
		p.change(func() { change(p) })
		if _, err := verifier.Verify(t.Context(), p.sign(t, key, "one")); !errors.Is(err, remote.ErrUnavailable) {
			t.Errorf("%s: %v", about, err)
		}
		if _, err := p.open(t, remote.Options{}).Revoked(t.Context(), token.Claims{ID: "one"}); !errors.Is(err, remote.ErrUnavailable) {
			t.Errorf("%s: the list: %v", about, err)
		}
		if p.count("/elsewhere") != 0 {
			t.Errorf("%s: went elsewhere", about)
		}
	}
}

// Source: RFC 9111 4.2.
func TestFreshness(t *testing.T) {
	for _, row := range []struct {
		header http.Header
		fresh  time.Duration
	}{
		{http.Header{"Cache-Control": {"max-age=60"}}, time.Minute},
		{http.Header{"Cache-Control": {"public", "Max-Age=60, immutable"}}, time.Minute},
		{http.Header{"Cache-Control": {"max-age=60"}, "Age": {"20"}}, 40 * time.Second},
		{http.Header{"Cache-Control": {"max-age=60"}, "Age": {"x"}}, time.Minute},
		{http.Header{}, 5 * time.Minute},
		{http.Header{"Cache-Control": {"max-age=99999999999999999999"}}, 0},
		{http.Header{"Cache-Control": {"max-age=9223372036854775807"}}, 24 * time.Hour},
	} {
		p, key := newPlatform(t), newKey(t)
		p.keys, p.header = []token.JWK{key.Public()}, row.header
		opened := p.open(t, remote.Options{})
		ask := func(at time.Duration, want int) {
			p.setTime(at)
			if _, err := opened.Key(t.Context(), key.ID()); err != nil || p.count(keysPath) != want {
				t.Errorf("%v: at %v asked %d times, want %d, %v", row.header, at, p.count(keysPath), want, err)
			}
		}
		ask(0, 1)
		if row.fresh > 0 {
			ask(row.fresh-1, 1)
		}
		ask(row.fresh, 2)
	}
}

func TestUnchanged(t *testing.T) {
	p, key := newPlatform(t), newKey(t)
	p.keys = []token.JWK{key.Public()}
	p.header.Set("ETag", `"a"`)
	opened := p.open(t, remote.Options{})
	for i := range 5 {
		p.setTime(time.Duration(i) * time.Minute)
		if _, err := opened.Key(t.Context(), key.ID()); err != nil {
			t.Fatal(err)
		}
	}
	if p.count(keysPath) != 5 || p.count("304") != 4 {
		t.Errorf("asked %d times, of which %d were unchanged", p.count(keysPath), p.count("304"))
	}
}

// A caller that gives up does not keep others waiting, and does not keep them from fetching.
func TestGivingUp(t *testing.T) {
	p, key := newPlatform(t), newKey(t)
	p.keys = []token.JWK{key.Public()}
	opened := p.open(t, remote.Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := opened.Key(gone, key.ID()); !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := opened.Key(t.Context(), key.ID()); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestMany(t *testing.T) {
	p, key := newPlatform(t), newKey(t)
	p.keys = []token.JWK{key.Public()}
	verifier, text := p.open(t, remote.Options{}).Verifier("c"), p.sign(t, key, "one")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := verifier.Verify(t.Context(), text); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if p.count(keysPath) != 1 || p.count(denyPath) != 1 {
		t.Errorf("asked %d and %d times", p.count(keysPath), p.count(denyPath))
	}
}

func TestIssuersThatAreRefused(t *testing.T) {
	for _, issuer := range []string{"", "platform.example", "http://platform.example", "ftp://localhost", "https://", "https://a/?b", "https://a/#b", "https://me:secret@a", "http://127.0.0.1.evil.example", ":"} {
		if _, err := remote.New(remote.Options{Issuer: issuer, Now: time.Now}); err == nil {
			t.Errorf("%q is an issuer", issuer)
		}
	}
	if _, err := remote.New(remote.Options{Issuer: "https://platform.example"}); err == nil {
		t.Error("there is a platform without a clock")
	}
	for _, issuer := range []string{"https://platform.example", "https://platform.example/base/", "http://localhost:8080", "http://[::1]:8080"} {
		if _, err := remote.New(remote.Options{Issuer: issuer, Now: time.Now}); err != nil {
			t.Errorf("%q: %v", issuer, err)
		}
	}
}

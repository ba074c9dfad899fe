package stored_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

const (
	host = "platform.example"
	base = "https://" + host
	// bearer is the key of the admin who sends the requests.
	bearer = "admin-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	// program is where the program of a sign-in listens, and verifier what it proves itself with. Source: RFC 7636.
	program  = "http://127.0.0.1:4711/callback"
	verifier = "verifier-verifier-verifier-verifier-verifier"
)

// random is a source of the same bytes in every run. It is safe for concurrent use.
type random struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

func newRandom(seed byte) *random { return &random{source: rand.NewChaCha8([32]byte{seed})} }

func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}

// provider is the OpenID provider of people, and the issuer of the tokens of jobs. It lives as long as its test, so that both shapes of
// a function see the same one.
type provider struct {
	t      testing.TB
	server *httptest.Server
	key    *ecdsa.PrivateKey
	caFile string

	mu sync.Mutex
	// nonce is that of the sign-in under way.
	nonce string
	now   func() time.Time
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, caFile: filepath.Join(t.TempDir(), "ca.pem")}
	p.server = httptest.NewTLSServer(p)
	t.Cleanup(p.server.Close)
	if err := os.WriteFile(p.caFile, p.authority(), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// authority returns the certificate that vouches for the provider, in PEM.
func (p *provider) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, encode := p.server.URL, base64.RawURLEncoding.EncodeToString
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{
			"issuer": address, "authorization_endpoint": address + "/authorize", "token_endpoint": address + "/token", "jwks_uri": address + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		}
	case "/keys":
		point, err := p.key.PublicKey.Bytes()
		if err != nil {
			p.t.Error(err)
		}
		answer = map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:]),
		}}}
	case "/token":
		p.mu.Lock()
		claims := p.claims("platform", map[string]any{"sub": "1001", "preferred_username": "ana", "email": "ana@example.com", "groups": []string{"dev"}})
		if r.FormValue("grant_type") == "authorization_code" {
			claims["nonce"] = p.nonce
		}
		p.mu.Unlock()
		answer = map[string]any{"access_token": "opaque", "token_type": "Bearer", "refresh_token": "refresh", "id_token": p.sign("JWT", claims)}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// claims are claims with those that every token has.
func (p *provider) claims(audience string, more map[string]any) map[string]any {
	claims := map[string]any{"iss": p.server.URL, "aud": audience, "iat": p.now().Unix(), "exp": p.now().Add(time.Minute).Unix()}
	maps.Copy(claims, more)
	return claims
}

// sign returns a token of a type.
func (p *provider) sign(kind string, claims map[string]any) string {
	part := func(object any) string {
		text, err := json.Marshal(object)
		if err != nil {
			p.t.Error(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]any{"alg": "ES256", "kid": "1", "typ": kind}) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(cryptorand.Reader, p.key, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// world is a platform in one shape: a state, an environment in which the functions under test are opened, and another environment of
// all functions, which prepares the state.
type world struct {
	t        testing.TB
	client   *redisstore.Client
	ring     *encryption.Keyring
	provider *provider
	config   *model.ConfigStatus
	cookies  map[string]string

	mu  sync.Mutex
	now time.Time

	// server has the functions under test, handler serves their requests, and random is their source of randomness.
	server  *frame.Server
	handler http.Handler
	random  *random
	// others serves the requests that prepare the state.
	others http.Handler
}

func newWorld(t testing.TB, p *provider, functions ...*frame.Function) *world {
	t.Helper()
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, client: redistest.Open(t, redistest.Embedded(t)), ring: ring, provider: p, cookies: map[string]string{},
		now: time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC), random: newRandom(1),
	}
	p.mu.Lock()
	p.now = w.clock
	p.mu.Unlock()
	ttl := int64(0)
	w.config = &model.ConfigStatus{PlatformHost: host, Auth: &model.ConfigAuth{LoginAccessKeyTTLSeconds: &ttl, Password: &model.PasswordAuth{}}}
	w.config.Auth.OIDC = &model.OIDCProvider{
		IssuerURL: p.server.URL, ClientID: "platform", ClientSecret: "client-secret", RedirectURI: base + "/auth/oidc/callback",
		CAFile: p.caFile, GroupsClaim: "groups", Scopes: []string{"offline_access"},
	}
	env := w.environment(newRandom(2))
	w.others = process.NewServer(env).Mount(catalog.Functions...)
	if _, err := resource.Create(t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}),
		Object: &model.OwnedAccessKey{
			ObjectMeta: metav1.ObjectMeta{Name: "admin"}, Spec: model.OwnedAccessKeySpec{User: "root", Groups: []string{identity.Admins}, Key: bearer},
		},
	}); err != nil {
		t.Fatal(err)
	}
	w.server = process.NewServer(w.environment(w.random))
	w.handler = w.server.Mount(functions...)
	return w
}

// environment returns a new environment over the state.
func (w *world) environment(source io.Reader) *platform.Environment {
	env := &platform.Environment{
		Stores: w.client.Resource, Now: w.clock, Random: source, Log: slog.New(slog.DiscardHandler), Version: "test", LocalSigners: true,
		Config: func() *model.ConfigStatus { return w.config }, Probe: settings.On, Tokens: settings.Tokens{Issuer: base + frame.BasePath},
		Encryption: func(context.Context) (*encryption.Keyring, error) { return w.ring, nil },
	}
	return env
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// send sends a request of the admin with a JSON body, or of nobody with a form, and returns the answer, which must be one of success.
func (w *world) send(to http.Handler, method, path string, body any) *http.Response {
	w.t.Helper()
	var content io.Reader = http.NoBody
	header := http.Header{"User-Agent": {"tester/1.0"}}
	switch body := body.(type) {
	case url.Values:
		content = strings.NewReader(body.Encode())
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		header.Set("Sec-Fetch-Site", "same-origin")
	default:
		text, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		if body != nil {
			content = bytes.NewReader(text)
		}
		header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	if strings.HasPrefix(path, "/apis/") {
		path = frame.BasePath + path
		header.Set("Authorization", "Bearer "+bearer)
	}
	request := httptest.NewRequestWithContext(w.t.Context(), method, base+path, content)
	request.Header = header
	for name, value := range w.cookies {
		request.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	recorder := httptest.NewRecorder()
	to.ServeHTTP(recorder, request)
	answer := recorder.Result()
	if answer.StatusCode >= http.StatusBadRequest {
		w.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, recorder.Body)
	}
	for _, cookie := range answer.Cookies() {
		w.cookies[cookie.Name] = cookie.Value
	}
	return answer
}

// object returns the object of an answer.
func (w *world) object(answer *http.Response) map[string]any {
	w.t.Helper()
	object := map[string]any{}
	if err := json.NewDecoder(answer.Body).Decode(&object); err != nil {
		w.t.Fatal(err)
	}
	return object
}

// location returns the query of the address to which an answer sends the browser.
func (w *world) location(answer *http.Response) url.Values {
	w.t.Helper()
	address, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || address.RawQuery == "" {
		w.t.Fatalf("the answer %d leads to %q", answer.StatusCode, address)
	}
	return address.Query()
}

// start begins a sign-in and returns the query of the browser at the callback.
func (w *world) start() url.Values {
	w.t.Helper()
	begun := w.location(w.send(w.others, http.MethodGet, "/auth/oidc/login?"+url.Values{
		"response_type": {"code"}, "client_id": {oauth.ClientID}, "redirect_uri": {program}, "state": {"state-0123456789"},
		"code_challenge": {oauth.S256(verifier)}, "code_challenge_method": {"S256"},
	}.Encode(), nil))
	w.provider.mu.Lock()
	defer w.provider.mu.Unlock()
	w.provider.nonce = begun.Get("nonce")
	return url.Values{"code": {"code"}, "state": begun["state"]}
}

// callback brings a browser back from the provider.
func (w *world) callback(to http.Handler, query url.Values) *http.Response {
	w.t.Helper()
	return w.send(to, http.MethodGet, "/auth/oidc/callback?"+query.Encode(), nil)
}

// allow allows the sign-in of a callback, and returns the form with which the program fetches the key.
func (w *world) allow(callback *http.Response) url.Values {
	w.t.Helper()
	form := url.Values{"id": w.location(callback)["id"], "decision": {"allow"}}
	code := w.location(w.send(w.others, http.MethodPost, "/auth/confirm", form)).Get("code")
	return url.Values{
		"grant_type": {"authorization_code"}, "client_id": {oauth.ClientID}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {program},
	}
}

// signIn signs ana in. The key is in the state afterwards.
func (w *world) signIn() {
	w.t.Helper()
	w.send(w.others, http.MethodPost, "/auth/token", w.allow(w.callback(w.others, w.start())))
}

// run runs a scheduled function.
func (w *world) run(function *frame.Function) {
	w.t.Helper()
	if err := w.server.Run(w.t.Context(), function); err != nil {
		w.t.Fatal(err)
	}
}

// sealed is the private part of a record: the keyring seals with a random nonce of its own.
var sealed = regexp.MustCompile(`"private":"[^"]*"`)

// texts returns everything that is stored of the kinds, and what their events say: one line for each record and for each event that is
// still in the log.
func (w *world) texts() []string {
	w.t.Helper()
	var lines []string
	resources := []string{platformconfig.Definition.Resource.Resource}
	for _, kind := range platform.StoredKinds {
		resources = append(resources, kind.Resource.Resource)
	}
	for _, name := range resources {
		state := w.client.Resource(name)
		for record, err := range store.Each(w.t.Context(), state, store.Query{}) {
			if err != nil {
				w.t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s %s of %q, due %v: %s", name, record.Name, record.Owner, record.Expires, record.Object))
		}
		for after := store.Beginning; ; {
			events, err := state.Events(w.t.Context(), after, 100, 0)
			if errors.Is(err, store.ErrGone) {
				break
			}
			if err != nil {
				w.t.Fatal(err)
			}
			for _, event := range events {
				lines = append(lines, fmt.Sprintf("%s event %v of %s: %s", name, event.Type, event.Record.Name, event.Record.Object))
				after = event.Revision
			}
			if len(events) == 0 {
				break
			}
		}
	}
	for i, line := range lines {
		lines[i] = sealed.ReplaceAllString(line, `"private":"..."`)
	}
	slices.Sort(lines)
	return lines
}

package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	clientID     = "platform"
	clientSecret = "hush-8Kx20wQm57ZtLp93VrNc4Hd6"
)

// fakeProvider is an OpenID Connect provider that signs with a real key, and that can break the protocol. Set its fields before a
// request, never during one.
type fakeProvider struct {
	t      testing.TB
	server *httptest.Server
	caFile string
	key    *ecdsa.PrivateKey
	now    func() time.Time

	// person are the claims about who signs in.
	person map[string]any
	// info are the claims of the UserInfo endpoint.
	info map[string]any
	// claims, metadata, token and answer change what the provider says. Nil: nothing.
	claims   func(map[string]any)
	metadata func(map[string]any)
	token    func(raw string) string
	answer   func(url.Values)
	// lifetime is the expires_in of tokens. Nil: the provider does not say it.
	lifetime any
	// serve replaces the answer at a path.
	serve map[string]http.HandlerFunc
	// proxy stands before the provider, and has its answer. Nil: nothing does.
	proxy func(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc)

	mu    sync.Mutex
	codes map[string]url.Values
	asked []string
	// posts tells that the client is registered to authenticate in the form, and in no other way. The metadata say so.
	posts bool
	// counts counts the requests to the token endpoint. Nil: nobody counts them.
	counts *atomic.Int64
	// refresh is the refresh token that works, and idToken the latest ID token.
	refresh, idToken string
	// sent is the latest request to the token endpoint.
	sent url.Values
	// secrets is what the provider has sent and received that only it and the platform may know.
	secrets []string
}

func newProvider(t testing.TB, now func() time.Time) *fakeProvider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &fakeProvider{t: t, key: key, now: now, codes: map[string]url.Values{}, serve: map[string]http.HandlerFunc{}, person: map[string]any{
		"sub": "1001", "preferred_username": "ana", "name": "Ana", "email": "ana@example.com", "email_verified": true, "groups": []string{"dev"},
	}}
	p.server = httptest.NewTLSServer(p)
	t.Cleanup(p.server.Close)
	p.caFile = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(p.caFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *fakeProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.URL.Path)
	p.mu.Unlock()
	if p.proxy != nil {
		p.proxy(w, r, p.reply)
		return
	}
	p.reply(w, r)
}

// reply answers a request.
func (p *fakeProvider) reply(w http.ResponseWriter, r *http.Request) {
	if instead := p.serve[r.URL.Path]; instead != nil {
		instead(w, r)
		return
	}
	reply := func(status int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(object)
	}
	at := p.server.URL
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		metadata := map[string]any{
			"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "jwks_uri": at + "/keys",
			"userinfo_endpoint": at + "/userinfo", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
		}
		if p.posts {
			metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
		}
		if p.metadata != nil {
			p.metadata(metadata)
		}
		reply(http.StatusOK, metadata)
	case "/keys":
		reply(http.StatusOK, map[string]any{"keys": p.keys()})
	case "/userinfo":
		reply(http.StatusOK, p.info)
	case "/token":
		_ = r.ParseForm()
		id, secret, _ := r.BasicAuth()
		if p.posts {
			id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
		}
		if p.counts != nil {
			p.counts.Add(1)
		}
		if id != clientID || secret != clientSecret {
			reply(http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
			return
		}
		p.mu.Lock()
		p.sent = r.PostForm
		began := p.codes[r.PostForm.Get("code")]
		delete(p.codes, r.PostForm.Get("code"))
		p.mu.Unlock()
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		again := r.PostForm.Get("grant_type") == "refresh_token" && p.refresh != "" && r.PostForm.Get("refresh_token") == p.refresh
		if again {
			began = url.Values{}
		} else if began == nil || r.PostForm.Get("redirect_uri") != began.Get("redirect_uri") ||
			base64.RawURLEncoding.EncodeToString(sum[:]) != began.Get("code_challenge") {
			reply(http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		claims := maps.Clone(p.person)
		maps.Copy(claims, map[string]any{
			"iss": at, "aud": clientID, "nonce": began.Get("nonce"), "iat": p.now().Unix(), "exp": p.now().Add(time.Minute).Unix(),
		})
		if p.claims != nil {
			p.claims(claims)
		}
		if again {
			delete(claims, "nonce")
		}
		raw := p.sign(map[string]any{"alg": "ES256", "kid": "1", "typ": "JWT"}, claims)
		answer := map[string]any{"access_token": "opaque", "token_type": "Bearer"}
		if p.lifetime != nil {
			answer["expires_in"] = p.lifetime
		}
		p.mu.Lock()
		p.idToken = raw
		if again || strings.Contains(began.Get("scope"), "offline_access") || began.Get("access_type") == "offline" {
			// Each refresh token works once.
			p.refresh = "refresh-" + rand.Text()
			answer["refresh_token"], p.secrets = p.refresh, append(p.secrets, p.refresh)
		}
		p.secrets = append(p.secrets, raw, r.PostForm.Get("code_verifier"), began.Get("nonce"), began.Get("state"), r.PostForm.Get("code"))
		p.mu.Unlock()
		if p.token != nil {
			raw = p.token(raw)
		}
		answer["id_token"] = raw
		reply(http.StatusOK, answer)
	default:
		http.NotFound(w, r)
	}
}

// keys are the public keys of the provider.
func (p *fakeProvider) keys() []any {
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		p.t.Error(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return []any{map[string]any{
		"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:]),
	}}
}

// sign returns a signed token.
func (p *fakeProvider) sign(header, claims map[string]any) string {
	input := part(p.t, header) + "." + part(p.t, claims)
	sum := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return input + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func part(t testing.TB, object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		t.Error(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// resigned replaces the header of a token, and signs with HMAC or not at all.
func (p *fakeProvider) resigned(raw, algorithm string) string {
	_, rest, _ := strings.Cut(raw, ".")
	payload, _, _ := strings.Cut(rest, ".")
	input := part(p.t, map[string]any{"alg": algorithm, "kid": "1"}) + "." + payload
	if algorithm == "none" {
		return input + "."
	}
	mac := hmac.New(sha256.New, []byte(clientSecret))
	_, _ = mac.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// login is what a person does at the provider: it takes the address to which the platform sent the browser, and returns the query
// with which the browser comes back.
func (p *fakeProvider) login(location string) url.Values {
	p.t.Helper()
	at, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, p.server.URL+"/authorize?") {
		p.t.Fatalf("the browser was sent to %s", location)
	}
	query := at.Query()
	scopes := " " + query.Get("scope") + " "
	if query.Get("code_challenge_method") != "S256" || query.Get("nonce") == "" || query.Get("state") == "" ||
		!strings.Contains(scopes, " openid ") || query.Get("client_id") != clientID || query.Get("response_type") != "code" {
		p.t.Errorf("the request is %v", query)
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = query
	p.mu.Unlock()
	answer := url.Values{"code": {code}, "state": {query.Get("state")}}
	if p.answer != nil {
		p.answer(answer)
	}
	return answer
}

package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signin/logins"
)

// forger makes tokens that the provider has not signed, or not in a way that proves it.
type forger struct {
	w   *world
	key *ecdsa.PrivateKey
}

func newForger(w *world) forger {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	return forger{w, key}
}

// forgeries are headers, and how the rest is signed, by what they are about.
func (f forger) forgeries() map[string]func(payload string) string {
	signed := func(header map[string]any, sign func(input string) []byte) func(string) string {
		return func(payload string) string {
			input := part(f.w.t, header) + "." + payload
			return input + "." + base64.RawURLEncoding.EncodeToString(sign(input))
		}
	}
	mac := func(key []byte) func(string) []byte {
		return func(input string) []byte {
			sum := hmac.New(sha256.New, key)
			_, _ = sum.Write([]byte(input))
			return sum.Sum(nil)
		}
	}
	sign := func(input string) []byte {
		sum := sha256.Sum256([]byte(input))
		r, s, err := ecdsa.Sign(rand.Reader, f.key, sum[:])
		if err != nil {
			f.w.t.Fatal(err)
		}
		signature := make([]byte, 64)
		r.FillBytes(signature[:32])
		s.FillBytes(signature[32:])
		return signature
	}
	public, err := x509.MarshalPKIXPublicKey(f.w.provider.key.Public())
	if err != nil {
		f.w.t.Fatal(err)
	}
	point, err := f.key.PublicKey.Bytes()
	if err != nil {
		f.w.t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	own := map[string]any{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}
	hs := map[string]any{"alg": "HS256", "kid": "1"}
	return map[string]func(string) string{
		"the algorithm none":        signed(map[string]any{"alg": "none"}, func(string) []byte { return nil }),
		"the algorithm nOnE":        signed(map[string]any{"alg": "nOnE", "kid": "1"}, func(string) []byte { return nil }),
		"HMAC with the secret":      signed(hs, mac([]byte(clientSecret))),
		"HMAC with the key, DER":    signed(hs, mac(public)),
		"HMAC with the key, PEM":    signed(hs, mac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))),
		"another algorithm":         signed(map[string]any{"alg": "RS256", "kid": "1"}, sign),
		"signed by an attacker":     signed(map[string]any{"alg": "ES256", "kid": "1"}, sign),
		"by an unknown key":         signed(map[string]any{"alg": "ES256", "kid": "2"}, sign),
		"by a key without a name":   signed(map[string]any{"alg": "ES256"}, sign),
		"the key of an attacker":    signed(map[string]any{"alg": "ES256", "jwk": own}, sign),
		"an address of an attacker": signed(map[string]any{"alg": "ES256", "kid": "2", "jku": "https://evil.example/keys"}, sign),
		"a chain of an attacker":    signed(map[string]any{"alg": "ES256", "kid": "2", "x5u": "https://evil.example/chain"}, sign),
		"no signature":              signed(map[string]any{"alg": "ES256", "kid": "1"}, func(string) []byte { return nil }),
	}
}

// payload is what a token says.
func payload(raw string) string { return strings.Split(raw, ".")[1] }

// An ID token that the provider has not signed makes no session, whatever its header says of keys. Source: OpenID Connect Core 1.0, 3.1.3.7;
// RFC 8725, 3.1 and 3.10.
func TestForgedIDTokens(t *testing.T) {
	t.Parallel()
	for about := range newForger(newWorld(t)).forgeries() {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			forge := newForger(w).forgeries()[about]
			w.provider.token = func(raw string) string { return forge(payload(raw)) }
			w.wantRefused(about, w.browser().prove(), http.StatusBadRequest)
			w.provider.mu.Lock()
			defer w.provider.mu.Unlock()
			if slices.ContainsFunc(w.provider.asked, func(path string) bool { return strings.HasSuffix(path, "/chain") }) {
				t.Errorf("the platform asks for %q", w.provider.asked)
			}
		})
	}
}

// Of answers for one state that come at the same moment, each with a good code, one counts. Source: ADR-0031.
func TestCallbackAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	location := b.start()
	status := make([]int, 8)
	var group sync.WaitGroup
	for i := range status {
		query := w.provider.login(location)
		one := &browser{w: w, cookies: map[string]*http.Cookie{}}
		for name, cookie := range b.cookies {
			one.cookies[name] = cookie
		}
		group.Go(func() { status[i] = one.send(base+"/auth/oidc/callback?"+query.Encode(), nil).StatusCode })
	}
	group.Wait()
	slices.Sort(status)
	if !slices.Equal(status, []int{303, 400, 400, 400, 400, 400, 400, 400}) || len(w.stored(logins.Resource)) != 1 {
		t.Errorf("%v, and %d sign-ins", status, len(w.stored(logins.Resource)))
	}
}

// The code of one sign-in does not fit the answer of another, in either direction. Source: RFC 7636; RFC 9700, 2.1.1.
func TestInjectedCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.browser(), w.browser()
	first, second := w.provider.login(one.start()), w.provider.login(other.start())
	code := first.Get("code")
	first.Set("code", second.Get("code"))
	second.Set("code", code)
	for by, query := range map[*browser]url.Values{one: first, other: second} {
		w.wantRefused("a code of another sign-in", by.send(base+"/auth/oidc/callback?"+query.Encode(), nil), http.StatusBadRequest)
	}
}

// A code with the issuer of another provider is sent nowhere. Source: RFC 9207, 2.4.
func TestMixedUp(t *testing.T) {
	t.Parallel()
	for about, change := range map[string]func(*world, url.Values){
		"another issuer": func(_ *world, query url.Values) { query.Set("iss", "https://other.example") },
		"two issuers": func(w *world, query url.Values) {
			query["iss"] = []string{w.provider.server.URL, "https://other.example"}
		},
		"no issuer, which is promised": func(w *world, _ url.Values) {
			w.provider.metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }
		},
	} {
		w := newWorld(t)
		w.provider.answer = func(query url.Values) { change(w, query) }
		if about == "no issuer, which is promised" {
			change(w, nil)
		}
		w.wantRefused(about, w.browser().prove(), http.StatusBadRequest)
		w.provider.mu.Lock()
		if slices.Contains(w.provider.asked, "/token") {
			t.Errorf("%s: the code was sent", about)
		}
		w.provider.mu.Unlock()
	}
}

// A key of a sign-in makes a key without end. It names its maker, outlives the sign-in, and ends with a sign-out everywhere.
// Source: ADR-0021, ADR-0029.
func TestStolenSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.LoginAccessKeyTTLSeconds = new(int64(7200))
	stolen := w.keep("oidc", w.provider.login)
	child := stolen.child()
	shown, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: child.name})
	if err != nil || shown.Status.CreatedBy == nil || shown.Status.CreatedBy.Name != stolen.name {
		t.Errorf("the key names %+v as its maker, %v", shown.Status.CreatedBy, err)
	}
	if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: stolen.name}); err != nil {
		t.Fatal(err)
	}
	if stolen.works() || !child.works() {
		t.Errorf("after the sign-out: %v, %v", stolen.works(), child.works())
	}
	if _, err := user.SignOutUser(t.Context(), kinds.Users(w.env), resource.SubresourceInput[*model.UserSignOut]{Caller: root, Name: "ana"}); err != nil {
		t.Fatal(err)
	}
	if child.works() {
		t.Error("the key works after a sign-out everywhere")
	}
	// An hour after the sign-in, what the key makes ends with it.
	stolen = w.keep("oidc", w.provider.login)
	w.clock.forward(time.Hour - time.Second)
	early := stolen.child()
	w.clock.forward(time.Second)
	late := stolen.child()
	if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: stolen.name}); err != nil {
		t.Fatal(err)
	}
	if !early.works() || late.works() {
		t.Errorf("after the sign-out: %v, %v", early.works(), late.works())
	}
}

// child makes a key with the key of the person.
func (k kept) child() kept {
	k.t.Helper()
	caller, err := accesskey.OpenAuthenticator(k.env).Bearer(k.t.Context(), k.key)
	if err != nil {
		k.t.Fatal(err)
	}
	made, err := resource.Create(k.t.Context(), kinds.AccessKeys(k.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: &model.OwnedAccessKey{}})
	if err != nil {
		k.t.Fatal(err)
	}
	if bound := len(accesskey.Bounding(made.Object.Status.Lineage)) > 0; bound != slices.ContainsFunc(made.Warnings, func(text string) bool { return strings.Contains(text, "sign-in") }) {
		k.t.Errorf("bound is %v, and the warnings are %q", bound, made.Warnings)
	}
	return kept{k.world, secret.String(made.Object.Spec.Key), made.Object.Name}
}

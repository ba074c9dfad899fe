package script_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// issuer is a system that signs the tokens of jobs, as CI systems do. Its address is in ISSUER, and its authority in issuer.crt64.
func issuer(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 0 {
		ts.Fatalf("usage: issuer")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	point, err := key.PublicKey.Bytes()
	ts.Check(err)
	encode := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	ts.Defer(server.Close)
	for path, answer := range map[string]any{
		"/.well-known/openid-configuration": map[string]string{
			"issuer": server.URL, "jwks_uri": server.URL + "/keys",
			"authorization_endpoint": server.URL + "/authorize", "token_endpoint": server.URL + "/token",
		},
		"/keys": map[string]any{"keys": []any{map[string]string{
			"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:]),
		}}},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	const bearer = "what a job asks with"
	mux.HandleFunc("GET /github", func(w http.ResponseWriter, r *http.Request) {
		token, err := os.ReadFile(ts.MkAbs("github.token"))
		if err != nil || r.Header.Get("Authorization") != "Bearer "+bearer || r.URL.Query().Get("audience") != ts.Getenv("SECURE") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"value": string(token)})
	})
	serveSignIn(mux, server.URL, ts.Getenv("SECURE"), key)
	ts.Setenv("ISSUER", server.URL)
	ts.Setenv("GITHUB_URL", server.URL+"/github")
	ts.Setenv("GITHUB_BEARER", bearer)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs("issuer.crt"), text, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("issuer.crt64"), []byte(base64.StdEncoding.EncodeToString(text)), 0o600))
	encoded, err := key.Bytes()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("issuer.key"), encoded, 0o600))
}

// job writes the token of a job, with claims, for the platform of the story.
func job(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) < 1 {
		ts.Fatalf("usage: job FILE CLAIM=TEXT...")
	}
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), []byte(ts.ReadFile("issuer.key")))
	ts.Check(err)
	now := time.Now().Unix()
	claims := map[string]any{"iss": ts.Getenv("ISSUER"), "aud": ts.Getenv("SECURE"), "iat": now, "exp": now + 300, "jti": rand.Text()}
	for _, arg := range args[1:] {
		name, text, found := strings.Cut(arg, "=")
		if !found {
			ts.Fatalf("%s has no text", arg)
		}
		claims[name] = text
	}
	signed, err := signClaims(key, claims)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(signed), 0o600))
}

// signClaims returns a token with claims, signed with ES256.
func signClaims(key *ecdsa.PrivateKey, claims map[string]any) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "ES256", "kid": "1"})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode(header) + "." + encode(body)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encode(signature), nil
}

// The client and its secret at the issuer where people sign in.
const (
	peopleClient = "platform"
	peopleSecret = "hush-8Kx20wQm57ZtLp93VrNc4Hd6"
)

// serveSignIn makes an issuer an OpenID Connect provider at which a person has a session already: Ana, of the group developers. It redirects
// browsers only to a platform. It exchanges each code once for an ID token, for a client that knows the client secret and the code verifier.
func serveSignIn(mux *http.ServeMux, issuerURL, platform string, key *ecdsa.PrivateKey) {
	var mu sync.Mutex
	begun := map[string]url.Values{}
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("client_id") != peopleClient || !strings.HasPrefix(query.Get("redirect_uri"), platform+"/auth/") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		code := rand.Text()
		mu.Lock()
		begun[code] = query
		mu.Unlock()
		http.Redirect(w, r, query.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {query.Get("state")}}.Encode(), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		code, verifier := r.PostFormValue("code"), sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		mu.Lock()
		query := begun[code]
		delete(begun, code)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		now := time.Now().Unix()
		token, err := signClaims(key, map[string]any{
			"iss": issuerURL, "sub": "1001", "aud": peopleClient, "iat": now, "exp": now + 300, "nonce": query.Get("nonce"),
			"preferred_username": "ana", "name": "Ana", "groups": []string{"developers"},
		})
		if err != nil || query == nil || id != peopleClient || secret != peopleSecret ||
			base64.RawURLEncoding.EncodeToString(verifier[:]) != query.Get("code_challenge") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": token})
	})
}

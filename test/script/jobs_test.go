package script_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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
		"/.well-known/openid-configuration": map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/keys"},
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
	part := func(object any) string {
		text, err := json.Marshal(object)
		ts.Check(err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]string{"alg": "ES256", "kid": "1"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	ts.Check(err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(signed+"."+base64.RawURLEncoding.EncodeToString(signature)), 0o600))
}

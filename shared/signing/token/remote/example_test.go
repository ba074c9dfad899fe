package remote_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/signing/token/remote"
)

// A server of a connected cluster checks the bearer of a request and applies the scope of the token.
func Example() {
	issuer, client, bearer, stop := startPlatform()
	defer stop()

	// Once, when the program starts. Against a platform with a public certificate, leave Client out.
	platform, err := remote.New(remote.Options{Issuer: issuer, Client: client, Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	verifier := platform.Verifier("cluster-a")

	request := httptest.NewRequest(http.MethodGet, "/api/v1/pods", http.NoBody)
	request.Header.Set("Authorization", "Bearer "+bearer)

	// For each request.
	text, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	claims, err := verifier.Verify(request.Context(), secret.String(text))
	switch {
	case errors.Is(err, remote.ErrUnavailable):
		fmt.Println("503: the token cannot be checked at the moment")
	case err != nil:
		fmt.Println("401:", err)
	default:
		fmt.Println(claims.Subject, claims.Groups, claims.Scope.Clusters[0].Cluster)
	}

	// A token with another signature is refused.
	signed := text[:strings.LastIndexByte(text, '.')]
	_, err = verifier.Verify(request.Context(), secret.String(signed+"."+strings.Repeat("A", 86)))
	fmt.Println(errors.Is(err, token.ErrSignature))
	// Output:
	// ana [dev] cluster-a
	// true
}

// startPlatform serves what a platform publishes, and returns a token that it issued.
func startPlatform() (issuer string, client *http.Client, bearer string, stop func()) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	key, err := token.NewSigningKey(private)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	mux.HandleFunc("/openid/v1/jwks", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(token.JWKS{Keys: []token.JWK{key.Public()}})
	})
	mux.HandleFunc("/openid/v1/revoked", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(token.DenyList{Issuer: server.URL, Revoked: []token.Revoked{}})
	})
	now := time.Now()
	bearer, err = key.Sign(token.Claims{
		Issuer: server.URL, Subject: "ana", Audience: []string{"cluster-a"}, ID: "5d0c1f5e", Groups: []string{"dev"},
		IssuedAt: now, NotBefore: now, Expires: now.Add(time.Hour),
		Scope: &model.Scope{Clusters: []model.ScopeCluster{{Cluster: "cluster-a"}}},
	})
	if err != nil {
		panic(err)
	}
	return server.URL, server.Client(), bearer, server.Close
}

//go:build unix

package script_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/rogpeppe/go-internal/testscript"
)

// verify verifies a token as a cluster does that knows only the URL of the platform: go-oidc fetches the discovery document and the keys. The
// structured authentication of kube-apiserver uses the same library.
func verify(ts *testscript.TestScript, neg bool, args []string) {
	options := flag.NewFlagSet("oidc", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	issuer := ts.Getenv("SECURE") + "/kubernetes/management"
	audience := options.String("audience", issuer, "")
	later := options.Duration("later", 0, "")
	kind := options.String("forge", "", "")
	ts.Check(options.Parse(args))
	text := strings.TrimSpace(ts.ReadFile(singleArgument(ts, options.Args())))
	if *kind != "" {
		text = forge(ts, *kind, text)
	}
	ctx := oidc.ClientContext(context.Background(), client(ts, patience))
	provider, err := oidc.NewProvider(ctx, issuer)
	ts.Check(err)
	verifier := provider.Verifier(&oidc.Config{ClientID: *audience, Now: func() time.Time { return time.Now().Add(*later) }})
	token, err := verifier.Verify(ctx, text)
	if err != nil {
		_, _ = fmt.Fprintln(ts.Stdout(), err)
		check(ts, neg, err)
		return
	}
	var claims json.RawMessage
	ts.Check(token.Claims(&claims))
	_, _ = fmt.Fprintf(ts.Stdout(), "%s\n", claims)
	check(ts, neg, nil)
}

// forge makes an invalid token from a valid one: with other claims, with another key, or without a signature.
func forge(ts *testscript.TestScript, kind, text string) string {
	parts := strings.Split(text, ".")
	encode := base64.RawURLEncoding.EncodeToString
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	ts.Check(err)
	switch kind {
	case "altered":
		parts[1] = encode([]byte(strings.Replace(string(payload), `"sub":"`, `"sub":"x`, 1)))
	case "foreign":
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		ts.Check(err)
		parts[2] = encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
	case "none":
		parts[0], parts[2] = encode([]byte(`{"alg":"none","typ":"JWT"}`)), ""
	default:
		ts.Fatalf("no such forgery: %s", kind)
	}
	return strings.Join(parts, ".")
}

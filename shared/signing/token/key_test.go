package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings/keypem"
)

// born is when the tests begin.
var born = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Two keys of each kind. RSA keys take long to make.
var (
	ecKeys = sync.OnceValue(func() []*SigningKey {
		return pair(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	})
	rsaKeys = sync.OnceValue(func() []*SigningKey {
		return pair(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, keypem.MinRSABits)) })
	})
)

func pair(another func() crypto.Signer) []*SigningKey {
	return []*SigningKey{must(NewSigningKey(another())), must(NewSigningKey(another()))}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// claims are those of a typical token.
func claims() Claims {
	return Claims{
		Issuer: "https://platform.example", Subject: "ana", Audience: []string{"cluster-a"}, ID: "5d0c",
		IssuedAt: born, NotBefore: born, Expires: born.Add(time.Hour),
		Groups: []string{"dev"}, Scope: &model.Scope{Clusters: []model.ScopeCluster{{Cluster: "a"}}},
	}
}

// The examples of RFC 7638 3.1 and RFC 7517 appendix A.1.
func TestPublishedThumbprints(t *testing.T) {
	const n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs" +
		"tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbI" +
		"SD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
	var set JWKS
	if err := json.Unmarshal([]byte(`{"keys":[
		{"kty":"RSA","n":"`+n+`","e":"AQAB","alg":"RS256","kid":"2011-04-29"},
		{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"1"}]}`), &set); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs", "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s"} {
		if got, err := Thumbprint(set.Keys[i].Key); err != nil || got != want {
			t.Errorf("key %d: %q, %v", i, got, err)
		}
	}
}

func TestKeysReadAsPrinted(t *testing.T) {
	set := JWKS{}
	for _, key := range append(ecKeys(), rsaKeys()...) {
		set.Keys = append(set.Keys, key.Public())
	}
	text := must(json.Marshal(set))
	var read JWKS
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, set) {
		t.Errorf("read %+v, %v from %s", read, err, text)
	}
	if got := string(must(json.Marshal(JWKS{}))); got != `{"keys":[]}` {
		t.Errorf("an empty set is %s", got)
	}
}

func TestClaimsReadAsPrinted(t *testing.T) {
	bare := claims()
	bare.Groups, bare.Scope = nil, nil
	empty := claims()
	empty.Scope = &model.Scope{}
	for _, c := range []Claims{claims(), bare, empty} {
		text := must(json.Marshal(c))
		if read, err := ParseClaims(text); err != nil || !reflect.DeepEqual(read, c) {
			t.Errorf("read %+v, %v from %s", read, err, text)
		}
	}
	const want = `{"iss":"https://platform.example","sub":"ana","aud":["cluster-a"],"iat":1772366400,"nbf":1772366400,"exp":1772370000,"jti":"5d0c","groups":["dev"],"scope":{"clusters":[{"cluster":"a"}]}}`
	if got := string(must(json.Marshal(claims()))); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestKeysThatCannotSign(t *testing.T) {
	var exotic struct{ crypto.Signer }
	for about, key := range map[string]crypto.Signer{
		"P-384":        must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"of no kind":   exotic,
		"of too small": weak(t),
	} {
		if _, err := NewSigningKey(key); err == nil {
			t.Errorf("a key %s signs", about)
		}
	}
}

func weak(t *testing.T) *rsa.PrivateKey {
	t.Setenv("GODEBUG", "rsa1024min=0")
	return must(rsa.GenerateKey(rand.Reader, 1024))
}

// Claims that no verifier would accept are not signed.
func TestNothingUselessIsSigned(t *testing.T) {
	for about, change := range map[string]func(*Claims){
		"no issuer":         func(c *Claims) { c.Issuer = "" },
		"no subject":        func(c *Claims) { c.Subject = "" },
		"no audience":       func(c *Claims) { c.Audience = nil },
		"an empty audience": func(c *Claims) { c.Audience = []string{"a", ""} },
		"no id":             func(c *Claims) { c.ID = "" },
		"no times":          func(c *Claims) { c.IssuedAt = time.Time{} },
		"no beginning":      func(c *Claims) { c.NotBefore = time.Time{} },
		"a distant end":     func(c *Claims) { c.Expires = time.Unix(maxSeconds+1, 0) },
		"over at once":      func(c *Claims) { c.Expires = c.NotBefore.Add(time.Second - 1) },
		"too large":         func(c *Claims) { c.Groups = []string{strings.Repeat("g", MaxBytes)} },
	} {
		c := claims()
		change(&c)
		if text, err := ecKeys()[0].Sign(c); !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %q, %v", about, text, err)
		}
		if err := ecKeys()[0].Check(c); !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s passes the check: %v", about, err)
		}
	}
}

// The size is known before the signature: the largest token that is signed has MaxBytes, and no larger token is signed.
func TestLargestToken(t *testing.T) {
	for _, key := range append(ecKeys(), rsaKeys()...) {
		refused := 0
		for n := MaxBytes / 2; refused == 0; n++ {
			c := claims()
			c.Groups = []string{strings.Repeat("g", n)}
			if err := key.Check(c); errors.Is(err, ErrTooLarge) {
				refused = n
			} else if err != nil {
				t.Fatal(err)
			}
		}
		c := claims()
		c.Groups = []string{strings.Repeat("g", refused-1)}
		largest := must(key.Sign(c))
		if _, err := Open(t.Context(), JWKS{Keys: []JWK{key.Public()}}, secret.String(largest)); err != nil {
			t.Error(err)
		}
		// Three bytes of claims are four of base64url.
		if len(largest) > MaxBytes || len(largest) < MaxBytes-1 {
			t.Errorf("%s: the largest token has %d bytes of %d", key.Algorithm(), len(largest), MaxBytes)
		}
		c.Groups = []string{strings.Repeat("g", refused)}
		if text, err := key.Sign(c); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: signed %d bytes, %v", key.Algorithm(), len(text), err)
		}
	}
}

// Verifiers read the signed claims, whatever they are.
func TestWhatIsSignedIsRead(t *testing.T) {
	key := ecKeys()[0]
	set := JWKS{Keys: []JWK{key.Public()}}
	rapid.Check(t, func(t *rapid.T) {
		c := claims()
		c.Subject, c.Issuer, c.ID = rapid.String().Draw(t, "sub"), rapid.String().Draw(t, "iss"), rapid.String().Draw(t, "jti")
		c.Audience, c.Groups = rapid.SliceOf(rapid.String()).Draw(t, "aud"), rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "groups")
		c.Scope = rapid.SampledFrom([]*model.Scope{nil, {}, {Projects: []model.ScopeProject{{}}, AllowPlatformCLI: true}}).Draw(t, "scope")
		c.NotBefore = time.Unix(rapid.Int64Range(-1, maxSeconds).Draw(t, "nbf"), 0).UTC()
		c.IssuedAt, c.Expires = c.NotBefore, c.NotBefore.Add(time.Hour)
		text, err := key.Sign(c)
		if err != nil {
			return
		}
		payload, err := Open(t.Context(), set, secret.String(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseClaims(payload)
		if len(c.Groups) == 0 {
			c.Groups = nil
		}
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v is read as %+v, %v", c, got, err)
		}
	})
}

package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// publicKeys are the first key of each kind.
func publicKeys() JWKS { return JWKS{Keys: []JWK{ecKeys()[0].Public(), rsaKeys()[0].Public()}} }

func verifier(at time.Time) *Verifier {
	return &Verifier{
		Keys: publicKeys(), Issuer: "https://platform.example", Audiences: []string{"cluster-a", "cluster-b"},
		Now: func() time.Time { return at },
	}
}

func sign(t testing.TB, key *SigningKey, c Claims) string {
	t.Helper()
	text, err := key.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// forge signs any header and payload with the first keys, whatever they say.
func forge(header, payload string) string {
	text := b64(header) + "." + b64(payload)
	for _, key := range []*SigningKey{ecKeys()[0], rsaKeys()[0]} {
		if strings.Contains(header, key.ID()) {
			return text + "." + b64(string(must(key.method.Sign(text, key.private))))
		}
	}
	panic("no key of ours in " + header)
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestVerify(t *testing.T) {
	ctx := context.Background()
	for _, key := range []*SigningKey{ecKeys()[0], rsaKeys()[0]} {
		got, err := verifier(born).Verify(ctx, secret.String(sign(t, key, claims())))
		if err != nil || !reflect.DeepEqual(got, claims()) {
			t.Errorf("%s: %+v, %v", key.Algorithm(), got, err)
		}
	}
	for _, row := range []struct {
		section  string
		sentence string
		change   func(*Claims)
		at       time.Time
		want     error
	}{
		{"ADR-0012", "until its end it is accepted", nil, born.Add(time.Hour - 1), nil},
		{"ADR-0012", "from its end on it is not", nil, born.Add(time.Hour), ErrExpired},
		{"ADR-0012", "a clock that is behind is forgiven", nil, born.Add(-Leeway), nil},
		{"ADR-0012", "as far as the leeway", nil, born.Add(-Leeway - 1), ErrNotYetValid},
		{"RFC 7519 4.1.5", "not before nbf", func(c *Claims) { c.NotBefore = born.Add(30 * time.Minute) }, born, ErrNotYetValid},
		{"ADR-0012", "not before iat", func(c *Claims) { c.IssuedAt = born.Add(30 * time.Minute) }, born, ErrNotYetValid},
		{"RFC 7519 4.1.1", "of another issuer", func(c *Claims) { c.Issuer += "/" }, born, ErrIssuer},
		{"RFC 7519 4.1.3", "for somebody else", func(c *Claims) { c.Audience = []string{"cluster-c", "Cluster-a"} }, born, ErrAudience},
		{"RFC 7519 4.1.3", "one audience of several is enough", func(c *Claims) { c.Audience = []string{"cluster-c", "cluster-b"} }, born, nil},
		{"Spec 2.3", "without a scope", func(c *Claims) { c.Scope = nil }, born, nil},
		{"Spec 2.3", "with an empty scope", func(c *Claims) { c.Scope = &model.Scope{} }, born, nil},
	} {
		c := claims()
		if row.change != nil {
			row.change(&c)
		}
		got, err := verifier(row.at).Verify(ctx, secret.String(sign(t, ecKeys()[0], c)))
		if !errors.Is(err, row.want) || !errors.Is(Refusal(err), row.want) {
			t.Errorf("%s: %s: %v, want %v", row.section, row.sentence, err, row.want)
		}
		if err == nil && (got.Scope == nil) != (c.Scope == nil) {
			t.Errorf("%s: %s: the scope became %v", row.section, row.sentence, got.Scope)
		}
	}
}

func TestNobodysAudience(t *testing.T) {
	v := verifier(born)
	v.Audiences = nil
	if _, err := v.Verify(t.Context(), secret.String(sign(t, ecKeys()[0], claims()))); !errors.Is(err, ErrAudience) {
		t.Errorf("%v", err)
	}
}

func TestRevoked(t *testing.T) {
	away := errors.New("away")
	text := secret.String(sign(t, ecKeys()[0], claims()))
	for _, row := range []struct {
		revoked bool
		err     error
		want    error
	}{{false, nil, nil}, {true, nil, ErrRevoked}, {false, away, away}} {
		v := verifier(born)
		v.Revoked = func(_ context.Context, c Claims) (bool, error) {
			if c.ID != claims().ID {
				t.Errorf("asked about %q", c.ID)
			}
			return row.revoked, row.err
		}
		if _, err := v.Verify(t.Context(), text); !errors.Is(err, row.want) {
			t.Errorf("%v, want %v", err, row.want)
		}
	}
	if Refusal(away) != nil {
		t.Error("what could not be checked is a refusal")
	}
}

// A token has one text: the second form of its signature, which anyone can compute, is refused. Tokens of earlier
// builds, which do not say that their form is the first, are accepted in both. Source: ADR-0022.
func TestOneText(t *testing.T) {
	key := ecKeys()[0]
	order := key.public.Key.(*ecdsa.PublicKey).Params().N
	second := func(text string) string {
		position := strings.LastIndexByte(text, '.') + 1
		signature := must(encoding.DecodeString(text[position:]))
		s := new(big.Int).Sub(order, new(big.Int).SetBytes(signature[32:]))
		return text[:position] + encoding.EncodeToString(append(signature[:32:32], s.FillBytes(make([]byte, 32))...))
	}
	verify := func(text string) error {
		_, err := verifier(born).Verify(t.Context(), secret.String(text))
		return err
	}
	for i := range 50 {
		c := claims()
		c.ID = fmt.Sprint(i)
		text := sign(t, key, c)
		if err := verify(text); err != nil {
			t.Fatalf("a token is refused: %v", err)
		}
		if err := verify(second(text)); !errors.Is(err, ErrSignature) {
			t.Fatalf("its second text: %v", err)
		}
		if second(second(text)) != text {
			t.Fatal("the second form of the second form is not the first")
		}
	}
	earlier := forge(`{"alg":"ES256","kid":"`+key.ID()+`","typ":"JWT"}`, string(must(json.Marshal(claims()))))
	for _, text := range []string{earlier, second(earlier)} {
		if err := verify(text); err != nil {
			t.Errorf("a token of an earlier build is refused: %v", err)
		}
	}
	// A signature of RSA plus the modulus is another number of the same signature, and is refused as it is.
	text := sign(t, rsaKeys()[0], claims())
	position := strings.LastIndexByte(text, '.') + 1
	signature := new(big.Int).SetBytes(must(encoding.DecodeString(text[position:])))
	modulus := rsaKeys()[0].public.Key.(*rsa.PublicKey).N
	if err := verify(text[:position] + encoding.EncodeToString(signature.Add(signature, modulus).Bytes())); !errors.Is(err, ErrSignature) {
		t.Errorf("a signature plus the modulus: %v", err)
	}
}

// Every spelling of a token but the right one is refused. Source: RFC 7515 2, 4, 5.2; RFC 8725 2, 3.
func TestForgeries(t *testing.T) {
	ec, other, rsaKey := ecKeys()[0], ecKeys()[1], rsaKeys()[0]
	payload := string(must(json.Marshal(claims())))
	ecHeader := `{"alg":"ES256","kid":"` + ec.ID() + `","typ":"JWT"}`
	good := forge(ecHeader, payload)
	if _, err := verifier(born).Verify(t.Context(), secret.String(good)); err != nil {
		t.Fatalf("the forger cannot make a good one: %v", err)
	}
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	hs := func(secretBytes []byte, id string) string {
		text := b64(`{"alg":"HS256","kid":"`+id+`"}`) + "." + body
		mac := hmac.New(sha256.New, secretBytes)
		mac.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	der := must(x509.MarshalPKIXPublicKey(rsaKey.Public().Key))
	embedded := `{"alg":"ES256","kid":"` + ec.ID() + `","jwk":` + string(must(json.Marshal(other.Public()))) + `}`
	embeddedText := b64(embedded) + "." + body
	asn1 := must(ec.private.Sign(rand.Reader, sum(head+"."+body), crypto.SHA256))
	ps256 := b64(`{"alg":"PS256","kid":"`+rsaKey.ID()+`"}`) + "." + body
	for about, row := range map[string]struct {
		text string
		want error
	}{
		"nothing":                 {"", ErrMalformed},
		"two parts":               {head + "." + body, ErrMalformed},
		"four parts":              {good + ".", ErrMalformed},
		"no signature":            {head + "." + body + ".", ErrSignature},
		"no payload":              {head + ".." + signature, ErrSignature},
		"no header":               {"." + body + "." + signature, ErrMalformed},
		"JSON serialization":      {`{"payload":"` + body + `","protected":"` + head + `","signature":"` + signature + `"}`, ErrMalformed},
		"too large":               {strings.Repeat("a", MaxBytes+1), ErrTooLarge},
		"padding":                 {head + "." + body + "." + signature + "==", ErrMalformed},
		"stray bits":              {good[:len(good)-1] + stray(good[len(good)-1]), ErrMalformed},
		"a line end":              {head + "." + body + "." + signature[:10] + "\n" + signature[10:], ErrMalformed},
		"a carriage return":       {head + "\r." + body + "." + signature, ErrMalformed},
		"a blank":                 {good + " ", ErrMalformed},
		"the other alphabet":      {head + "." + body + "." + "+/" + signature[2:], ErrMalformed},
		"none":                    {b64(`{"alg":"none","kid":"`+ec.ID()+`"}`) + "." + body + ".", ErrSignature},
		"None, with a signature":  {b64(`{"alg":"None","kid":"`+ec.ID()+`"}`) + "." + body + "." + signature, ErrSignature},
		"HMAC with the DER":       {hs(der, rsaKey.ID()), ErrSignature},
		"HMAC with the PEM":       {hs(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), rsaKey.ID()), ErrSignature},
		"HMAC with the kid":       {hs([]byte(ec.ID()), ec.ID()), ErrSignature},
		"another algorithm":       {forge(`{"alg":"RS256","kid":"`+ec.ID()+`"}`, payload), ErrSignature},
		"another hash":            {forge(`{"alg":"ES384","kid":"`+ec.ID()+`"}`, payload), ErrSignature},
		"another padding":         {ps256 + "." + b64(string(must(rsa.SignPSS(rand.Reader, rsaKey.private.(*rsa.PrivateKey), crypto.SHA256, sum(ps256), nil)))), ErrSignature},
		"a foreign key":           {strings.Replace(sign(t, other, claims()), b64(`{"alg":"ES256","kid":"`+other.ID()), b64(`{"alg":"ES256","kid":"`+ec.ID()), 1), ErrSignature},
		"an unknown kid":          {sign(t, other, claims()), ErrUnknownKey},
		"a key that comes along":  {embeddedText + "." + b64(string(must(other.method.Sign(embeddedText, other.private)))), ErrSignature},
		"an ASN.1 signature":      {head + "." + body + "." + b64(string(asn1)), ErrSignature},
		"a signature of zeros":    {head + "." + body + "." + b64(strings.Repeat("\x00", 64)), ErrSignature},
		"another payload":         {head + "." + b64(strings.Replace(payload, "ana", "root", 1)) + "." + signature, ErrSignature},
		"crit":                    {forge(`{"alg":"ES256","kid":"`+ec.ID()+`","crit":["exp"],"exp":1}`, payload), ErrMalformed},
		"an empty crit":           {forge(`{"alg":"ES256","kid":"`+ec.ID()+`","crit":[]}`, payload), ErrMalformed},
		"a crit that is null":     {forge(`{"alg":"ES256","kid":"`+ec.ID()+`","crit":null}`, payload), ErrMalformed},
		"two algs":                {forge(`{"alg":"none","alg":"ES256","kid":"`+ec.ID()+`"}`, payload), ErrMalformed},
		"two kids":                {forge(`{"alg":"ES256","kid":"x","kid":"`+ec.ID()+`"}`, payload), ErrMalformed},
		"no alg":                  {forge(`{"kid":"`+ec.ID()+`"}`, payload), ErrMalformed},
		"a number for alg":        {forge(`{"alg":256,"kid":"`+ec.ID()+`"}`, payload), ErrMalformed},
		"no kid":                  {b64(`{"alg":"ES256"}`) + "." + body + "." + signature, ErrMalformed},
		"Kid":                     {forge(`{"alg":"ES256","Kid":"`+ec.ID()+`"}`, payload), ErrMalformed},
		"another type":            {forge(`{"alg":"ES256","kid":"`+ec.ID()+`","typ":"JWE"}`, payload), ErrMalformed},
		"a null type":             {forge(`{"alg":"ES256","kid":"`+ec.ID()+`","typ":null}`, payload), ErrMalformed},
		"a header that is a list": {b64(`["`+ec.ID()+`"]`) + "." + body + "." + signature, ErrMalformed},
		"a header of two objects": {forge(ecHeader+ecHeader, payload), ErrMalformed},
		"a header of odd bytes":   {forge(`{"alg":"ES256","x":"`+"\xff"+`","kid":"`+ec.ID()+`"}`, payload), ErrMalformed},
	} {
		claims, err := verifier(born).Verify(t.Context(), secret.String(row.text))
		if !errors.Is(err, row.want) || !reflect.DeepEqual(claims, Claims{}) {
			t.Errorf("%s: %+v, %v; want %v", about, claims, err, row.want)
		}
	}
	for about, text := range map[string]string{
		"no type":                      forge(`{"alg":"ES256","kid":"`+ec.ID()+`"}`, payload),
		"members that mean nothing":    forge(`{"alg":"ES256","kid":"`+ec.ID()+`","jku":"https://evil.example","x5u":"https://evil.example","b64":false}`, payload),
		"a type in small letters":      forge(`{"typ":"jwt","alg":"ES256","kid":"`+ec.ID()+`"}`, payload),
		"an audience that is a string": forge(ecHeader, strings.Replace(payload, `["cluster-a"]`, `"cluster-a"`, 1)),
		"claims of others":             forge(ecHeader, `{"amr":{"x":[null]},`+payload[1:]),
	} {
		if _, err := verifier(born).Verify(t.Context(), secret.String(text)); err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
}

func sum(text string) []byte {
	hash := sha256.Sum256([]byte(text))
	return hash[:]
}

// stray is another letter for the same two bits at the end of 64 bytes.
func stray(last byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, last)+1])
}

// Source: RFC 7519 4, 7.2; RFC 8725 3.
func TestClaimsThatAreRefused(t *testing.T) {
	good := string(must(json.Marshal(claims())))
	change := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("%s is not in %s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	for about, text := range map[string]string{
		"nothing":                       "",
		"null":                          "null",
		"a list":                        "[" + good + "]",
		"a word":                        "foo",
		"two objects":                   good + good,
		"cut short":                     good[:len(good)-1],
		"odd bytes":                     change(`"ana"`, "\"an\xff\""),
		"a member twice":                change(`"sub":"ana"`, `"sub":"root","sub":"ana"`),
		"a member twice, deep inside":   change(`"clusters":[`, `"clusters":[],"clusters":[`),
		"a foreign member twice":        change(`"sub":"ana"`, `"sub":"ana","x":[{"y":1,"y":1}]`),
		"no iss":                        change(`"iss"`, `"isss"`),
		"Iss":                           change(`"iss"`, `"Iss"`),
		"no sub":                        change(`"sub"`, `"subject"`),
		"an empty sub":                  change(`"ana"`, `""`),
		"a sub that is a number":        change(`"ana"`, `7`),
		"no aud":                        change(`"aud"`, `"audience"`),
		"an empty aud":                  change(`["cluster-a"]`, `[]`),
		"an aud of nothing":             change(`["cluster-a"]`, `[""]`),
		"an aud that is null":           change(`["cluster-a"]`, `null`),
		"an aud with null":              change(`["cluster-a"]`, `["cluster-a",null]`),
		"an aud that is an object":      change(`["cluster-a"]`, `{"cluster-a":true}`),
		"no jti":                        change(`"jti"`, `"id"`),
		"no exp":                        change(`"exp"`, `"expires"`),
		"an exp that is null":           change(`1772370000`, `null`),
		"an exp that is text":           change(`1772370000`, `"1772370000"`),
		"an exp with a fraction":        change(`1772370000`, `1772370000.5`),
		"an exp with an exponent":       change(`1772370000`, `1e300`),
		"an exp that overflows":         change(`1772370000`, `18446744073709551617`),
		"an exp beyond time":            change(`1772370000`, `9223372036854775807`),
		"an exp before time":            change(`1772370000`, `-1`),
		"no nbf":                        change(`"nbf"`, `"n"`),
		"no iat":                        change(`"iat"`, `"i"`),
		"groups that are text":          change(`["dev"]`, `"dev"`),
		"groups with null":              change(`["dev"]`, `["dev",null]`),
		"groups that are null":          change(`["dev"]`, `null`),
		"a scope that is null":          change(`{"clusters":[{"cluster":"a"}]}`, `null`),
		"a scope that is a list":        change(`{"clusters":[{"cluster":"a"}]}`, `[]`),
		"a scope that is text":          change(`{"clusters":[{"cluster":"a"}]}`, `"all"`),
		"a scope with a new word":       change(`{"clusters":[{"cluster":"a"}]}`, `{"rules":[{"hours":["09-17"]}]}`),
		"a scope in another case":       change(`"clusters":`, `"Clusters":`),
		"a scope of a wrong type":       change(`[{"cluster":"a"}]`, `{"cluster":"a"}`),
		"a scope whose entry is a list": change(`{"cluster":"a"}`, `["a"]`),
	} {
		if got, err := ParseClaims([]byte(text)); !errors.Is(err, ErrMalformed) || !reflect.DeepEqual(got, Claims{}) {
			t.Errorf("%s: %+v, %v", about, got, err)
		}
	}
}

// A change at any place is refused: there is one text for each signature.
func TestEveryByteCounts(t *testing.T) {
	text := sign(t, ecKeys()[0], claims())
	rapid.Check(t, func(t *rapid.T) {
		altered := []byte(text)
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		altered[at] = rapid.Byte().Filter(func(b byte) bool { return b != text[at] }).Draw(t, "byte")
		if _, err := verifier(born).Verify(context.Background(), secret.String(altered)); Refusal(err) == nil {
			t.Fatalf("%q: %v", altered, err)
		}
	})
}

// Two keys with one kid are no key.
func TestKeySetsThatAreRefused(t *testing.T) {
	key := string(must(json.Marshal(ecKeys()[0].Public())))
	other := string(must(json.Marshal(ecKeys()[1].Public())))
	small := weak(t)
	n := b64(string(small.N.Bytes()))
	private := must(ecKeys()[0].private.(*ecdsa.PrivateKey).Bytes())
	for about, text := range map[string]string{
		"nothing":                "",
		"no keys":                `{}`,
		"keys that are null":     `{"keys":null}`,
		"a list":                 `[` + key + `]`,
		"keys twice":             `{"keys":[],"keys":[` + key + `]}`,
		"one kid for two keys":   `{"keys":[` + key + `,` + strings.Replace(other, ecKeys()[1].ID(), ecKeys()[0].ID(), 1) + `]}`,
		"the same key twice":     `{"keys":[` + key + `,` + key + `]}`,
		"no kid":                 `{"keys":[` + strings.Replace(key, `"kid"`, `"id"`, 1) + `]}`,
		"a kid twice":            `{"keys":[` + strings.Replace(key, `"kid"`, `"kid":"x","kid"`, 1) + `]}`,
		"a private key":          `{"keys":[{"d":"` + b64(string(private)) + `",` + key[1:] + `]}`,
		"a private key of null":  `{"keys":[{"d":null,` + key[1:] + `]}`,
		"a shared secret":        `{"keys":[{"kty":"oct","kid":"x","k":"c2VjcmV0"}]}`,
		"a point off the curve":  `{"keys":[{"kty":"EC","crv":"P-256","kid":"x","x":"` + b64(strings.Repeat("\x01", 32)) + `","y":"` + b64(strings.Repeat("\x01", 32)) + `"}]}`,
		"a short coordinate":     `{"keys":[{"kty":"EC","crv":"P-256","kid":"x","x":"AQ","y":"AQ"}]}`,
		"padding":                `{"keys":[` + strings.Replace(key, `","y"`, `=","y"`, 1) + `]}`,
		"a weak RSA key":         `{"keys":[{"kty":"RSA","kid":"x","n":"` + n + `","e":"AQAB"}]}`,
		"a modulus with zeros":   `{"keys":[{"kty":"RSA","kid":"x","n":"` + b64("\x00"+string(rsaKeys()[0].Public().Key.(*rsa.PublicKey).N.Bytes())) + `","e":"AQAB"}]}`,
		"an exponent of one":     `{"keys":[{"kty":"RSA","kid":"x","n":"` + b64(string(rsaKeys()[0].Public().Key.(*rsa.PublicKey).N.Bytes())) + `","e":"AQ"}]}`,
		"an exponent of a giant": `{"keys":[{"kty":"RSA","kid":"x","n":"` + b64(string(rsaKeys()[0].Public().Key.(*rsa.PublicKey).N.Bytes())) + `","e":"_____w"}]}`,
		"numbers for texts":      `{"keys":[{"kty":7}]}`,
	} {
		var set JWKS
		if err := json.Unmarshal([]byte(text), &set); err == nil || len(set.Keys) > 0 {
			t.Errorf("%s: %+v, %v", about, set, err)
		}
	}
	twice := JWKS{Keys: []JWK{ecKeys()[0].Public(), {Key: ecKeys()[1].Public().Key, ID: ecKeys()[0].ID()}}}
	if key, err := twice.Key(t.Context(), ecKeys()[0].ID()); !errors.Is(err, ErrUnknownKey) || key.Key != nil {
		t.Errorf("%+v, %v", key, err)
	}
}

// Source: RFC 7517 5.
func TestKeysForSomethingElseAreLeftOut(t *testing.T) {
	key := string(must(json.Marshal(ecKeys()[0].Public())))
	p384 := must(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)).PublicKey.Bytes())
	var set JWKS
	err := json.Unmarshal([]byte(`{"keys":[
		{"kty":"OKP","crv":"Ed25519","kid":"1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
		{"kty":"EC","crv":"P-384","kid":"2","x":"`+b64(string(p384[1:49]))+`","y":"`+b64(string(p384[49:]))+`"},
		`+strings.Replace(key, `"sig"`, `"enc"`, 1)+`,
		`+strings.Replace(key, `"use":"sig"`, `"key_ops":["encrypt"]`, 1)+`,
		`+strings.Replace(key, `ES256`, `ECDH-ES`, 1)+`,
		`+strings.Replace(key, `"use":"sig"`, `"key_ops":["verify"],"x5c":["AA"]`, 1)+`],"more":1}`), &set)
	if err != nil || !reflect.DeepEqual(set, JWKS{Keys: []JWK{ecKeys()[0].Public()}}) {
		t.Errorf("%+v, %v", set, err)
	}
}

// The examples A.2 and A.3 of RFC 7515: their signatures verify. They name no key, which ours must.
func TestPublishedSignatures(t *testing.T) {
	const payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
	for _, row := range []struct{ about, key, header, signature string }{
		{"A.2", `{"kty":"RSA","kid":"x","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}`,
			"eyJhbGciOiJSUzI1NiJ9", "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"},
		{"A.3", `{"kty":"EC","kid":"x","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
			"eyJhbGciOiJFUzI1NiJ9", "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
	} {
		var key JWK
		if err := json.Unmarshal([]byte(row.key), &key); err != nil {
			t.Fatalf("%s: %v", row.about, err)
		}
		verifies := must(method(key.Key))
		if err := verifies.Verify(row.header+"."+payload, must(encoding.DecodeString(row.signature)), key.Key); err != nil {
			t.Errorf("%s: %v", row.about, err)
		}
		if _, err := Open(t.Context(), JWKS{Keys: []JWK{key}}, secret.String(row.header+"."+payload+"."+row.signature)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: a token that names no key: %v", row.about, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(must(ecKeys()[0].Sign(claims())))
	f.Add(must(rsaKeys()[0].Sign(claims())))
	f.Add("e30.e30.")
	good := map[string]bool{}
	for _, key := range []*SigningKey{ecKeys()[0], rsaKeys()[0]} {
		good[must(key.Sign(claims()))] = true
	}
	f.Fuzz(func(t *testing.T, text string) {
		claims, err := verifier(born).Verify(context.Background(), secret.String(text))
		if err != nil {
			if Refusal(err) == nil {
				t.Errorf("%q cannot be checked: %v", text, err)
			}
			return
		}
		// A forged signature does not verify by chance: the token was signed here.
		parts := strings.Split(text, ".")
		if again, err := ParseClaims(must(encoding.DecodeString(parts[1]))); err != nil || !reflect.DeepEqual(again, claims) {
			t.Errorf("%q reads as %+v and %+v", text, claims, again)
		}
	})
}

func FuzzParseClaims(f *testing.F) {
	f.Add(must(json.Marshal(claims())))
	f.Add([]byte(`{"iss":"a","sub":"b","aud":"c","iat":0,"nbf":0,"exp":1,"jti":"d","scope":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := ParseClaims(text)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseClaims(must(json.Marshal(read)))
		if len(read.Groups) == 0 {
			read.Groups, again.Groups = nil, nil
		}
		if err != nil || must(json.Marshal(read)) == nil || string(must(json.Marshal(read))) != string(must(json.Marshal(again))) {
			t.Errorf("%q reads as %+v, and that as %+v, %v", text, read, again, err)
		}
	})
}

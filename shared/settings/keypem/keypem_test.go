package keypem

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"reflect"
	"strings"
	"testing"

	"management.platform.sh/shared/model/secret"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func private(key crypto.Signer) string {
	return block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
}

func public(key crypto.Signer) string {
	return block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(key.Public())))
}

// The first key signs; keys behind it may be public. Source: ADR-0011.
func TestParse(t *testing.T) {
	t.Parallel()
	curve, prime := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(rsa.GenerateKey(rand.Reader, MinRSABits))
	for about, row := range map[string]struct {
		text  string
		signs []bool
	}{
		"one":                  {private(curve), []bool{true}},
		"two private ones":     {private(prime) + private(curve), []bool{true, true}},
		"one that signed once": {private(curve) + "# before\n" + public(prime), []bool{true, false}},
		"SEC 1":                {block("EC PARAMETERS", []byte{6}) + block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(curve))), []bool{true}},
		"PKCS 1":               {block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(prime)), []bool{true}},
	} {
		keys, err := Parse(secret.String(row.text))
		if err != nil || len(keys) != len(row.signs) {
			t.Errorf("%s: %v, %v", about, keys, err)
			continue
		}
		for i, key := range keys {
			if (key.Private != nil) != row.signs[i] || key.Public == nil {
				t.Errorf("%s: key %d: %+v", about, i+1, key)
			}
		}
	}
	const hush = "aHVudGVyMg"
	large := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	for about, text := range map[string]string{
		"nothing": "", "no PEM": hush, "a public one that signs": public(curve), "a certificate": block("CERTIFICATE", []byte(hush)),
		"no key": private(curve) + block("PRIVATE KEY", []byte(hush)), "one twice": private(curve) + public(curve), "another curve": private(large),
		"another curve behind": private(curve) + public(large), "a damaged one": private(curve) + strings.Replace(public(prime), "-----END", "----END", 1),
	} {
		if keys, err := Parse(secret.String(text)); err == nil || strings.Contains(err.Error(), hush) {
			t.Errorf("%s: %v, %v", about, keys, err)
		}
	}
}

// A key of a kind or size that signs no token is refused. Source: ADR-0012.
func TestCheck(t *testing.T) {
	t.Parallel()
	if err := Check("text"); err == nil {
		t.Error("a text is a key")
	}
	even := must(rsa.GenerateKey(rand.Reader, MinRSABits)).PublicKey
	even.E = 4
	if err := Check(&even); err == nil {
		t.Error("an even exponent")
	}
}

// Every form of a private key is read as the same key.
func TestParsePrivate(t *testing.T) {
	t.Parallel()
	curve := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	prime := must(rsa.GenerateKey(rand.Reader, MinRSABits))
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for about, row := range map[string]struct {
		kind string
		der  []byte
		key  crypto.Signer
	}{
		"PKCS 8, ECDSA":   {"PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(curve)), curve},
		"PKCS 8, RSA":     {"PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(prime)), prime},
		"PKCS 8, Ed25519": {"PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(edwards)), edwards},
		"SEC 1":           {"EC PRIVATE KEY", must(x509.MarshalECPrivateKey(curve)), curve},
		"PKCS 1":          {"RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(prime), prime},
	} {
		if key, err := ParsePrivate(&pem.Block{Type: row.kind, Bytes: row.der}); err != nil || !reflect.DeepEqual(key.Public(), row.key.Public()) {
			t.Errorf("%s: %v, %v", about, key, err)
		}
	}
}

// Errors say what is wrong, and quote nothing of the key.
func TestParsePrivateRefused(t *testing.T) {
	t.Parallel()
	const hush = "hunter2hunter2"
	for about, row := range map[string]struct {
		block pem.Block
		want  error
	}{
		"encrypted, PKCS 8":    {pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte(hush)}, ErrEncrypted},
		"encrypted, RFC 1421":  {pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"DEK-Info": "AES-256-CBC,00"}, Bytes: []byte(hush)}, ErrEncrypted},
		"a certificate":        {pem.Block{Type: "CERTIFICATE", Bytes: []byte(hush)}, errType},
		"a public key":         {pem.Block{Type: "PUBLIC KEY", Bytes: []byte(hush)}, errType},
		"no DER":               {pem.Block{Type: "PRIVATE KEY", Bytes: []byte(hush)}, nil},
		"a key for agreements": {pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(must(ecdh.X25519().GenerateKey(rand.Reader))))}, nil},
	} {
		key, err := ParsePrivate(&row.block)
		if err == nil || row.want != nil && !errors.Is(err, row.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %v", about, key, err)
		}
	}
}

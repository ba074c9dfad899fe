package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"testing"
	"time"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkToken is a token from the request to its record, authentication and all, beside the signature alone that it
// cannot do without, and a verification. tokens/s of Issue over that of Signature is what the rest costs.
func BenchmarkToken(b *testing.B) {
	rate := func(b *testing.B) {
		b.Helper()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
	}
	b.Run("Signature", func(b *testing.B) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		digest := sha256.Sum256([]byte("a token"))
		for b.Loop() {
			if _, err := ecdsa.SignASN1(rand.Reader, key, digest[:]); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
	path := frame.BasePath + "/apis/" + model.SchemeGroupVersion.String() + "/directclusterendpointtokens"
	for _, state := range []struct {
		name string
		url  func() string
	}{
		{"redis", func() string { return redistest.Server(b).UnixURL() }},
		{"embedded", func() string { return redistest.Embedded(b) }},
	} {
		for _, dry := range []string{"", "dryRun=All"} {
			name := "Issue/"
			if dry != "" {
				name = "DryRun/"
			}
			b.Run(name+state.name, func(b *testing.B) {
				s := newTokenServer(b, state.url())
				b.ReportAllocs()
				b.SetParallelism(32)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if got := s.call(http.MethodPost, path, dry, []byte(`{"metadata":{},"spec":{}}`)); got != http.StatusCreated {
							b.Errorf("HTTP status %d", got)
						}
					}
				})
				rate(b)
			})
		}
	}
}

// newTokenServer is newServer with what tokens need.
func newTokenServer(b *testing.B, url string) *server {
	b.Helper()
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		b.Fatal(err)
	}
	s := newServer(b, url, time.Now)
	s.env.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	s.env.Tokens.Issuer = "https://platform.example"
	s.Handler = s.Mount(catalog.Functions...)
	return s
}

package signingkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"management.platform.sh/shared/signing/token"
)

// State is the stage in the life of a key.
type State string

// The states of a key, in the order of its life. Source: ADR-0011.
const (
	// Next is the state of a key that is published but does not sign yet, so that verifiers have it before they need
	// it. There is always one, because the active key may be tainted at any moment.
	Next State = "next"
	// Active is the state of the key that signs. It is published. There is exactly one.
	Active State = "active"
	// Retired is the state of a key that is published until the last token that it signed has expired. Its private half
	// is deleted.
	Retired State = "retired"
	// Tainted is the state of a withdrawn key: it is not published, and only its name is kept.
	Tainted State = "tainted"
)

// Key describes one key, without its private and public half.
type Key struct {
	// ID is the kid: the thumbprint of the public key.
	ID string `json:"kid"`
	// Algorithm is ES256 or RS256.
	Algorithm string `json:"alg"`
	State     State  `json:"state"`
	// Since is when the key entered its state.
	Since time.Time `json:"since"`
	// Ends is when a retired or tainted key is removed from the ring. Zero in the other states.
	Ends time.Time `json:"ends,omitzero"`
}

// storedKey is a key as it is stored in the ring.
type storedKey struct {
	Key
	// Longest is the longest lifetime of a token that the key may have signed.
	Longest time.Duration `json:"longest,omitempty"`
	// Soon makes the key take over once it has been published long enough, whatever the age of the active key.
	Soon bool `json:"soon,omitempty"`
	// Private is PKCS 8 in DER, for keys that sign or will sign; Public is PKIX in DER.
	Private []byte `json:"private,omitempty"`
	Public  []byte `json:"public,omitempty"`
}

// ring has all keys, in the order in which they were made.
type ring []storedKey

// rsaBits is the size of the RSA keys that the platform makes.
const rsaBits = 2048

// slack is how much longer a retired key is published than its last token can live: processes that have not read the
// change yet sign with it for up to refreshAfter, clocks differ, and verifiers have a leeway. Source: ADR-0011.
const slack = 2 * time.Minute

func generate(algorithm string) (storedKey, error) {
	var private crypto.Signer
	var err error
	switch algorithm {
	case token.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case token.RS256:
		private, err = rsa.GenerateKey(rand.Reader, rsaBits)
	default:
		return storedKey{}, fmt.Errorf("unknown signing algorithm %q: use %s or %s", algorithm, token.ES256, token.RS256)
	}
	if err != nil {
		return storedKey{}, fmt.Errorf("making a signing key: %w", err)
	}
	signing, err := token.NewSigningKey(private)
	if err != nil {
		return storedKey{}, fmt.Errorf("making a signing key: %w", err)
	}
	entry := storedKey{Key: Key{ID: signing.ID(), Algorithm: signing.Algorithm()}}
	if entry.Private, err = x509.MarshalPKCS8PrivateKey(private); err != nil {
		return storedKey{}, fmt.Errorf("encoding a signing key: %w", err)
	}
	if entry.Public, err = x509.MarshalPKIXPublicKey(private.Public()); err != nil {
		return storedKey{}, fmt.Errorf("encoding a signing key: %w", err)
	}
	return entry, nil
}

// firstIn returns the first key in a state, or nil.
func (r ring) firstIn(state State) *storedKey {
	if i := slices.IndexFunc(r, func(k storedKey) bool { return k.State == state }); i >= 0 {
		return &r[i]
	}
	return nil
}

// advance returns the ring as it should be at a time. It removes keys that have ended, and makes an active key and a
// next one where they are missing. The next key takes over when it is due and has been published long enough. Calling
// it twice gives the same result as calling it once, and it continues from any ring, however old. Hurry makes the next
// change happen as early as possible.
func (r ring) advance(now time.Time, s Settings, hurry bool) (ring, error) {
	r = slices.DeleteFunc(slices.Clone(r), func(k storedKey) bool {
		over := !k.Ends.IsZero() && !now.Before(k.Ends)
		unwanted := k.State == Next && k.Algorithm != s.Algorithm
		return over || unwanted
	})
	add := func(state State) error {
		made, err := generate(s.Algorithm)
		if err == nil {
			made.State, made.Since = state, now
			r = append(r, made)
		}
		return err
	}
	if r.firstIn(Active) == nil {
		// The ring is new, or the active key was tainted: the next key must sign now, even if it was not published long
		// enough.
		if next := r.firstIn(Next); next != nil {
			next.State, next.Since, next.Soon = Active, now, false
		} else if err := add(Active); err != nil {
			return nil, err
		}
	}
	if r.firstIn(Next) == nil {
		if err := add(Next); err != nil {
			return nil, err
		}
	}
	active, next := r.firstIn(Active), r.firstIn(Next)
	active.Longest = max(active.Longest, s.MaxTTL)
	next.Soon = next.Soon || hurry || active.Algorithm != s.Algorithm
	if now.Before(next.Since.Add(s.PublishBefore)) || !next.Soon && now.Before(active.Since.Add(s.RotateEvery)) {
		return r, nil
	}
	active.State, active.Since, active.Private = Retired, now, nil
	active.Ends = now.Add(active.Longest + slack)
	next.State, next.Since, next.Soon, next.Longest = Active, now, false, s.MaxTTL
	err := add(Next)
	return r, err
}

// taint withdraws a key, and replaces it if it was the active one. Ok is false if no key has the kid.
func (r ring) taint(id string, now time.Time, s Settings) (tainted ring, ok bool, err error) {
	r = slices.Clone(r)
	i := slices.IndexFunc(r, func(k storedKey) bool { return k.ID == id })
	if i < 0 {
		return nil, false, nil
	}
	if r[i].State == Tainted {
		return r, true, nil
	}
	r[i].Ends = now.Add(max(r[i].Longest, s.MaxTTL) + slack)
	r[i].State, r[i].Since, r[i].Soon, r[i].Private, r[i].Public = Tainted, now, false, nil, nil
	tainted, err = r.advance(now, s, false)
	return tainted, true, err
}

// set returns the key to sign with and the keys to publish.
func (r ring) set() (*Set, error) {
	set := &Set{}
	for _, state := range []State{Active, Next, Retired} {
		for _, k := range r {
			if k.State != state {
				continue
			}
			if state == Active {
				private, err := x509.ParsePKCS8PrivateKey(k.Private)
				signer, ok := private.(crypto.Signer)
				if err != nil || !ok {
					return nil, fmt.Errorf("the private half of the signing key %s cannot be read", k.ID)
				}
				if set.Signing, err = token.NewSigningKey(signer); err != nil {
					return nil, fmt.Errorf("the signing key %s: %w", k.ID, err)
				}
			}
			public, err := x509.ParsePKIXPublicKey(k.Public)
			if err != nil {
				return nil, fmt.Errorf("the public half of the signing key %s cannot be read", k.ID)
			}
			jwk, err := token.NewJWK(public)
			if err != nil {
				return nil, fmt.Errorf("the signing key %s: %w", k.ID, err)
			}
			set.Public.Keys = append(set.Public.Keys, jwk)
		}
	}
	if set.Signing == nil {
		return nil, errors.New("there is no active signing key")
	}
	return set, nil
}

// keys returns the descriptions of the keys in the ring.
func (r ring) keys() []Key {
	list := make([]Key, len(r))
	for i, k := range r {
		list[i] = k.Key
	}
	return list
}

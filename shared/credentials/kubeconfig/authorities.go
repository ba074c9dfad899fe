package kubeconfig

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/signing/clusterca"
	"management.platform.sh/shared/state/encryption"
)

// maxAuthorities is for how many instances a process keeps the certificate authority, some KiB each. Source: ADR-0026.
const maxAuthorities = 256

// authorityCache keeps the certificate authorities of instances after they were decrypted and parsed, one for each instance. The
// private keys are in memory alone. It cannot make an answer stale: an authority is used again only for the same encrypted
// texts of the same instance, which are read at each request. The zero value is empty. It is safe for concurrent use.
// Source: ADR-0026.
type authorityCache struct {
	once    sync.Once
	entries *lru.Cache[string, authority]
}

// authority is a parsed authority, with what it was made of.
type authority struct {
	source
	ca *clusterca.CA
}

// source is all that an authority is made of: the encrypted texts, each of which has a random nonce, the lifetime of
// certificates whose request names none, and the keys that decrypt the texts.
type source struct {
	certificate, key string
	duration         time.Duration
	ring             *encryption.Keyring
}

// sourceOf returns the source of the authority of a stored instance. Its texts are empty if the instance has no authority.
func sourceOf(sealed *model.VirtualClusterInstance, duration time.Duration, ring *encryption.Keyring) source {
	source := source{duration: duration, ring: ring}
	if signer := sealed.Spec.Signer; signer != nil && signer.CA != nil {
		source.certificate, source.key = string(signer.CA.CertData), string(signer.CA.KeyData)
	}
	return source
}

func (a *authorityCache) cache() *lru.Cache[string, authority] {
	// Only a size below one is an error.
	a.once.Do(func() { a.entries, _ = lru.New[string, authority](maxAuthorities) })
	return a.entries
}

// lookup returns the authority of the instance of a name in the store if it was made of that source. If it was made of another
// one, the authority is forgotten. Nil: there is none.
func (a *authorityCache) lookup(name string, from source) *clusterca.CA {
	entry, ok := a.cache().Get(name)
	switch {
	case !ok:
		return nil
	case entry.source != from:
		a.cache().Remove(name)
		return nil
	default:
		return entry.ca
	}
}

// add remembers the authority of an instance in place of the one before.
func (a *authorityCache) add(name string, from source, ca *clusterca.CA) {
	a.cache().Add(name, authority{from, ca})
}

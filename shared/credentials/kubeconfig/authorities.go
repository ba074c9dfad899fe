package kubeconfig

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/signing/clusterca"
	"management.platform.sh/shared/state/encryption"
)

// maxAuthorities is the number of instances whose certificate authority a process keeps in memory, some KiB each.
// Source: ADR-0026.
const maxAuthorities = 256

// authorityCache keeps decrypted and parsed certificate authorities, one for each instance. The private keys are in memory only.
// The cache cannot make an answer stale: each request reads the encrypted texts of its instance, and an authority is used again
// only if the texts are the same. The zero value is empty. It is safe for concurrent use. Source: ADR-0026.
type authorityCache struct {
	once    sync.Once
	entries *lru.Cache[string, authority]
}

// authority is a parsed authority, with its source.
type authority struct {
	source
	ca *clusterca.CA
}

// source has all inputs of an authority: the encrypted texts, each of which has a random nonce, the default lifetime of
// certificates, and the keys that decrypt the texts.
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
	// lru.New fails only for a size below one.
	a.once.Do(func() { a.entries, _ = lru.New[string, authority](maxAuthorities) })
	return a.entries
}

// lookup returns the authority of the instance whose record has a name, if the authority was made from the given source. An
// authority from another source is removed from the cache. Nil: the cache has none.
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

// add puts the authority of an instance into the cache, and replaces an earlier one.
func (a *authorityCache) add(name string, from source, ca *clusterca.CA) {
	a.cache().Add(name, authority{from, ca})
}

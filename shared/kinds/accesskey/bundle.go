package accesskey

import (
	"context"
	"errors"
	"fmt"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// related are the records that decide, together with a key, what the key may do now.
type related struct {
	// keys are the names of the keys to which the key is bound.
	keys []string
	// owners are the owners of all these keys, each once.
	owners []identity.Owner
	// rules are the trust rules that made the keys, each once.
	rules []store.Ref
}

func (r related) equal(other related) bool {
	return slices.Equal(r.keys, other.keys) && slices.Equal(r.owners, other.owners) && slices.Equal(r.rules, other.rules)
}

// bundle is a key with its related records and the object of the request. It is read in as few round trips as possible: the first
// trip asks for what this process remembers of the key.
type bundle struct {
	*Bearers
	digest string
	// target is the object of the request. A key is also among the requested keys.
	target store.Ref
	// requested is what the reads asked for.
	requested related
	// record is the record of the key, and key its object.
	record store.Record
	key    *model.OwnedAccessKey
	// Companions has the records that were read: keys by name, and all other objects by reference.
	store.Companions
}

// readBundle reads the key of a digest in one round trip, with the records that are probably related to it. Errors:
// store.ErrNotFound, store.ErrUnavailable, and the decoding error of a record that cannot be decoded.
func (b *Bearers) readBundle(ctx context.Context, digest string, target store.Ref) (*bundle, error) {
	read := &bundle{Bearers: b, digest: digest, target: target, requested: b.relatedCache().get(byDigest + digest)}
	read.requested.keys = slices.Clone(read.requested.keys)
	if target.Resource == Definition.Resource.Resource {
		read.requested.keys = append(append(read.requested.keys, target.Name), b.relatedCache().get(byName+target.Name).keys...)
	}
	if people := b.people(); people != nil && !people.IsPrepared() {
		prepared := make(chan struct{})
		go func() {
			defer close(prepared)
			people.Prepare(ctx)
		}()
		defer func() { <-prepared }()
	}
	var err error
	if read.record, err = read.fetch(ctx); err != nil {
		return nil, fmt.Errorf("looking up a bearer: %w", err)
	}
	read.key, err = b.Keys.Parse(read.record)
	return read, err
}

// fetch reads the key and everything that is requested in one round trip. A target that this build cannot decode is left out, so
// that the caller is authenticated nevertheless. The verb then reports the decoding error if the caller may see the object.
func (b *bundle) fetch(ctx context.Context) (record store.Record, err error) {
	record, b.Companions, err = b.Keys.Store.GetWith(ctx, b.digest, b.requested.keys, b.refs()...)
	if errors.Is(err, store.ErrFormat) && b.target.Name != "" {
		if b.target.Resource == Definition.Resource.Resource {
			b.requested.keys = slices.DeleteFunc(b.requested.keys, func(name string) bool { return name == b.target.Name })
		}
		b.target = store.Ref{}
		record, b.Companions, err = b.Keys.Store.GetWith(ctx, b.digest, b.requested.keys, b.refs()...)
	}
	return record, err
}

// fill reads related records until none is missing. The keys to which the key is bound name further owners and rules, so that it
// takes two round trips at most. Errors: auth.ErrUnknown if the key is gone, and the store's errors.
func (b *bundle) fill(ctx context.Context) error {
	for {
		needed, err := b.neededRelated()
		if err != nil {
			return err
		}
		switch {
		case b.lacksKeys(needed):
			b.request(needed)
			_, err := b.fetch(ctx)
			switch {
			case errors.Is(err, store.ErrNotFound):
				return auth.ErrUnknown
			case err != nil:
				return fmt.Errorf("looking up what belongs to a bearer: %w", err)
			case b.Records == nil:
				// The process has forgotten the digest meanwhile, or another request has rewritten the key.
				return fmt.Errorf("looking up what belongs to a bearer: %w", store.ErrUnavailable)
			}
		case b.lacksRefs(needed):
			b.request(needed)
			if b.Refs, err = b.Keys.Store.GetRefs(ctx, b.refs()...); err != nil {
				return fmt.Errorf("looking up the owners of access keys: %w", err)
			}
		default:
			if b.people() != nil || len(needed.keys) > 0 || len(needed.rules) > 0 {
				b.relatedCache().set(byDigest+b.digest, needed)
			}
			return nil
		}
	}
}

// neededRelated returns what is related to the key, as far as the records that were read say so.
func (b *bundle) neededRelated() (related, error) {
	needed := related{keys: Bounding(b.key.Status.Lineage), owners: []identity.Owner{OwnerOf(&b.key.Spec)}}
	keys := []*model.OwnedAccessKey{b.key}
	for _, name := range needed.keys {
		record, exists := b.Records[name]
		if !exists {
			continue
		}
		ancestor, err := b.Keys.Parse(record)
		if err != nil {
			return related{}, err
		}
		keys = append(keys, ancestor)
		if owner := OwnerOf(&ancestor.Spec); !slices.Contains(needed.owners, owner) {
			needed.owners = append(needed.owners, owner)
		}
	}
	needed.rules = rulesOfKeys(keys)
	return needed, nil
}

// lacksKeys reports whether some needed keys were not requested, or nothing was read with the key because its digest was new to
// this process.
func (b *bundle) lacksKeys(needed related) bool {
	alone := b.Records == nil && (len(needed.keys) > 0 || b.people() != nil)
	return alone || !includes(b.requested.keys, needed.keys)
}

// lacksRefs reports whether some needed owners or trust rules were not requested.
func (b *bundle) lacksRefs(needed related) bool {
	return !includes(b.requested.rules, needed.rules) || b.people() != nil && !includes(b.requested.owners, needed.owners)
}

// request adds the needed records to the requested records.
func (b *bundle) request(needed related) {
	for _, name := range needed.keys {
		if !slices.Contains(b.requested.keys, name) {
			b.requested.keys = append(b.requested.keys, name)
		}
	}
	b.requested.owners, b.requested.rules = needed.owners, needed.rules
}

// refs returns references to the requested owners and trust rules, and to the target if it is no key.
func (b *bundle) refs() []store.Ref {
	var refs []store.Ref
	if people := b.people(); people != nil {
		refs = people.Refs(b.requested.owners...)
	}
	refs = append(refs, b.requested.rules...)
	if b.target.Name != "" && b.target.Resource != Definition.Resource.Resource {
		refs = append(refs, b.target)
	}
	return refs
}

// prefetchedRecords returns the records that were read of the target's resource, by name. For another resource than access keys it
// leaves the records of keys out, because the object may have the name of a key.
func (b *bundle) prefetchedRecords() map[string]store.Record {
	if b.target.Resource == Definition.Resource.Resource {
		return b.Records
	}
	record, exists := b.Refs[b.target]
	if !exists {
		return nil
	}
	return map[string]store.Record{b.target.Name: record}
}

// includes reports whether a list has all items of another list.
func includes[T comparable](list, items []T) bool {
	return !slices.ContainsFunc(items, func(item T) bool { return !slices.Contains(list, item) })
}

// people returns the users and teams; nil if there are none.
func (b *Bearers) people() *directory.Directory {
	if own := rulesOf(b.Keys); own != nil {
		return own.people
	}
	return nil
}

// relatedCache returns what the process remembers; nil remembers nothing.
func (b *Bearers) relatedCache() *relatedCache {
	if own := rulesOf(b.Keys); own != nil {
		return own.related
	}
	return nil
}

// maxRelated is the number of keys for which a process remembers what is related to them.
const maxRelated = 4096

// byDigest and byName are the prefixes of the names of entries of a relatedCache.
const (
	byDigest = "digest:"
	byName   = "name:"
)

// relatedCache remembers what is related to a key, by its digest and by its name. An entry is only a guess: another key may have
// got the name meanwhile, and a key may have got another owner. It is safe for concurrent use. Nil remembers nothing.
type relatedCache struct{ entries *lru.Cache[string, related] }

func newRelatedCache() *relatedCache {
	// lru.New fails only for a size below one.
	entries, _ := lru.New[string, related](maxRelated)
	return &relatedCache{entries: entries}
}

func (c *relatedCache) set(name string, value related) {
	if c == nil {
		return
	}
	if present, ok := c.entries.Get(name); !ok || !present.equal(value) {
		c.entries.Add(name, value)
	}
}

func (c *relatedCache) get(name string) related {
	if c == nil {
		return related{}
	}
	value, _ := c.entries.Get(name)
	return value
}

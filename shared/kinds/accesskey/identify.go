package accesskey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// Bearers identifies callers by their access keys. It implements auth.Bearers and is safe for concurrent use.
type Bearers struct {
	// Keys are the access keys.
	Keys *Registry
	// Now is the clock.
	Now func() time.Time
	// Limits returns the platform's current limits on the life of keys.
	Limits func() Limits
	// Log receives errors that do not fail the request.
	Log *slog.Logger
}

var _ auth.Bearers = (*Bearers)(nil)

// Identify implements auth.Bearers. A malformed key is refused without a request to the state. A valid key costs one round
// trip together with the keys to which it is bound, its owner and theirs, and the trust rules that made them, or two if it is new to this process, and one more for
// each object that owns these keys: a key whose owners are gone is refused. A process that has not read the teams does so at the
// same time. A refresh key is refused. Source: Spec 5.1, 5.2; ADR-0005, ADR-0021, ADR-0029, ADR-0045.
func (b *Bearers) Identify(ctx context.Context, bearer secret.String, ahead store.Ref) (auth.Identified, error) {
	found, err := b.identify(ctx, bearer, ahead)
	if err == nil && found.Caller.KeyType == model.AccessKeyTypeOIDCRefreshToken {
		return auth.Identified{}, auth.ErrUnknown
	}
	return found, err
}

// identify is Identify for keys of all types.
func (b *Bearers) identify(ctx context.Context, bearer secret.String, ahead store.Ref) (auth.Identified, error) {
	if CheckBearer(bearer) != nil {
		return auth.Identified{}, auth.ErrUnknown
	}
	digest := Digest(bearer)
	record, read, err := b.read(ctx, digest, ahead)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return auth.Identified{}, auth.ErrUnknown
	case err != nil:
		return auth.Identified{}, fmt.Errorf("looking up a bearer: %w", err)
	}
	key, err := b.Keys.Parse(record)
	if err != nil {
		return auth.Identified{}, err
	}
	until, err := Usable(key, record.Activity, b.Limits(), b.Now())
	switch {
	case errors.Is(err, ErrExpired):
		return auth.Identified{}, auth.ErrExpired
	case errors.Is(err, ErrDisabled):
		return auth.Identified{}, auth.ErrDisabled
	case err != nil:
		return auth.Identified{}, auth.ErrUnknown
	}
	switch orphaned, err := b.Keys.Orphaned(ctx, key); {
	case err != nil:
		return auth.Identified{}, fmt.Errorf("looking up what an access key belongs to: %w", err)
	case orphaned:
		return auth.Identified{}, auth.ErrUnknown
	}
	if err := b.complete(ctx, digest, key, read); err != nil {
		return auth.Identified{}, err
	}
	state, err := ownerOf(ctx, b.people(), key, read.Refs)
	switch {
	case errors.Is(err, directory.ErrDisabled):
		return auth.Identified{}, auth.ErrOwnerDisabled
	case errors.Is(err, directory.ErrGone), errors.Is(err, directory.ErrAbsent):
		return auth.Identified{}, auth.ErrOwnerGone
	case errors.Is(err, directory.ErrSignedOut):
		return auth.Identified{}, auth.ErrSignedOut
	case err != nil:
		return auth.Identified{}, err
	}
	present, err := within(ctx, b.Keys, key.Status.Lineage, read.Together, b.Limits(), b.Now())
	switch {
	case errors.Is(err, ErrBound):
		return auth.Identified{}, auth.ErrBound
	case err != nil:
		return auth.Identified{}, fmt.Errorf("looking up the lineage of an access key: %w", err)
	}
	ruled, err := rulesPermit(ctx, b.Keys, []*model.OwnedAccessKey{key}, read.Refs)
	switch {
	case errors.Is(err, ErrRule):
		return auth.Identified{}, auth.ErrRule
	case err != nil:
		return auth.Identified{}, err
	}
	return auth.Identified{
		Caller:     callerOf(b.people(), key, state, append(ruled, present.Scopes...), earliest(until, present.Until), record.Revision, b.Now()),
		Prefetched: read.prefetched(),
		Used:       func(ctx context.Context) { b.noteUse(ctx, key, record) },
	}, nil
}

// callerOf is the caller that a key authenticates: with what its owner may do, within which scopes of the keys to which it is bound,
// until when, by which revision of its record, and with which roles in projects.
func callerOf(
	directory *directory.Directory, key *model.OwnedAccessKey, state directory.State, scopes []*model.Scope, until time.Time, revision int64, now time.Time,
) identity.Caller {
	caller := identity.New(OwnerOf(&key.Spec), groupsNow(key, state))
	if state.Managed {
		caller.OwnerObject = &model.AccessKeyOwner{UID: state.UID, Generation: state.Generation}
		caller.KeyNarrowed = len(key.Spec.Groups) > 0
		for _, group := range key.Spec.Groups {
			if !state.Has(group) && caller.In(group) && grantable(group) {
				caller.KeyGranted = append(caller.KeyGranted, group)
			}
		}
	}
	caller.Scope, caller.KeyScopes = key.Spec.Scope, scopes
	caller.Key, caller.KeyUID, caller.KeyType = key.Name, string(key.UID), typeOf(key)
	caller.KeyExpires, caller.KeyRevision, caller.KeyLineage = until, revision, key.Status.Lineage
	caller.KeyOwned, caller.KeyRecent = len(key.OwnerReferences) > 0, recent(key, now)
	caller.Maker, caller.KeyEnds = createdBy(key).Owner, key.Spec.TTLSeconds > 0
	if directory != nil {
		caller.Roles = directory.Roles(caller)
	}
	return caller
}

// together is what was read in the same round trip as a key.
type together struct {
	store.Together
	// names, owners, rules and ahead are what was asked for. Ahead is the object of the request; a key is also among the names.
	names  []string
	owners []identity.Owner
	rules  []store.Ref
	ahead  store.Ref
}

// prefetched returns the records of the resource of the object of the request that were read together, by name. A record of a key
// is not among those of another resource, whose object may have the same name.
func (t *together) prefetched() map[string]store.Record {
	if t.ahead.Resource == Definition.Resource.Resource {
		return t.Records
	}
	record, exists := t.Refs[t.ahead]
	if !exists {
		return nil
	}
	return map[string]store.Record{t.ahead.Name: record}
}

// read reads the key of a digest, with what the process remembers to belong to it, and the object of the request with what belongs
// to it if it is a key.
func (b *Bearers) read(ctx context.Context, digest string, ahead store.Ref) (store.Record, *together, error) {
	known := b.lines().recall(digestOf + digest)
	read := &together{names: slices.Clone(known.names), owners: known.owners, rules: known.rules, ahead: ahead}
	if ahead.Resource == Definition.Resource.Resource {
		read.names = append(append(read.names, ahead.Name), b.lines().recall(nameOf+ahead.Name).names...)
	}
	if directory := b.people(); directory != nil && !directory.Prepared() {
		prepared := make(chan struct{})
		go func() {
			defer close(prepared)
			directory.Prepare(ctx)
		}()
		defer func() { <-prepared }()
	}
	record, found, err := b.readWith(ctx, digest, read)
	read.Together = found
	return record, read, err
}

// readWith reads the key of a digest with what was asked for. An object of the request that this build cannot read is left out, so
// that the caller is known, and the verb reports it if they may see the object.
func (b *Bearers) readWith(ctx context.Context, digest string, read *together) (store.Record, store.Together, error) {
	record, found, err := b.Keys.Store.GetWith(ctx, digest, read.names, b.refs(read.owners, read.rules, read.ahead)...)
	if errors.Is(err, store.ErrFormat) && read.ahead.Name != "" {
		if read.ahead.Resource == Definition.Resource.Resource {
			read.names = slices.DeleteFunc(read.names, func(name string) bool { return name == read.ahead.Name })
		}
		read.ahead = store.Ref{}
		return b.Keys.Store.GetWith(ctx, digest, read.names, b.refs(read.owners, read.rules, read.ahead)...)
	}
	return record, found, err
}

// complete reads what belongs to a key and was not read with it, in one round trip.
func (b *Bearers) complete(ctx context.Context, digest string, key *model.OwnedAccessKey, read *together) error {
	bounding, rules := Bounding(key.Status.Lineage), rulesOfKeys([]*model.OwnedAccessKey{key})
	missing := func(name string) bool { return !slices.Contains(read.names, name) }
	unread := func(rule store.Ref) bool { return !slices.Contains(read.rules, rule) }
	if read.Records == nil && (len(bounding) > 0 || b.people() != nil) || slices.ContainsFunc(bounding, missing) ||
		slices.ContainsFunc(rules, unread) || b.people() != nil && !slices.Contains(read.owners, OwnerOf(&key.Spec)) {
		read.owners, read.rules = with(read.owners, OwnerOf(&key.Spec)), rules
		for _, name := range bounding {
			if missing(name) {
				read.names = append(read.names, name)
			}
		}
		_, found, err := b.readWith(ctx, digest, read)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return auth.ErrUnknown
		case err != nil:
			return fmt.Errorf("looking up what belongs to a bearer: %w", err)
		case found.Records == nil:
			// The process has forgotten the digest in between, or the key was written anew.
			return fmt.Errorf("looking up what belongs to a bearer: %w", store.ErrUnavailable)
		}
		read.Together = found
	}
	owners, together := []identity.Owner{OwnerOf(&key.Spec)}, []*model.OwnedAccessKey{key}
	for _, name := range bounding {
		if record, exists := read.Records[name]; exists {
			ancestor, err := b.Keys.Parse(record)
			if err != nil {
				return err
			}
			owners, together = with(owners, OwnerOf(&ancestor.Spec)), append(together, ancestor)
		}
	}
	return b.belonging(ctx, digest, bounding, owners, rulesOfKeys(together), read)
}

// belonging remembers what belongs to a key, and reads the owners and rules that were not read with it.
func (b *Bearers) belonging(
	ctx context.Context, digest string, bounding []string, owners []identity.Owner, rules []store.Ref, read *together,
) error {
	people := b.people() != nil
	if people || len(bounding) > 0 || len(rules) > 0 {
		b.lines().learn(digestOf+digest, line{bounding, owners, rules})
	}
	unread := slices.ContainsFunc(rules, func(rule store.Ref) bool { return !slices.Contains(read.rules, rule) })
	if unread || people && slices.ContainsFunc(owners, func(owner identity.Owner) bool { return !slices.Contains(read.owners, owner) }) {
		var err error
		if read.Refs, err = b.Keys.Store.GetRefs(ctx, b.refs(owners, rules, read.ahead)...); err != nil {
			return fmt.Errorf("looking up the owners of access keys: %w", err)
		}
	}
	return nil
}

// with adds an owner to a list that has each once. The list does not change.
func with(owners []identity.Owner, owner identity.Owner) []identity.Owner {
	if slices.Contains(owners, owner) {
		return owners
	}
	return append(slices.Clone(owners), owner)
}

// refs returns what to read about owners and about trust rules, and the object of the request if it is no key.
func (b *Bearers) refs(owners []identity.Owner, rules []store.Ref, ahead store.Ref) []store.Ref {
	var refs []store.Ref
	if directory := b.people(); directory != nil {
		refs = directory.Refs(owners...)
	}
	refs = append(refs, rules...)
	if ahead.Name != "" && ahead.Resource != Definition.Resource.Resource {
		refs = append(refs, ahead)
	}
	return refs
}

// people returns the users and teams; nil if there are none.
func (b *Bearers) people() *directory.Directory {
	if own := rulesOf(b.Keys); own != nil {
		return own.people
	}
	return nil
}

// lines is what the process remembers of lineages and owners.
func (b *Bearers) lines() *lines {
	if own := rulesOf(b.Keys); own != nil {
		return own.lines
	}
	return nil
}

// noteUse records the activity of a key if ActivityDue says so. It runs before the response, because a function may be frozen
// afterwards. A failure does not refuse the request.
func (b *Bearers) noteUse(ctx context.Context, key *model.OwnedAccessKey, record store.Record) {
	now := b.Now()
	if !ActivityDue(key, record.Activity, now) {
		return
	}
	activity := now.UTC().Truncate(time.Second)
	var expires time.Time
	if key.Spec.TTLAfterLastActivity {
		expires = b.Keys.Due(key, activity)
	}
	if err := b.Keys.Store.Touch(ctx, record, activity, expires); err != nil {
		b.Log.WarnContext(ctx, "noting the activity of an access key", "key", key.Name, "error", err.Error())
	}
}

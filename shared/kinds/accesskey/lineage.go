package accesskey

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// ErrBound says that a key in the lineage of a key, to which it is bound, is gone, expired or disabled. Source: ADR-0021.
var ErrBound = errors.New("a key that it was made with no longer works")

// Lineage returns what a new credential of a caller records about its makers: the caller's key, which bounds the credential if
// identity.Caller.Bounds says so, and the lineage of that key. Keys that are gone and that bound nothing are left out. If the
// caller has no key, maker and lineage are nil.
//
// Refused has the problems of a credential whose lineage is too long. Err is an error of the store or of decoding a record.
// Source: ADR-0021.
func Lineage(ctx context.Context, keys *Registry, caller identity.Caller) (
	maker *model.AccessKeyReference, lineage []model.AccessKeyAncestor, refused field.ErrorList, err error,
) {
	if caller.Key == "" || caller.KeyUID == "" {
		return nil, nil, nil, nil
	}
	maker = &model.AccessKeyReference{Name: caller.Key, UID: caller.KeyUID}
	lineage = []model.AccessKeyAncestor{{Name: maker.Name, UID: maker.UID, Bounds: caller.Bounds()}}
	var names []string
	for _, ancestor := range caller.KeyLineage {
		if !ancestor.Bounds {
			names = append(names, ancestor.Name)
		}
	}
	present := map[string]string{}
	for record, err := range store.GetEach(ctx, keys.Store, names) {
		if err != nil {
			return nil, nil, nil, err
		}
		key, err := keys.Parse(record)
		if err != nil {
			return nil, nil, nil, err
		}
		present[key.Name] = string(key.UID)
	}
	for _, ancestor := range caller.KeyLineage {
		if ancestor.Bounds || present[ancestor.Name] == ancestor.UID {
			lineage = append(lineage, ancestor)
		}
	}
	path := field.NewPath("status", "lineage")
	if bounding := len(Bounding(lineage)); bounding > limits.LineageBounds {
		refused = append(refused, field.Forbidden(path, fmt.Sprintf(
			"would have %d keys that bound each other; the limit is %d: use a key that was made earlier", bounding, limits.LineageBounds)))
	} else if len(lineage) > limits.Lineage {
		refused = append(refused, field.Forbidden(path, fmt.Sprintf(
			"would have %d keys; the limit is %d: delete keys in it that are no longer used", len(lineage), limits.Lineage)))
	}
	return maker, lineage, refused, nil
}

// Bounding returns the names of the keys in a lineage to which a credential is bound, the nearest first.
func Bounding(lineage []model.AccessKeyAncestor) []string {
	var names []string
	for _, ancestor := range lineage {
		if ancestor.Bounds {
			names = append(names, ancestor.Name)
		}
	}
	return names
}

// Present is what the keys in a lineage now let a credential do that is bound to these keys.
type Present struct {
	// Until is the time at which the first of the keys ends; the zero time is never.
	Until time.Time
	// Scopes are the scopes of the keys, each of which narrows the credential.
	Scopes []*model.Scope
	// Groups are the groups of a caller with the nearest of the keys, as in identity.Caller.
	Groups []string
}

// CheckLineage returns what the keys in a lineage let a credential do that is bound to these keys. Found has the existing records
// of the keys, by name. A key lets nothing work if the objects that own it are gone, if its user or team is disabled, is gone or
// has ended it, or if the trust rule that made it no longer permits it.
//
// Errors: ErrBound if one of the keys is gone, is another key of the same name, or does not work itself; otherwise the store's
// errors. Source: ADR-0021, ADR-0029.
func CheckLineage(
	ctx context.Context, keys *Registry, lineage []model.AccessKeyAncestor, found map[string]store.Record, limits Limits, now time.Time,
) (Present, error) {
	return checkLineageRead(ctx, keys, lineage, store.Companions{Records: found}, limits, now)
}

// checkLineageRead is CheckLineage for records that were read together with the owners of all keys. If together has no owners,
// checkLineageRead reads them.
func checkLineageRead(
	ctx context.Context, keys *Registry, lineage []model.AccessKeyAncestor, together store.Companions, limits Limits, now time.Time,
) (Present, error) {
	var present Present
	var bounding []*model.OwnedAccessKey
	for _, ancestor := range lineage {
		if !ancestor.Bounds {
			continue
		}
		key, end, err := checkAncestor(keys, ancestor, together.Records, limits, now)
		if err != nil {
			return Present{}, err
		}
		orphaned, err := keys.Orphaned(ctx, key)
		switch {
		case err != nil:
			return Present{}, fmt.Errorf("looking up what an access key belongs to: %w", err)
		case orphaned:
			return Present{}, ErrBound
		}
		bounding = append(bounding, key)
		present.Until = earlierEnd(present.Until, end)
		if key.Spec.Scope != nil {
			present.Scopes = append(present.Scopes, key.Spec.Scope)
		}
	}
	ruled, err := rulesPermit(ctx, keys, bounding, together.Refs)
	switch {
	case errors.Is(err, ErrRule):
		return Present{}, ErrBound
	case err != nil:
		return Present{}, err
	}
	present.Scopes = append(present.Scopes, ruled...)
	states, err := ownersPermit(ctx, keys, bounding, together.Refs)
	if err != nil {
		return Present{}, err
	}
	if len(bounding) > 0 {
		present.Groups = identity.New(OwnerOf(&bounding[0].Spec), groupsNow(bounding[0], states[0])).Groups
	}
	return present, nil
}

// checkAncestor returns a key in a lineage and the time at which the key ends, or ErrBound if the key does not work.
func checkAncestor(
	keys *Registry, ancestor model.AccessKeyAncestor, found map[string]store.Record, limits Limits, now time.Time,
) (*model.OwnedAccessKey, time.Time, error) {
	record, exists := found[ancestor.Name]
	if !exists {
		return nil, time.Time{}, ErrBound
	}
	key, err := keys.Parse(record)
	if err != nil {
		return nil, time.Time{}, err
	}
	end, refused := Usable(key, record.Activity, limits, now)
	if refused != nil || string(key.UID) != ancestor.UID {
		return nil, end, ErrBound
	}
	return key, end, nil
}

// earlierEnd returns the earlier one of two ends. The zero time is no end.
func earlierEnd(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// RecordProvenance implements resource.Provenance: it notes which keys made a new key, and the object of its owner.
func (r *rules) RecordProvenance(ctx context.Context, caller identity.Caller, key *model.OwnedAccessKey) (refused field.ErrorList, err error) {
	if key.Status.CreatedBy, key.Status.Lineage, refused, err = Lineage(ctx, r.keys, caller); err != nil {
		return nil, err
	}
	if maker := caller.Person(); key.Status.CreatedBy != nil && !caller.Admin() && maker != OwnerOf(&key.Spec).String() {
		key.Status.CreatedBy.Owner = maker
	}
	more, err := r.noteOwner(ctx, caller, key)
	return append(refused, more...), err
}

// RecordOwner implements resource.OwnerChange: a key that gets another owner is bound to the user or team of that name as it is now.
func (r *rules) RecordOwner(ctx context.Context, caller identity.Caller, key, old *model.OwnedAccessKey) (field.ErrorList, error) {
	if OwnerOf(&key.Spec) == OwnerOf(&old.Spec) {
		return nil, nil
	}
	key.Status.Owner, key.Status.Granted = nil, nil
	return r.noteOwner(ctx, caller, key)
}

func (r *rules) Ancestors(key *model.OwnedAccessKey) (bounding, others []metav1.OwnerReference) {
	for _, ancestor := range key.Status.Lineage {
		reference := metav1.OwnerReference{
			APIVersion: model.SchemeGroupVersion.String(), Kind: Definition.Kind, Name: ancestor.Name, UID: types.UID(ancestor.UID),
		}
		if ancestor.Bounds {
			bounding = append(bounding, reference)
		} else {
			others = append(others, reference)
		}
	}
	return bounding, others
}

// Current implements resource.Lineage. If the rights of the caller's key have changed since the caller was authenticated, the
// caller must repeat the request: the new object was checked against the earlier rights.
func (r *rules) Current(ctx context.Context, caller identity.Caller) (store.Version, error) {
	ended := apierror.Unauthorized("the access key of the request no longer works")
	records := map[string]store.Record{}
	for record, err := range store.GetEach(ctx, r.keys.Store, append(Bounding(caller.KeyLineage), caller.Key)) {
		if err != nil {
			return store.Version{}, err
		}
		records[record.Name] = record
	}
	record, exists := records[caller.Key]
	if !exists {
		return store.Version{}, ended
	}
	key, err := r.keys.Parse(record)
	if err != nil {
		return store.Version{}, err
	}
	until, refused := Usable(key, record.Activity, r.limits(), r.now())
	if refused != nil || string(key.UID) != caller.KeyUID {
		return store.Version{}, ended
	}
	present, err := CheckLineage(ctx, r.keys, caller.KeyLineage, records, r.limits(), r.now())
	switch {
	case errors.Is(err, ErrBound):
		return store.Version{}, ended
	case err != nil:
		return store.Version{}, err
	}
	state, err := ownerOf(ctx, r.people, key, nil)
	switch {
	case refusedOwner(err):
		return store.Version{}, ended
	case err != nil:
		return store.Version{}, err
	}
	ruled, err := rulesPermit(ctx, r.keys, []*model.OwnedAccessKey{key}, nil)
	switch {
	case errors.Is(err, ErrRule):
		return store.Version{}, ended
	case err != nil:
		return store.Version{}, err
	}
	if now := callerOf(r.people, key, state, append(ruled, present.Scopes...), until, record.Revision, r.now()); !now.SameRights(caller) || now.Bounds() && !caller.Bounds() {
		return store.Version{}, apierror.Conflict(Definition.GroupResource(), caller.Key,
			"the access key of the request was changed meanwhile; repeat the request")
	}
	return store.Version{Name: record.Name, Revision: record.Revision}, nil
}

func (r *rules) RelatedIn() store.Store { return nil }

// Related implements resource.Relations: it returns the keys to which a key is bound.
func (r *rules) Related(key *model.OwnedAccessKey) []string {
	names := Bounding(key.Status.Lineage)
	if len(names) > 0 {
		r.related.set(byName+key.Name, related{keys: names})
	}
	return names
}

// Relate implements resource.Relations. A key ends no later than the keys to which it is bound. If one of these keys no longer
// works, the key has ended, unless that key is only disabled.
func (r *rules) Relate(key *model.OwnedAccessKey, known map[string]store.Record) {
	key.Status.ExpirationTimestamp = EndWithin(r.keys, key.Status.Lineage, key.Status.ExpirationTimestamp, known, r.limits(), r.now())
}

// EndWithin returns the end of a credential with a lineage, for people to read: no later than the ends of the keys to which the
// credential is bound. Alone is the end of the credential without these keys. Nil is no end. Source: ADR-0021.
func EndWithin(
	keys *Registry, lineage []model.AccessKeyAncestor, alone *metav1.Time, records map[string]store.Record, limits Limits, now time.Time,
) *metav1.Time {
	var end time.Time
	if alone != nil {
		end = alone.Time
	}
	for _, ancestor := range lineage {
		if !ancestor.Bounds {
			continue
		}
		until := now
		if record, exists := records[ancestor.Name]; exists {
			holder, err := keys.Parse(record)
			if err == nil && string(holder.UID) == ancestor.UID {
				// A key that is refused has ended, or is disabled.
				until, _ = Usable(holder, record.Activity, limits, now)
			}
		}
		end = earlierEnd(end, until)
	}
	if end.IsZero() {
		return nil
	}
	return &metav1.Time{Time: end.UTC().Truncate(time.Second)}
}

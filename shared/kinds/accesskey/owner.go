package accesskey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// rulesOf returns the rules of a registry of this package; nil for another one.
func rulesOf(keys *Registry) *rules {
	own, _ := keys.Rules.(*rules)
	return own
}

// mustRulesOf is rulesOf for a registry that NewRegistry has made. It panics for another registry.
func mustRulesOf(keys *Registry) *rules {
	own := rulesOf(keys)
	if own == nil {
		panic("accesskey: the registry is not from NewRegistry")
	}
	return own
}

// ownerOf returns what the owner of a key may do now. Records has the records that were read for the owner; nil: ownerOf reads
// them. Without people, no owner is managed.
//
// It returns the errors of directory.Directory.StateOf and directory.State.CheckCredential.
func ownerOf(
	ctx context.Context, people *directory.Directory, key *model.OwnedAccessKey, records map[store.Ref]store.Record,
) (directory.State, error) {
	owner := OwnerOf(&key.Spec)
	if people == nil || owner.Kind == identity.Subject && records == nil {
		return directory.State{}, nil
	}
	if records == nil {
		var err error
		if records, err = people.Read(ctx, owner); err != nil {
			return directory.State{}, fmt.Errorf("looking up the owner of an access key: %w", err)
		}
	}
	state, err := people.StateOf(ctx, owner, records)
	if err == nil {
		err = state.CheckCredential(key.Status.Owner)
	}
	return state, err
}

// refusedOwner reports whether an error says that the credentials of an owner do not work.
func refusedOwner(err error) bool {
	return errors.Is(err, directory.ErrDisabled) || errors.Is(err, directory.ErrGone) || errors.Is(err, directory.ErrAbsent) || errors.Is(err, directory.ErrSignedOut)
}

// ownersPermit returns what the owners of keys may do now, or ErrBound if one of them does not let the key work. Records has the
// records that were read for the owners; nil: ownersPermit reads them.
func ownersPermit(
	ctx context.Context, keys *Registry, bounding []*model.OwnedAccessKey, records map[store.Ref]store.Record,
) ([]directory.State, error) {
	states := make([]directory.State, len(bounding))
	rules := rulesOf(keys)
	if rules == nil || rules.people == nil || len(bounding) == 0 {
		return states, nil
	}
	owners := make([]identity.Owner, len(bounding))
	for i, key := range bounding {
		owners[i] = OwnerOf(&key.Spec)
	}
	// A user that does not exist has no record, so this function cannot know which records were read: a caller passes all records
	// or none.
	if records == nil {
		var err error
		if records, err = rules.people.Read(ctx, owners...); err != nil {
			return nil, fmt.Errorf("looking up the owners of access keys: %w", err)
		}
	}
	for i, key := range bounding {
		var err error
		switch states[i], err = ownerOf(ctx, rules.people, key, records); {
		case refusedOwner(err):
			return nil, ErrBound
		case err != nil:
			return nil, err
		}
	}
	return states, nil
}

// groupsNow returns the groups that a key gives its caller besides the groups of the owner's kind. A managed owner gives the
// groups that the owner has now; spec.groups narrows them, and an admin can have granted further groups. Source: ADR-0029.
func groupsNow(key *model.OwnedAccessKey, state directory.State) []string {
	switch {
	case !state.Managed:
		return key.Spec.Groups
	case len(key.Spec.Groups) == 0:
		return state.Groups
	}
	var groups []string
	for _, group := range key.Spec.Groups {
		if state.Has(group) || slices.Contains(key.Status.Granted, group) && grantable(group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// grantable reports whether an admin can give a group to a key of a managed owner who does not have it. The groups of the platform
// come from teams and roles alone.
func grantable(group string) bool { return !strings.HasPrefix(group, identity.PlatformPrefix) }

// OwnerMissing implements resource.OwnerLookup: it reports whether noteOwner has found no object of the owner.
func (r *rules) OwnerMissing(key *model.OwnedAccessKey) bool {
	return key.Status.Owner == nil && r.people != nil && !r.people.Empty()
}

// noteOwner notes the owner of a new key, and which of its groups an admin grants. Source: ADR-0029.
func (r *rules) noteOwner(ctx context.Context, caller identity.Caller, key *model.OwnedAccessKey) (field.ErrorList, error) {
	owner := OwnerOf(&key.Spec)
	// A caller without a revision was not authenticated with a key here, so the directory may not have read anything yet.
	nobody := r.people == nil || caller.KeyRevision > 0 && r.people.Empty()
	if nobody || owner.Name == "" || owner.Kind == identity.Subject || !caller.Owns(owner.String()) {
		return nil, nil
	}
	beyond := slices.ContainsFunc(key.Spec.Groups, func(group string) bool {
		return !caller.InGroup(group) || slices.Contains(caller.KeyGranted, group)
	})
	if owner == caller.Owner && !beyond && (caller.KeyRevision > 0 || caller.OwnerObject != nil) {
		// The authentication of the caller has checked what the owner may do.
		key.Status.Owner = caller.OwnerObject
		return nil, nil
	}
	read, err := r.people.Read(ctx, owner)
	if err != nil {
		return nil, fmt.Errorf("looking up the owner of a new access key: %w", err)
	}
	path := specPath.Child(string(owner.Kind))
	state, err := r.people.StateOf(ctx, owner, read)
	switch {
	case errors.Is(err, directory.ErrDisabled):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the %s %q is disabled", owner.Kind, owner.Name))}, nil
	case errors.Is(err, directory.ErrAbsent):
		return nil, apierror.Invalid(Definition.GroupVersionKind().GroupKind(), key.Name, field.ErrorList{field.NotFound(path, owner.Name)})
	case errors.Is(err, directory.ErrGone):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the %s %q is being deleted", owner.Kind, owner.Name))}, nil
	case err != nil:
		return nil, err
	case !state.Managed:
		return nil, nil
	}
	key.Status.Owner = &model.AccessKeyOwner{UID: state.UID, Generation: state.Generation}
	var refused field.ErrorList
	if len(key.Spec.Groups) == 0 && !caller.Admin() {
		for _, group := range state.Groups {
			if !caller.InGroup(group) {
				refused = append(refused, field.Forbidden(specPath.Child("groups"), fmt.Sprintf(
					"without groups, the key has all groups of the %s %q, and you are not in %q", owner.Kind, owner.Name, group)))
			}
		}
	}
	for i, group := range key.Spec.Groups {
		switch path := specPath.Child("groups").Index(i); {
		case state.Has(group):
		case !grantable(group):
			refused = append(refused, field.Forbidden(path, fmt.Sprintf(
				"the %s %q does not have the group %q, which only a team or a cluster role gives", owner.Kind, owner.Name, group)))
		case caller.Admin():
			key.Status.Granted = append(key.Status.Granted, group)
		default:
			refused = append(refused, field.Forbidden(path, fmt.Sprintf("the %s %q does not have the group %q", owner.Kind, owner.Name, group)))
		}
	}
	return refused, nil
}

// narrowTo returns the groups with which a new key has no more groups than its caller: the groups that the owner gives the
// caller, or else the group that every owner of this kind has.
func narrowTo(caller identity.Caller) []string {
	implied := identity.New(caller.Owner, nil).Groups
	groups := slices.DeleteFunc(identity.WithoutKubernetes(caller.Groups), func(group string) bool {
		return slices.Contains(implied, group) || slices.Contains(caller.KeyGranted, group)
	})
	if len(groups) == 0 {
		groups = slices.DeleteFunc(identity.WithoutKubernetes(implied), func(group string) bool { return group == identity.Authenticated })
	}
	return groups
}

// keepGranted notes which groups an admin adds to a stored key of a managed owner, and removes the noted groups that the key no
// longer has.
func keepGranted(caller identity.Caller, key, old *model.OwnedAccessKey) {
	if old.Status.Owner == nil {
		return
	}
	var granted []string
	for _, group := range key.Spec.Groups {
		added := caller.Admin() && grantable(group) && !slices.Contains(old.Spec.Groups, group)
		if added || slices.Contains(old.Status.Granted, group) {
			granted = append(granted, group)
		}
	}
	key.Status.Granted = granted
}

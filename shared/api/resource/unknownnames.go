package resource

import (
	"context"
	"fmt"
	"slices"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// maxUnknown is for how many names a write looks whether there is such a user or team.
const maxUnknown = 64

// principals are the resources of the owners that have objects.
var principals = map[identity.OwnerKind]string{identity.User: "users", identity.Team: "teams"}

// grantee is a user or team to which a write newly gives something, and the field that names them.
type grantee struct {
	path  string
	owner identity.Owner
}

// unknownNames returns a warning for each user and team to which a write newly gives something and who does not exist: the name may be a
// slip, or the person has not signed in yet. Only callers who see all users get it. A platform without users and teams has none.
// It costs one round trip if the write names anybody but the caller, unless the rules know. Source: ADR-0047.
func (r *Registry[T]) unknownNames(ctx context.Context, caller identity.Caller, object, old T) []string {
	if caller.Key == "" || !caller.Admin() || len(caller.Scopes()) > 0 {
		return nil
	}
	names := r.newGrantees(caller, object, old)
	if len(names) == 0 {
		return nil
	}
	exists := func(identity.Owner) bool { return false }
	if r.OwnerLookup == nil {
		exists = r.existingOwners(ctx, names)
	} else if !r.OwnerLookup.OwnerMissing(object) {
		return nil
	}
	var warnings []string
	for _, one := range names {
		if !exists(one.owner) {
			warnings = append(warnings, fmt.Sprintf("%s: there is no %s %q", one.path, one.owner.Kind, one.owner.Name))
		}
	}
	return warnings
}

// newGrantees returns the users and teams to which a write newly gives something, but for the caller.
func (r *Registry[T]) newGrantees(caller identity.Caller, object, old T) []grantee {
	var known map[identity.Owner]bool
	var none T
	if any(old) != any(none) {
		known = map[identity.Owner]bool{}
		for _, grant := range r.Rules.Grants(old) {
			known[grant.To] = true
		}
	}
	var names []grantee
	for _, grant := range r.Rules.Grants(object) {
		if grant.To.Name == "" || grant.To == caller.Owner || principals[grant.To.Kind] == "" || known[grant.To] || slices.Contains(caller.Self(), grant.To.String()) {
			continue
		}
		if one := (grantee{grant.Path.String(), grant.To}); !slices.Contains(names, one) && len(names) < maxUnknown {
			names = append(names, one)
		}
	}
	return names
}

// existingOwners returns a function that reports whether a user or team exists. It reports true for all on a platform without users
// and teams, and if the state does not answer: the object is written, and an answer without a warning is better than none.
func (r *Registry[T]) existingOwners(ctx context.Context, names []grantee) func(identity.Owner) bool {
	ref := func(owner identity.Owner) store.Ref {
		return store.Ref{Resource: principals[owner.Kind], Name: owner.Name}
	}
	users, teams := ref(identity.Owner{Kind: identity.User}), ref(identity.Owner{Kind: identity.Team})
	refs := []store.Ref{users, teams}
	for _, one := range names {
		refs = append(refs, ref(one.owner))
	}
	records, err := r.Store.GetRefs(ctx, refs...)
	unknown := err != nil || records[users].Revision <= store.Beginning && records[teams].Revision <= store.Beginning
	return func(owner identity.Owner) bool {
		_, exists := records[ref(owner)]
		return unknown || exists
	}
}

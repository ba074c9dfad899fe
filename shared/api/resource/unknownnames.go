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

// unknownNames returns a warning for each user and team to which a write newly gives something and who does not exist: the name may be a
// slip, or the person has not signed in yet. Only callers who see all users get it. A platform without users and teams has none.
// It costs one round trip if the write names anybody but the caller. Source: ADR-0047.
func (r *Registry[T]) unknownNames(ctx context.Context, caller identity.Caller, object, old T) []string {
	if caller.Key == "" || !caller.Admin() || len(caller.Scopes()) > 0 {
		return nil
	}
	known := map[identity.Owner]bool{}
	var none T
	if any(old) != any(none) {
		for _, grant := range r.Rules.Grants(old) {
			known[grant.To] = true
		}
	}
	type place struct {
		path string
		ref  store.Ref
	}
	var places []place
	var refs []store.Ref
	for _, grant := range r.Rules.Grants(object) {
		resource := principals[grant.To.Kind]
		if grant.To.Name == "" || resource == "" || known[grant.To] || slices.Contains(caller.Self(), grant.To.String()) {
			continue
		}
		at := place{grant.Path.String(), store.Ref{Resource: resource, Name: grant.To.Name}}
		if !slices.Contains(places, at) && len(places) < maxUnknown {
			places, refs = append(places, at), append(refs, at.ref)
		}
	}
	if len(places) == 0 {
		return nil
	}
	users, teams := store.Ref{Resource: principals[identity.User]}, store.Ref{Resource: principals[identity.Team]}
	found, err := r.Store.GetRefs(ctx, append(refs, users, teams)...)
	if err != nil || found[users].Revision <= store.Beginning && found[teams].Revision <= store.Beginning {
		// The object is written: an answer without a warning is better than none.
		return nil
	}
	var warnings []string
	for _, at := range places {
		if _, exists := found[at.ref]; !exists {
			warnings = append(warnings, fmt.Sprintf("%s: there is no %s %q", at.path, at.ref.Resource[:len(at.ref.Resource)-1], at.ref.Name))
		}
	}
	return warnings
}

package auth

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// Grant is a right that an object gives by one of its fields. Each kind lists the grants of an object, and package
// resource compares the grants that a write adds with the rights of its caller. Source: ADR-0047.
type Grant struct {
	// Path is the field.
	Path *field.Path
	// Value tells grants of one field apart: two grants with the same path and value are the same. Empty: the grant is
	// compared at each write.
	Value string
	// To is the user or the team that receives the grant. The zero value: the grant names neither.
	To identity.Owner
	// ExistingOnly reports whether only an existing object gives the grant: nothing depends on a new object yet.
	ExistingOnly bool
	// exceeds returns the rights that the caller lacks.
	exceeds func(caller identity.Caller) field.ErrorList
}

// ActsAs is the grant of a credential that acts as an owner. Callers give it for themselves and their teams, and admins
// for every owner. A caller with a scope gives it only for the owner of the caller's own credential: another owner has
// other rights within the same scope.
func ActsAs(path *field.Path, owner identity.Owner) Grant {
	name := owner.String()
	return Grant{Path: path, Value: name, To: owner, exceeds: func(caller identity.Caller) field.ErrorList {
		switch {
		case !caller.Owns(name):
			return field.ErrorList{field.Forbidden(path, fmt.Sprintf("%q is neither you nor a team of yours", owner.Name))}
		case len(caller.Scopes()) > 0 && owner != caller.Owner:
			return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
				"your credential has a scope: the credentials that it makes act as the %s %q alone", caller.Owner.Kind, caller.Owner.Name))}
		}
		return nil
	}}
}

// BelongsTo is the grant of an object that an owner controls and that counts towards the owner's quota. Callers give it
// to themselves and their teams, and admins without a scope to every owner.
func BelongsTo(path *field.Path, owner identity.Owner) Grant {
	name := owner.String()
	return Grant{Path: path, Value: name, To: owner, exceeds: func(caller identity.Caller) field.ErrorList {
		if slices.Contains(caller.Self(), name) || caller.Admin() && len(caller.Scopes()) == 0 {
			return nil
		}
		return field.ErrorList{field.Forbidden(path, "must be you or a team of yours, or be left out")}
	}}
}

// ScopeGrant is the grant of a credential that permits what a scope permits; nil is everything. It is compared at each
// write, because a stored credential may have more rights than the caller.
func ScopeGrant(path *field.Path, scope *model.Scope) Grant {
	return Grant{Path: path, exceeds: func(caller identity.Caller) field.ErrorList { return Exceeds(scope, caller, path) }}
}

// Permits is the grant of rights in one project or one virtual cluster, which a scope describes. Value names the
// rights.
func Permits(path *field.Path, value string, scope *model.Scope) Grant {
	return Grant{Path: path, Value: value, exceeds: func(caller identity.Caller) field.ErrorList {
		if len(Exceeds(scope, caller, path)) > 0 {
			return field.ErrorList{field.Forbidden(path, "the scope of your credential does not cover what this gives")}
		}
		return nil
	}}
}

// PermanentGrant is the grant of rights that depend on no credential and that no scope describes: a role on the platform, a
// group, the members of a team, the identity with which a person signs in. Only a credential without a scope and an end
// gives it, or a person who has signed in. Value names the rights.
func PermanentGrant(path *field.Path, value string) Grant {
	return Grant{Path: path, Value: value, exceeds: func(caller identity.Caller) field.ErrorList {
		if len(caller.Scopes()) > 0 {
			return field.ErrorList{field.Forbidden(path, "reaches further than the scope of your credential; a credential without a scope permits it")}
		}
		return refuseLimited(caller, path)
	}}
}

// UnlimitedGrant is the grant of a credential that works without end, within a scope that another grant describes. Only a
// credential without an end gives it, or a person who has signed in. Value names the credential.
func UnlimitedGrant(path *field.Path, value string) Grant {
	return Grant{Path: path, Value: value, exceeds: func(caller identity.Caller) field.ErrorList { return refuseLimited(caller, path) }}
}

func refuseLimited(caller identity.Caller, path *field.Path) field.ErrorList {
	if caller.Lasts() {
		return nil
	}
	return field.ErrorList{field.Forbidden(path,
		"outlasts your credential, which ends, or is bound to one that ends; a credential without an end permits it, and so does a sign-in")}
}

// WithRecipient returns the grant with a user or a team as its receiver.
func (g Grant) WithRecipient(owner identity.Owner) Grant {
	g.To, g.Value = owner, owner.String()+" "+g.Value
	return g
}

// ForExisting returns the grant with ExistingOnly set.
func (g Grant) ForExisting() Grant {
	g.ExistingOnly = true
	return g
}

// ExceededGrants returns the fields whose grants exceed the rights of a caller. Grants that the object gave before do not
// count; oldGrants is called only if a grant exceeds the caller's rights. A nil oldGrants means that the object is new.
func ExceededGrants(caller identity.Caller, grants []Grant, oldGrants func() []Grant) field.ErrorList {
	type mark struct{ path, value string }
	var existing map[mark]bool
	var excess field.ErrorList
	for _, grant := range grants {
		problems := grant.exceeds(caller)
		if len(problems) == 0 || oldGrants == nil && grant.ExistingOnly {
			continue
		}
		if existing == nil && oldGrants != nil {
			existing = map[mark]bool{}
			for _, old := range oldGrants() {
				existing[mark{old.Path.String(), old.Value}] = old.Value != ""
			}
		}
		if !existing[mark{grant.Path.String(), grant.Value}] {
			excess = append(excess, problems...)
		}
	}
	return excess
}

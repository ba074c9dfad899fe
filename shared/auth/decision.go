package auth

import (
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// Decision is whether a request is permitted, and why. Source: ADR-0023.
type Decision struct {
	Allowed bool
	// Hidden reports whether the request is refused because its object does not exist for the caller. The status is
	// then 404; it is 403 for other refusals.
	Hidden bool
	// Reason names the rule that decided. For a refusal, it says what would permit the request. It names no person: it answers for
	// the caller and for somebody else alike.
	Reason string
	// Source is what gives the caller the right: one of the sources below. Empty: nothing in particular.
	Source string
	// Also are the other decisions that permit the request, if the caller has ExplainAll. Each suffices by itself. Source: ADR-0057.
	Also []Decision
	// Causes are the fields that a refusal is about. Usually there are none.
	Causes field.ErrorList
}

// The sources of rights. Source: ADR-0057.
const (
	SourceAdmin   = "Admin"
	SourceOwner   = "Owner"
	SourceProject = "Project"
	SourceAccess  = "Access"
)

// The decisions that permit a request to an admin, to the owner of its object, and to a member of the team that owns the object.
var (
	PermittedAdmin      = Decision{Allowed: true, Source: SourceAdmin, Reason: "member of " + identity.Admins}
	PermittedOwner      = Decision{Allowed: true, Source: SourceOwner, Reason: "owner of the object"}
	PermittedOwningTeam = Decision{Allowed: true, Source: SourceOwner, Reason: "member of a team that owns the object"}
)

// PermittedByRole is the decision that permits a request to a caller with a role in a project.
func PermittedByRole(role, project string) Decision {
	return Decision{Allowed: true, Source: SourceProject, Reason: fmt.Sprintf("role %q in the project %q", role, project)}
}

// AnyOf returns the first of the decisions that permit a request to a caller, or a refusal without a reason if there is none.
func AnyOf(caller identity.Caller, permitting iter.Seq[Decision]) Decision {
	var first Decision
	for decision := range permitting {
		if first.Allowed {
			first.Also = append(first.Also, decision)
		} else {
			first = decision
		}
		if !caller.ExplainAll {
			break
		}
	}
	return first
}

// because returns the decision with a text after its reason.
func (d Decision) because(text string) Decision {
	d.Reason += text
	return d
}

// And combines two decisions that must both permit the request: it returns the first refusal, or both reasons.
func (d Decision) And(second Decision) Decision {
	if !d.Allowed {
		return d
	}
	if second.Allowed {
		second.Reason = d.Reason + "; " + second.Reason
	}
	return second
}

// Error returns the API error of a refusal: NotFound if the object is hidden, else Forbidden with the reason. Nil: the
// request is permitted.
func (d Decision) Error(resource schema.GroupResource, name string) error {
	switch {
	case d.Allowed:
		return nil
	case d.Hidden:
		return apierror.NotFound(resource, name)
	default:
		return apierror.Forbidden(resource, name, d.Reason, d.Causes)
	}
}

// Owned decides whether a caller sees an object of an owner, given in the form of identity.Owner.String: callers see
// their own objects and their teams' objects, and admins see all. Source: ADR-0004.
func Owned(caller identity.Caller, owner string) Decision {
	switch {
	case caller.Admin():
		return PermittedAdmin
	case caller.Owner.String() == owner:
		return PermittedOwner
	case caller.Owns(owner):
		return PermittedOwningTeam
	default:
		return Decision{Hidden: true}
	}
}

// Unseen is the decision about an object that does not exist for a caller. It is the same whether the object is hidden
// from the caller or was never created. Who names the callers that see objects of the kind. Source: ADR-0023.
func Unseen(resource schema.GroupResource, namespace, name, who string) Decision {
	at := ""
	if namespace != "" {
		at = fmt.Sprintf(" in the namespace %q", namespace)
	}
	return Decision{Hidden: true, Reason: fmt.Sprintf("no %s %q%s is visible; of those that exist, %s see them", resource, name, at, who)}
}

// SeenBy names the callers that see objects with an owner, for Unseen.
const SeenBy = "their owners and members of " + identity.Admins

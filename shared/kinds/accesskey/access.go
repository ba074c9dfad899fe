package accesskey

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// Permits implements resource.Permissions: callers with a scope change only keys within that scope. Deleting a key gives no
// caller more rights. Source: ADR-0005, ADR-0023.
func (r *rules) Permits(caller identity.Caller, verb, _ string, key *model.OwnedAccessKey) auth.Decision {
	if excess := exceedsScope(caller, key); len(excess) > 0 && slices.Contains([]string{"update", "patch"}, verb) {
		return auth.Decision{Causes: excess, Reason: "spec.scope of the key is wider than the scope of the credential; " +
			"a credential without a scope, or with one that covers the scope of the key, permits it"}
	}
	return auth.Owned(caller, OwnerOf(&key.Spec).String())
}

// exceedsScope returns the field of a stored key that holds more than the scope of a caller.
func exceedsScope(caller identity.Caller, key *model.OwnedAccessKey) field.ErrorList {
	path := specPath.Child("scope")
	if len(auth.Exceeds(key.Spec.Scope, caller, path)) > 0 {
		return field.ErrorList{field.Forbidden(path, "the stored scope is wider than yours")}
	}
	return nil
}

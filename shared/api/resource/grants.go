package resource

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model/identity"
)

// GrantsNothing is the part of Rules for kinds whose objects give no rights.
type GrantsNothing[T Object] struct{}

// Grants implements Rules.
func (GrantsNothing[T]) Grants(T) []auth.Grant { return nil }

// excessGrants returns the fields by which a valid new object gives more than its caller may.
func (r *Registry[T]) excessGrants(caller identity.Caller, object T) field.ErrorList {
	return auth.ExceededGrants(caller, r.Rules.Grants(object), nil)
}

// newExcessGrants returns the fields by which a valid replacement gives more than the object before and its caller may.
func (r *Registry[T]) newExcessGrants(caller identity.Caller, object, old T) field.ErrorList {
	return auth.ExceededGrants(caller, r.Rules.Grants(object), func() []auth.Grant { return r.Rules.Grants(old) })
}

package resource

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model/identity"
)

// GrantsNothing is the part of Rules for kinds whose objects give nobody anything.
type GrantsNothing[T Object] struct{}

// Grants implements Rules.
func (GrantsNothing[T]) Grants(T) []auth.Grant { return nil }

// refusedAtCreate returns the fields of a valid new object that its caller may not write.
func (r *Registry[T]) refusedAtCreate(caller identity.Caller, object T) field.ErrorList {
	var none T
	return append(auth.Beyond(caller, r.Rules.Grants(object), nil, true), r.Rules.Authorize(caller, object, none)...)
}

// refusedAtUpdate returns the fields of a valid replacement that its caller may not write.
func (r *Registry[T]) refusedAtUpdate(caller identity.Caller, object, old T) field.ErrorList {
	return append(auth.Beyond(caller, r.Rules.Grants(object), r.Rules.Grants(old), false), r.Rules.Authorize(caller, object, old)...)
}

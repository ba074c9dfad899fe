// Package accesskeytest is what the tests of operations share: two people, and what tests ask of answers.
package accesskeytest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// Ana and Ben have nothing in common.
var (
	Ana = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	Ben = identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
)

// Code is the HTTP status of an error, 0 for none.
func Code(err error) int32 {
	if err == nil {
		return 0
	}
	return apierror.From(err).Status().Code
}

// Manages tells whether an object has an entry of a field manager.
func Manages(object metav1.Object, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == manager })
}

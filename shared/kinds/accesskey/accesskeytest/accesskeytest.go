// Package accesskeytest is what the tests of operations share: two people, and what tests ask of answers.
package accesskeytest

import (
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

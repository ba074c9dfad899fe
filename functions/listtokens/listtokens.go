// Package listtokens is GET on directclusterendpointtokens: the records of the caller's tokens, or of all tokens for
// admins, as a list or as a watch. Source: Spec 2.4, 4; ADR-0011.
package listtokens

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
)

// Function returns a page of the caller's records, or follows them. Errors: BadRequest, Expired or Timeout as resource.List and
// resource.Watch say.
var Function = crud.List("listtokens", issuedtoken.Definition, open)

func open(env *platform.Environment) *issuedtoken.Registry { return issuedtoken.Open(env).Registry }

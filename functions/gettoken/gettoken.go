// Package gettoken is GET on one of directclusterendpointtokens: the record of a token, without the token.
// Source: Spec 2.4, 4; ADR-0011.
package gettoken

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
)

// Function returns the record of one token of the caller. Error: NotFound if it does not exist or belongs to another user.
var Function = crud.Get("gettoken", issuedtoken.Definition, open)

func open(env *platform.Environment) *issuedtoken.Registry { return issuedtoken.Open(env).Registry }

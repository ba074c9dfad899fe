// Package deletetoken is DELETE on one of directclusterendpointtokens, or on a selection of them: it revokes the tokens.
// Source: Spec 2.4, 4; ADR-0009, ADR-0011.
package deletetoken

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
)

// Function revokes one token, or all selected tokens of the caller. It returns the errors of resource.Delete.
var Function = crud.Delete("deletetoken", issuedtoken.Definition, open)

func open(env *platform.Environment) *issuedtoken.Registry { return kinds.IssuedTokens(env).Registry }

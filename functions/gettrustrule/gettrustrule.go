// Package gettrustrule is GET on one of trustrules. Source: ADR-0036.
package gettrustrule

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/trustrule"
)

// Function returns one trust rule. NotFound also for one that the caller may not see.
var Function = crud.Get("gettrustrule", trustrule.Definition, trustrule.Open)

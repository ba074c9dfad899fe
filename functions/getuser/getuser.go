// Package getuser is GET on one of users. Source: ADR-0029.
package getuser

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/user"
)

// Function returns one user. NotFound also for one that the caller may not see.
var Function = crud.Get("getuser", user.Definition, user.Open)

// Package updateuser is PUT on one of users. Source: ADR-0029.
package updateuser

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
)

// Function replaces one user. Errors: NotFound, BadRequest, Invalid, Forbidden, or Conflict, also if the platform would have no
// admin afterwards; nothing is stored then.
var Function = crud.Update("updateuser", user.Definition, kinds.Users, fieldmanager.New)

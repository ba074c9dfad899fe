// Package createuser is POST on users. Admins create users. Source: ADR-0029.
package createuser

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
)

// Function stores a new user. Errors: Invalid, AlreadyExists, or Conflict if the platform would have no admin afterwards; nothing
// is stored then.
var Function = crud.Create("createuser", user.Definition, kinds.Users, fieldmanager.New)

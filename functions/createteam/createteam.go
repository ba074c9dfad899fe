// Package createteam is POST on teams. Admins create teams. Source: ADR-0029.
package createteam

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/team"
)

// Function stores a new team. Errors: Invalid, AlreadyExists, or Conflict if the platform would have no admin afterwards; nothing
// is stored then.
var Function = crud.Create("createteam", team.Definition, kinds.Teams, fieldmanager.New)

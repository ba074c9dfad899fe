// Package updateteam is PUT on one of teams. Source: ADR-0029.
package updateteam

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/team"
)

// Function replaces one team. Errors: NotFound, BadRequest, Invalid, Forbidden, or Conflict, also if the platform would have no
// admin afterwards; nothing is stored then.
var Function = crud.Update("updateteam", team.Definition, kinds.Teams, fieldmanager.New)

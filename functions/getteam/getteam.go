// Package getteam is GET on one of teams. Source: ADR-0029.
package getteam

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/team"
)

// Function returns one team. NotFound also for one that the caller may not see.
var Function = crud.Get("getteam", team.Definition, team.Open)

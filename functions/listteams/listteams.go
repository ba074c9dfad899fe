// Package listteams is GET on teams: the teams that the caller may see, as a list or as a watch. Source: ADR-0029.
package listteams

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/team"
)

// Function returns a page of the teams that the caller may see, or follows them. Errors: BadRequest, Expired or Timeout as resource.List
// and resource.Watch say.
var Function = crud.List("listteams", team.Definition, team.Open)

// Package deleteteam is DELETE on one of teams, or on a selection. The access keys of a team are deleted with it. Source: ADR-0029.
package deleteteam

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/team"
)

// Function marks one team as deleted, so that its credentials are refused, deletes its access keys, and removes the team. If this
// is too much for one request, the schedule does the rest. With a selection it does the same with all selected teams, and returns
// them as they were. Errors: the errors of resource.Delete; Conflict if the platform would have no admin afterwards.
var Function = crud.Delete("deleteteam", team.Definition, kinds.Teams)

// Package patchteam is PATCH on one of teams. Source: ADR-0029.
package patchteam

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/team"
)

// Function changes a part of one team. Errors: the errors of an update; BadRequest, RequestEntityTooLarge or UnsupportedMediaType
// as resource.Patch says; nothing is stored then.
var Function = crud.Patch("patchteam", team.Definition, kinds.Teams, fieldmanager.New)

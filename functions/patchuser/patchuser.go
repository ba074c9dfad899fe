// Package patchuser is PATCH on one of users. Source: ADR-0029.
package patchuser

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
)

// Function changes a part of one user. Errors: the errors of an update; BadRequest, RequestEntityTooLarge or UnsupportedMediaType
// as resource.Patch says; nothing is stored then.
var Function = crud.Patch("patchuser", user.Definition, kinds.Users, fieldmanager.New)

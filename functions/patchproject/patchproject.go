// Package patchproject is PATCH on one of projects. Source: ADR-0037.
package patchproject

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/project"
)

// Function changes a part of one project. Errors: the errors of an update; BadRequest, RequestEntityTooLarge or
// UnsupportedMediaType as resource.Patch says; nothing is stored then.
var Function = crud.Patch("patchproject", project.Definition, kinds.Projects, fieldmanager.New)

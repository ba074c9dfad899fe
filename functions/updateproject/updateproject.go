// Package updateproject is PUT on one of projects. Source: ADR-0037.
package updateproject

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/project"
)

// Function replaces one project. Errors: NotFound, BadRequest, Invalid, Forbidden or Conflict; nothing is stored then.
var Function = crud.Update("updateproject", project.Definition, kinds.Projects, fieldmanager.New)

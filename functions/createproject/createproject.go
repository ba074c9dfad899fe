// Package createproject is POST on projects. Admins create projects. Source: ADR-0037.
package createproject

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/project"
)

// Function stores a new project. Errors: Invalid or AlreadyExists; nothing is stored then.
var Function = crud.Create("createproject", project.Definition, kinds.Projects, fieldmanager.New)

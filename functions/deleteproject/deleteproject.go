// Package deleteproject is DELETE on one of projects, or on a selection. Source: ADR-0037.
package deleteproject

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/project"
)

// Function deletes one project, or with a selection all selected ones, and returns what it has deleted as it was. Errors: those of
// resource.Delete.
var Function = crud.Delete("deleteproject", project.Definition, kinds.Projects)

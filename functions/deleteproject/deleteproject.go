// Package deleteproject is DELETE on one of projects, or on a selection. Source: ADR-0037.
package deleteproject

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/project"
)

// Function deletes one project, or with a selection all selected projects, and returns the deleted projects as they were. It
// returns the errors of resource.Delete.
var Function = crud.Delete("deleteproject", project.Definition, kinds.Projects)

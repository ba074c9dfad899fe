// Package getproject is GET on one of projects. Source: ADR-0037.
package getproject

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/project"
)

// Function returns one project. NotFound also for one that the caller may not see.
var Function = crud.Get("getproject", project.Definition, project.Open)

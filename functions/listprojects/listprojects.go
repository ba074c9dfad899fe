// Package listprojects is GET on projects: the projects that the caller may see, as a list or as a watch. Source: ADR-0037.
package listprojects

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/project"
)

// Function returns a page of the projects that the caller may see, or follows them. Errors: BadRequest, Expired or Timeout as
// resource.List and resource.Watch say.
var Function = crud.List("listprojects", project.Definition, project.Open)

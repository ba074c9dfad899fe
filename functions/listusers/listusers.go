// Package listusers is GET on users: the users whom the caller may see, as a list or as a watch. Source: ADR-0029.
package listusers

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/user"
)

// Function returns a page of the users that the caller may see, or follows them. Errors: BadRequest, Expired or Timeout as resource.List
// and resource.Watch say.
var Function = crud.List("listusers", user.Definition, user.Open)

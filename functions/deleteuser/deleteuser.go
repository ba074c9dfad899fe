// Package deleteuser is DELETE on one of users, or on a selection. The access keys of a user are deleted with it. Source: ADR-0029.
package deleteuser

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
)

// Function marks one user as deleted, so that their credentials are refused, deletes their access keys, and removes the user. If
// this is too much for one request, the schedule does the rest. With a selection it does the same with all selected users, and
// returns them as they were. Errors: the errors of resource.Delete; Conflict if the platform would have no admin afterwards.
var Function = crud.Delete("deleteuser", user.Definition, kinds.Users)

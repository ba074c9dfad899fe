// Package deleteuser is DELETE on one of users, or on a selection. The access keys of a user are deleted with it. Source: ADR-0029.
package deleteuser

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
)

// Function marks one user as deleted, which refuses its credentials, deletes its access keys, and removes it. What is too much for one
// request is left to the schedule. With a selection it does so with all selected users, and returns them as they were. Errors: those of
// resource.Delete; Conflict if nobody would be an admin afterwards.
var Function = crud.Delete("deleteuser", user.Definition, kinds.Users)

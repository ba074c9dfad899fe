// Package updateaccesskey is PUT on one of ownedaccesskeys: it replaces an access key, except its bearer text.
// Source: Spec 2.5, 4.
package updateaccesskey

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
)

// Function replaces one access key. Errors: NotFound, Conflict, Invalid or Forbidden as resource.Update says; nothing is stored then.
var Function = crud.Update("updateaccesskey", accesskey.Definition, kinds.AccessKeys, fieldmanager.New)

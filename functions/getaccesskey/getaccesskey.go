// Package getaccesskey is GET on one of ownedaccesskeys: an access key without its bearer text.
// Source: Spec 2.5, 4.
package getaccesskey

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/accesskey"
)

// Function returns one access key of the caller. Error: NotFound if it does not exist or belongs to another user.
var Function = crud.Get("getaccesskey", accesskey.Definition, accesskey.Open)

// Package patchaccesskey is PATCH on one of ownedaccesskeys, by JSON patch, merge patch or apply.
// Source: Spec 2.5, 4.
package patchaccesskey

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
)

// Function changes a part of one access key. Errors: the errors of an update; BadRequest, RequestEntityTooLarge or
// UnsupportedMediaType as resource.Patch says; nothing is stored then.
var Function = crud.Delivering(crud.Patch("patchaccesskey", accesskey.Definition, kinds.AccessKeys, fieldmanager.New))

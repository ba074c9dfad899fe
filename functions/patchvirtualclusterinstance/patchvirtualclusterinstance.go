// Package patchvirtualclusterinstance is PATCH on one of virtualclusterinstances, and on its status.
// Source: Spec 2.6; ADR-0017.
package patchvirtualclusterinstance

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/instance"
)

// Function changes a part of one instance, or of its status. Errors: the errors of an update; BadRequest, RequestEntityTooLarge
// or UnsupportedMediaType as resource.Patch says; nothing is stored then.
var Function = crud.Encrypting(crud.Patch("patchvirtualclusterinstance", instance.Definition, kinds.Instances, fieldmanager.New))

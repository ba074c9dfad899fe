// Package getvirtualclusterinstance is GET on one of virtualclusterinstances, and on its status.
// Source: Spec 2.6; ADR-0017.
package getvirtualclusterinstance

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/instance"
)

// Function returns one instance, without the material of its signer. NotFound also for an instance that the caller may not see.
var Function = crud.Get("getvirtualclusterinstance", instance.Definition, instance.Open)

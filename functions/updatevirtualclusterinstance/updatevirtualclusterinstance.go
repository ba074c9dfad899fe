// Package updatevirtualclusterinstance is PUT on one of virtualclusterinstances, and on its status.
// Source: Spec 2.6; ADR-0017.
package updatevirtualclusterinstance

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/instance"
)

// Function replaces one instance, or its status. Errors: NotFound, Conflict, BadRequest, Invalid or Forbidden as resource.Update says;
// nothing is stored then.
var Function = crud.Encrypting(crud.Update("updatevirtualclusterinstance", instance.Definition, kinds.Instances, fieldmanager.New))

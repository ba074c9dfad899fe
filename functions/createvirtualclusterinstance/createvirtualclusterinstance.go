// Package createvirtualclusterinstance is POST on virtualclusterinstances: it registers a virtual cluster, so that the
// platform can render kubeconfigs for it. Source: Spec 2.6; ADR-0017.
package createvirtualclusterinstance

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/instance"
)

// Function stores a new instance. Errors: Invalid, Forbidden or AlreadyExists as resource.Create says; nothing is stored then.
var Function = crud.Encrypting(crud.Create("createvirtualclusterinstance", instance.Definition, kinds.Instances, fieldmanager.New))

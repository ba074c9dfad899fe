// Package listvirtualclusterinstances is GET on virtualclusterinstances of one namespace or of all: the instances that the
// caller may see, as a list or as a watch. Source: Spec 2.6; ADR-0007, ADR-0017.
package listvirtualclusterinstances

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/instance"
)

// Function returns a page of the instances that the caller may see, or follows them. Errors: BadRequest, Expired or Timeout as
// resource.List and resource.Watch say.
var Function = crud.List("listvirtualclusterinstances", instance.Definition, instance.Open)

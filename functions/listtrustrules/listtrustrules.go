// Package listtrustrules is GET on trustrules: the trust rules that the caller may see, as a list or as a watch.
// Source: ADR-0036.
package listtrustrules

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds/trustrule"
)

// Function returns a page of the trust rules that the caller may see, or follows them. Errors: BadRequest, Expired or Timeout as
// resource.List and resource.Watch say.
var Function = crud.List("listtrustrules", trustrule.Definition, trustrule.Open)

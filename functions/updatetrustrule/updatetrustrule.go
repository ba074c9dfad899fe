// Package updatetrustrule is PUT on one of trustrules. Source: ADR-0036.
package updatetrustrule

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/trustrule"
)

// Function replaces one trust rule. Errors: NotFound, BadRequest, Invalid, Forbidden or Conflict; nothing is stored then.
var Function = crud.Update("updatetrustrule", trustrule.Definition, kinds.TrustRules, fieldmanager.New)

// Package createtrustrule is POST on trustrules. Admins create trust rules. Source: ADR-0036.
package createtrustrule

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/trustrule"
)

// Function stores a new trust rule. Errors: Invalid or AlreadyExists; nothing is stored then.
var Function = crud.Create("createtrustrule", trustrule.Definition, kinds.TrustRules, fieldmanager.New)

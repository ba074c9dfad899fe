// Package patchtrustrule is PATCH on one of trustrules. Source: ADR-0036.
package patchtrustrule

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/trustrule"
)

// Function changes a part of one trust rule. Errors: the errors of an update; BadRequest, RequestEntityTooLarge or
// UnsupportedMediaType as resource.Patch says; nothing is stored then.
var Function = crud.Patch("patchtrustrule", trustrule.Definition, kinds.TrustRules, fieldmanager.New)

// Package deletetrustrule is DELETE on one of trustrules, or on a selection. The access keys that a rule has made are refused from then on. Source: ADR-0036.
package deletetrustrule

import (
	"management.platform.sh/shared/api/crud"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/trustrule"
)

// Function deletes one trust rule, or with a selection all selected trust rules, and returns the deleted rules as they were. It
// returns the errors of resource.Delete.
var Function = crud.Delete("deletetrustrule", trustrule.Definition, kinds.TrustRules)

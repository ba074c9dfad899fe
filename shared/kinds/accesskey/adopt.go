package accesskey

import (
	"slices"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// ForAdoption returns the registry that prepares keys before their owners get objects. An update adds to status.granted the
// groups that the argument granted has for the name of the key, and leaves the rest of the status as it is. The registry is for
// updates alone. Source: ADR-0033.
func ForAdoption(keys *Registry, granted map[string][]string) *Registry {
	return keys.WithStrategy(strategy(adoptionRules{mustRulesOf(keys), granted}))
}

// adoptionRules are the rules of keys whose owners get objects.
type adoptionRules struct {
	*rules
	granted map[string][]string
}

func (a adoptionRules) Default(caller identity.Caller, key, old *model.OwnedAccessKey) {
	a.rules.Default(caller, key, old)
	if old == nil {
		return
	}
	key.Status.DisabledByAdmin = old.Status.DisabledByAdmin
	for _, group := range a.granted[key.Name] {
		if !slices.Contains(key.Status.Granted, group) {
			key.Status.Granted = append(key.Status.Granted, group)
		}
	}
}

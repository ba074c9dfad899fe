package accesskey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// TrustRules is the name of the resource whose objects make keys for the tokens of jobs. Source: ADR-0036.
const TrustRules = "trustrules"

// ErrRule says that the trust rule that made a key is gone or disabled, or names another owner. Source: ADR-0036.
var ErrRule = errors.New("the trust rule that made it no longer permits it")

// trusted has the fields of model.TrustRule that decide about the keys that a rule made.
type trusted struct {
	Metadata struct {
		UID               string       `json:"uid"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Disabled bool                 `json:"disabled"`
		Owner    model.TrustRuleOwner `json:"owner"`
		Scope    *model.Scope         `json:"scope"`
	} `json:"spec"`
}

// rulesOfKeys returns references to the trust rules that made some keys, each once.
func rulesOfKeys(keys []*model.OwnedAccessKey) []store.Ref {
	var refs []store.Ref
	for _, key := range keys {
		if made := key.Status.TrustRule; made != nil {
			if ref := (store.Ref{Resource: TrustRules, Name: made.Name}); !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// rulesPermit returns the scopes of the trust rules that made some keys, as they are now. Records has the records of the rules
// that exist; nil: rulesPermit reads them.
//
// Errors: ErrRule, and the store's errors.
func rulesPermit(ctx context.Context, in *Registry, keys []*model.OwnedAccessKey, records map[store.Ref]store.Record) ([]*model.Scope, error) {
	refs := rulesOfKeys(keys)
	if len(refs) == 0 {
		return nil, nil
	}
	if records == nil {
		var err error
		if records, err = in.Store.GetRefs(ctx, refs...); err != nil {
			return nil, fmt.Errorf("looking up the trust rule of an access key: %w", err)
		}
	}
	var scopes []*model.Scope
	for _, key := range keys {
		trustRuleReference := key.Status.TrustRule
		if trustRuleReference == nil {
			continue
		}
		record, exists := records[store.Ref{Resource: TrustRules, Name: trustRuleReference.Name}]
		if !exists {
			return nil, ErrRule
		}
		var rule trusted
		if err := json.Unmarshal(record.Object, &rule); err != nil {
			return nil, fmt.Errorf("reading the trust rule %q: %w", trustRuleReference.Name, err)
		}
		owner := identity.OwnerOf(rule.Spec.Owner.User, rule.Spec.Owner.Team, "")
		if rule.Metadata.UID != trustRuleReference.UID || rule.Metadata.DeletionTimestamp != nil || rule.Spec.Disabled || owner != OwnerOf(&key.Spec) || rule.Spec.Scope == nil {
			return nil, ErrRule
		}
		scopes = append(scopes, rule.Spec.Scope)
	}
	return scopes, nil
}

// changesRuled refuses a change of a key that a trust rule made, because the rule decides what the key may do, and for how long.
// Callers may change the texts of the key, and disable it. Source: ADR-0036.
func changesRuled(key, old *model.OwnedAccessKey) field.ErrorList {
	if old == nil || old.Status.TrustRule == nil || givesNothing(&key.Spec, &old.Spec) && slices.Equal(key.Spec.Groups, old.Spec.Groups) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath, fmt.Sprintf(
		"the trust rule %q made the key: only its texts can be changed, and it can be disabled", old.Status.TrustRule.Name))}
}

// ForTrustRule returns the registry in which a trust rule makes keys: its keys are bound to the rule. The registry is for creates
// alone. Source: ADR-0036.
func ForTrustRule(keys *Registry, rule model.TrustRuleReference) *Registry {
	return keys.WithStrategy(strategy(ruledRules{mustRulesOf(keys), rule}))
}

// ruledRules are the rules of the keys of a trust rule.
type ruledRules struct {
	*rules
	rule model.TrustRuleReference
}

func (r ruledRules) RecordProvenance(ctx context.Context, caller identity.Caller, key *model.OwnedAccessKey) (field.ErrorList, error) {
	refused, err := r.rules.RecordProvenance(ctx, caller, key)
	key.Status.TrustRule = &r.rule
	return refused, err
}

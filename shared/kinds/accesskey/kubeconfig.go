package accesskey

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
)

// OfKubeconfigs returns the registry in which the tokens of kubeconfigs are created: its keys have the type Kubeconfig, which
// no client can give. It is for creates alone. Source: ADR-0021.
func OfKubeconfigs(keys *Registry) *Registry {
	own, ok := keys.Rules.(*rules)
	if !ok {
		panic("accesskey: the registry is not that of NewRegistry")
	}
	return keys.WithRules(kubeconfigRules{own})
}

// kubeconfigRules are the rules of the tokens of kubeconfigs.
type kubeconfigRules struct{ *rules }

// Validate accepts the type that clients cannot give.
func (k kubeconfigRules) Validate(key, old *model.OwnedAccessKey) field.ErrorList {
	checked := *key
	if checked.Spec.Type == model.AccessKeyTypeKubeconfig {
		checked.Spec.Type = model.AccessKeyTypeOther
	}
	return k.rules.Validate(&checked, old)
}

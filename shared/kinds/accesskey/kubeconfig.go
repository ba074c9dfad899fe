package accesskey

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
)

// ForKubeconfigs returns the registry in which the tokens of kubeconfigs are created: its keys have the type Kubeconfig, which
// no client can give. The registry is for creates alone. Source: ADR-0021.
func ForKubeconfigs(keys *Registry) *Registry {
	return keys.WithStrategy(strategy(kubeconfigRules{mustRulesOf(keys)}))
}

// OwnerNameLabel has the name of the instance for which a key was rendered. Source: ADR-0017.
const OwnerNameLabel = model.GroupName + "/virtualclusterinstance"

// KubeconfigPrefix begins the name of the token of a kubeconfig; the name of the instance follows. Source: ADR-0017.
const KubeconfigPrefix = "kubeconfig-"

// typeOf returns the type of a key. Tokens of kubeconfigs that were rendered before the type Kubeconfig existed have that type
// here as well: the label, the prefix of the name and the owner identify them. Source: ADR-0021.
func typeOf(key *model.OwnedAccessKey) string {
	name := key.Labels[OwnerNameLabel]
	if key.Spec.Type == model.AccessKeyTypeOther && name != "" && key.GenerateName == KubeconfigPrefix+name+"-" && len(key.OwnerReferences) > 0 {
		return model.AccessKeyTypeKubeconfig
	}
	return key.Spec.Type
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

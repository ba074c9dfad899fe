package platform

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/model"
)

// StoredKind is a kind whose objects are stored and may own objects of other stored kinds. Source: Spec 2.2
// (ownerReferences); ADR-0009.
type StoredKind struct {
	// Resource is the resource at which its objects are served.
	Resource schema.GroupVersionResource
	// Kind is the name of the kind.
	Kind string
	// Namespaced is true if its objects have a namespace.
	Namespaced bool
}

// GroupVersionKind returns the group, version and kind of its objects.
func (k StoredKind) GroupVersionKind() schema.GroupVersionKind {
	return k.Resource.GroupVersion().WithKind(k.Kind)
}

// StoredKinds are the stored kinds, for packages that must not depend on the rules of a kind. Source: Spec 2.2
// (ownerReferences); ADR-0009.
var StoredKinds = []StoredKind{
	{Resource: model.SchemeGroupVersion.WithResource("ownedaccesskeys"), Kind: "OwnedAccessKey"},
	{Resource: model.SchemeGroupVersion.WithResource("directclusterendpointtokens"), Kind: "DirectClusterEndpointToken"},
	{Resource: model.SchemeGroupVersion.WithResource("virtualclusterinstances"), Kind: "VirtualClusterInstance", Namespaced: true},
	{Resource: model.SchemeGroupVersion.WithResource("users"), Kind: "User"},
	{Resource: model.SchemeGroupVersion.WithResource("teams"), Kind: "Team"},
	{Resource: model.SchemeGroupVersion.WithResource("trustrules"), Kind: "TrustRule"},
	{Resource: model.SchemeGroupVersion.WithResource("projects"), Kind: "Project"},
}

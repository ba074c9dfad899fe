package model

// EndpointsSync is sync.toHost.endpoints of a virtual cluster configuration file. The other synced resources
// have the same two fields. Source: Spec 2.8.
type EndpointsSync struct {
	// Enabled turns on the syncing of Endpoints from the tenant cluster to the host cluster. Defaults to true.
	// Source: Spec 2.8.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Patches override the default sync rules. They are applied in this order. Source: Spec 2.8.
	// +optional
	// +listType=atomic
	Patches []SyncPatch `json:"patches,omitempty"`
}

// SyncPatch changes the values at one path of an object when the object is synced between a tenant cluster
// and its host cluster. It has exactly one mode: expression or reverseExpression or both, or reference, or
// labels. Source: Spec 2.8.
type SyncPatch struct {
	// Path is the field path in the object. `*` matches every element of an array or object. A key that contains
	// dots is written `metadata.annotations["key"]`. The empty path is the entire object. If the object does not
	// have the path, the patch changes nothing. Source: Spec 2.8.
	Path string `json:"path"`
	// Expression is an ES6 expression that returns the new value for the direction from tenant to host. The
	// variable value is the current value. Empty means that the patch changes nothing in this direction.
	// Source: Spec 2.8.
	// +optional
	Expression string `json:"expression,omitempty"`
	// ReverseExpression is the same for the direction from host to tenant. It must undo what expression does.
	// Empty means that the patch changes nothing in this direction. Source: Spec 2.8.
	// +optional
	ReverseExpression string `json:"reverseExpression,omitempty"`
	// Reference treats the value as a reference to another object and rewrites it. Source: Spec 2.8.
	// +optional
	Reference *SyncPatchReference `json:"reference,omitempty"`
	// Labels treats the value as a map of labels or a label selector and rewrites it. An empty object turns this
	// on. Source: Spec 2.8.
	// +optional
	Labels *SyncPatchLabels `json:"labels,omitempty"`
}

// SyncPatchReference says which object a value refers to. The paths are relative to the value. If no path is
// set, the value itself is the name of the object. Source: Spec 2.8.
type SyncPatchReference struct {
	// APIVersion is the group and version of the referenced object. Source: Spec 2.8.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// APIVersionPath is the path to the group and version within the value. If the value has no such path,
	// apiVersion applies. Source: Spec 2.8.
	// +optional
	APIVersionPath string `json:"apiVersionPath,omitempty"`
	// Kind is the kind of the referenced object. Source: Spec 2.8.
	// +optional
	Kind string `json:"kind,omitempty"`
	// KindPath is the path to the kind within the value. If the value has no such path, kind applies.
	// Source: Spec 2.8.
	// +optional
	KindPath string `json:"kindPath,omitempty"`
	// NamePath is the path to the name of the referenced object within the value. Source: Spec 2.8.
	// +optional
	NamePath string `json:"namePath,omitempty"`
	// NamespacePath is the path to the namespace of the referenced object within the value. If absent, it is the
	// namespace of the object itself. Source: Spec 2.8.
	// +optional
	NamespacePath string `json:"namespacePath,omitempty"`
}

// SyncPatchLabels turns on the rewriting of labels. It has no fields. Source: Spec 2.8.
type SyncPatchLabels struct{}

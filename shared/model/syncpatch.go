package model

// EndpointsSync is sync.toHost.endpoints of a virtual cluster configuration file. The other synced
// resources have the same two fields. Source: Spec 2.8.
type EndpointsSync struct {
	// Enabled syncs Endpoints from the tenant cluster to the host cluster. Absent means true.
	// Source: Spec 2.8.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Patches override the default sync rules, in this order. Source: Spec 2.8.
	// +optional
	// +listType=atomic
	Patches []SyncPatch `json:"patches,omitempty"`
}

// SyncPatch changes the values at one path of an object on its way between a tenant cluster and its host
// cluster. It has one mode: expression and reverseExpression (either or both), or reference, or labels.
// Source: Spec 2.8.
type SyncPatch struct {
	// Path is the field path in the object. `*` matches every element of an array or object, and a key is
	// written `metadata.annotations["key"]` where it holds dots. The empty path is the whole object. A
	// path that is absent from the object changes nothing. Source: Spec 2.8.
	Path string `json:"path"`
	// Expression is one ES6 expression that returns the new value on the way from tenant to host; the
	// variable value holds the current one. Empty: no change in this direction. Source: Spec 2.8.
	// +optional
	Expression string `json:"expression,omitempty"`
	// ReverseExpression is the same on the way from host to tenant. It must undo what expression does.
	// Empty: no change in this direction. Source: Spec 2.8.
	// +optional
	ReverseExpression string `json:"reverseExpression,omitempty"`
	// Reference treats the value as a reference to another object and rewrites it. Source: Spec 2.8.
	// +optional
	Reference *SyncPatchReference `json:"reference,omitempty"`
	// Labels treats the value as a map of labels or a label selector and rewrites it; an empty object
	// switches it on. Source: Spec 2.8.
	// +optional
	Labels *SyncPatchLabels `json:"labels,omitempty"`
}

// SyncPatchReference says which object a value refers to. The paths are relative to the value; without
// any of them the value itself is the name. Source: Spec 2.8.
type SyncPatchReference struct {
	// APIVersion is the group and version of the referent. Source: Spec 2.8.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// APIVersionPath is where the value holds it; apiVersion applies where it does not. Source: Spec 2.8.
	// +optional
	APIVersionPath string `json:"apiVersionPath,omitempty"`
	// Kind is the kind of the referent. Source: Spec 2.8.
	// +optional
	Kind string `json:"kind,omitempty"`
	// KindPath is where the value holds it; kind applies where it does not. Source: Spec 2.8.
	// +optional
	KindPath string `json:"kindPath,omitempty"`
	// NamePath is where the value holds the name of the referent. Source: Spec 2.8.
	// +optional
	NamePath string `json:"namePath,omitempty"`
	// NamespacePath is where the value holds the namespace of the referent. Absent means the namespace of
	// the object itself. Source: Spec 2.8.
	// +optional
	NamespacePath string `json:"namespacePath,omitempty"`
}

// SyncPatchLabels switches the rewriting of labels on; it has no fields. Source: Spec 2.8.
type SyncPatchLabels struct{}

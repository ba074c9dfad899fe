package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of SyncPatchEvaluation spec.direction. Source: Spec 2.8 (the two directions); ADR-0003.
const (
	// TenantToHost evaluates expression. It is the default.
	TenantToHost = "TenantToHost"
	// HostToTenant evaluates reverseExpression.
	HostToTenant = "HostToTenant"
)

// The values of SyncPatchEvaluation spec.namespaceMode. Source: Spec 2.8 rule 6; ADR-0003.
const (
	// SingleNamespace syncs all namespaces of a tenant into one of the host. It is the default.
	SingleNamespace = "Single"
	// MultiNamespace syncs each namespace of a tenant into one of its own.
	MultiNamespace = "Multi"
)

// The values of the outcomes in SyncPatchEvaluation status.trace. Source: ADR-0003.
const (
	// PatchApplied means that a value was replaced by another one.
	PatchApplied = "Applied"
	// PatchUnchanged means that the result is what was there before.
	PatchUnchanged = "Unchanged"
	// PatchDeleted means that the field or element was removed.
	PatchDeleted = "Deleted"
	// PatchNoMatch means that the path is absent from the object.
	PatchNoMatch = "NoMatch"
	// PatchSkipped means that the patch does nothing in this direction, or that an earlier one failed.
	PatchSkipped = "Skipped"
	// PatchFailed means that the evaluation ended here with an error.
	PatchFailed = "Failed"
)

// SyncPatchEvaluation tries sync patches on an object and tells what each of them did. It is cluster
// scoped, created at syncpatchevaluations, and not stored. Source: Spec 2.8 (the patches); ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SyncPatchEvaluation struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec is what to evaluate. Source: ADR-0003.
	// +optional
	Spec SyncPatchEvaluationSpec `json:"spec"`
	// Status is the result; what clients send here is ignored. Source: ADR-0003.
	// +optional
	Status SyncPatchEvaluationStatus `json:"status"`
}

// SyncPatchEvaluationSpec is what to evaluate. Source: Spec 2.8; ADR-0003.
type SyncPatchEvaluationSpec struct {
	// Direction is TenantToHost (default) or HostToTenant. Source: Spec 2.8; ADR-0003.
	// +optional
	Direction string `json:"direction,omitempty"`
	// Patches are evaluated in this order; each sees the result of the earlier ones. Source: Spec 2.8.
	// +optional
	// +listType=atomic
	Patches []SyncPatch `json:"patches,omitempty"`
	// Object is the object that is patched. Source: ADR-0003.
	Object *JSON `json:"object"`
	// Tenant is context.tenant of the expressions. Source: Spec 2.8.
	// +optional
	Tenant SyncPatchTenant `json:"tenant,omitzero"`
	// NamespaceMode is Single (default) or Multi: whether names are rewritten because all namespaces of
	// the tenant share one on the host. Source: Spec 2.8 rule 6; ADR-0003.
	// +optional
	NamespaceMode string `json:"namespaceMode,omitempty"`
	// ClusterDomain is the domain of the host cluster, for virtualToHostDNS. Empty means cluster.local.
	// Source: Spec 2.8 rule 3; ADR-0003.
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// HostObject is context.hostObject of the expressions. Absent means null. Source: Spec 2.8.
	// +optional
	HostObject *JSON `json:"hostObject,omitempty"`
	// VirtualObject is context.virtualObject of the expressions. Absent means null. Source: Spec 2.8.
	// +optional
	VirtualObject *JSON `json:"virtualObject,omitempty"`
}

// SyncPatchTenant is the tenant cluster, as expressions see it. Source: Spec 2.8.
type SyncPatchTenant struct {
	// Name is the name of the tenant cluster. Source: Spec 2.8.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace is the host namespace of the tenant cluster. Source: Spec 2.8.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Config is the configuration of the tenant cluster, merged with defaults. Absent means an empty
	// object. Source: Spec 2.8.
	// +optional
	Config *JSON `json:"config,omitempty"`
}

// SyncPatchEvaluationStatus is the result of an evaluation. Source: ADR-0003.
type SyncPatchEvaluationStatus struct {
	// Object is the object after all patches; after an error, as it was sent. Source: ADR-0003.
	// +optional
	Object *JSON `json:"object,omitempty"`
	// Error is why the evaluation ended early, with the patch, the concrete path and the position. Empty
	// means that it did not. Source: ADR-0003.
	// +optional
	Error string `json:"error,omitempty"`
	// Trace tells what each patch did, in the order of spec.patches. Source: ADR-0003.
	// +optional
	// +listType=atomic
	Trace []SyncPatchTrace `json:"trace,omitempty"`
}

// SyncPatchTrace is what one patch did. Source: ADR-0003.
type SyncPatchTrace struct {
	// Patch is the index of the patch in spec.patches, from 0. Source: ADR-0003.
	Patch int32 `json:"patch"`
	// Path is the path of the patch, as it was sent. Source: ADR-0003.
	// +optional
	Path string `json:"path,omitempty"`
	// Outcome is Applied, Unchanged, Deleted, NoMatch, Skipped or Failed: the first of Failed, Applied,
	// Deleted and Unchanged that a match has. Source: ADR-0003.
	Outcome string `json:"outcome"`
	// Message explains the outcome in a sentence, such as up to which segment the path exists.
	// Source: ADR-0003.
	// +optional
	Message string `json:"message,omitempty"`
	// Matches tell what happened at each concrete path. Source: ADR-0003.
	// +optional
	// +listType=atomic
	Matches []SyncPatchMatch `json:"matches,omitempty"`
}

// SyncPatchMatch is what a patch did at one concrete path. Source: ADR-0003.
type SyncPatchMatch struct {
	// Path is concrete: an index or key in place of each wildcard. It is context.path of the expression.
	// Source: Spec 2.8; ADR-0003.
	Path string `json:"path"`
	// Outcome is Applied, Unchanged, Deleted or Failed. Source: ADR-0003.
	Outcome string `json:"outcome"`
	// Before is the value that the patch found. Absent: there was none. Source: ADR-0003.
	// +optional
	Before *JSON `json:"before,omitempty"`
	// After is the value that the patch left. Absent: none. Source: ADR-0003.
	// +optional
	After *JSON `json:"after,omitempty"`
	// Message is why the outcome is Failed. Source: ADR-0003.
	// +optional
	Message string `json:"message,omitempty"`
	// Line is the line of the expression that failed, from 1. 0 means not known. Source: ADR-0003.
	// +optional
	Line int32 `json:"line,omitempty"`
	// Column is the column in that line, from 1. 0 means not known. Source: ADR-0003.
	// +optional
	Column int32 `json:"column,omitempty"`
}

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

// The values of SyncPatchEvaluation spec.checks. Source: Spec 2.8 rule 2; ADR-0013.
const (
	// CheckRoundTrip asks whether the other direction gives back the object that was sent.
	CheckRoundTrip = "RoundTrip"
	// CheckFixpoint asks whether the result stays as it is when it goes to the other side and back. Where
	// it does not, the two sides would update each other for ever.
	CheckFixpoint = "Fixpoint"
)

// The values of the outcomes in SyncPatchEvaluation status.patches. Source: ADR-0013.
const (
	// PatchApplied means that a value was replaced by another one.
	PatchApplied = "Applied"
	// PatchUnchanged means that the result is what was there before.
	PatchUnchanged = "Unchanged"
	// PatchDeleted means that the field or element was removed.
	PatchDeleted = "Deleted"
	// PatchSkipped means that nothing was evaluated: the path is absent, the patch does nothing in this
	// direction, or an earlier one failed.
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
	// NamespaceMode is Single (default) or Multi: whether names are rewritten because all namespaces of
	// the tenant share one on the host. Source: Spec 2.8 rule 6; ADR-0003.
	// +optional
	NamespaceMode string `json:"namespaceMode,omitempty"`
	// ClusterDomain is the domain of the host cluster, for virtualToHostDNS. Empty means cluster.local.
	// Source: Spec 2.8 rule 3; ADR-0003.
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// Patches are evaluated in this order; each sees the result of the earlier ones. Either they are given,
	// or resource and configuration. Source: Spec 2.8.
	// +optional
	// +listType=atomic
	Patches []SyncPatch `json:"patches,omitempty"`
	// Resource is the key below sync.toHost or sync.fromHost of the configuration whose patches are meant,
	// such as endpoints or gatewayApi.httpRoutes. fromHost. in front chooses where both have it.
	// Source: Spec 2.8; ADR-0013.
	// +optional
	Resource string `json:"resource,omitempty"`
	// Configuration is a virtual cluster configuration, which resource chooses the patches from.
	// Source: Spec 2.8; ADR-0013.
	// +optional
	Configuration *JSON `json:"configuration,omitempty"`
	// Object is the object that is patched. Source: ADR-0003.
	Object *JSON `json:"object"`
	// Context is what expressions and references know beside the object. Source: Spec 2.8 rule 5; ADR-0013.
	// +optional
	Context SyncPatchContext `json:"context,omitzero"`
	// Checks are RoundTrip and Fixpoint: what else to find out about the result. Source: ADR-0013.
	// +optional
	// +listType=set
	Checks []string `json:"checks,omitempty"`
}

// SyncPatchContext is what expressions and references know beside the object. Source: Spec 2.8 rule 5;
// ADR-0013.
type SyncPatchContext struct {
	// Tenant is context.tenant of the expressions. Source: Spec 2.8 rule 5.
	// +optional
	Tenant SyncPatchTenant `json:"tenant,omitzero"`
	// HostObject is context.hostObject of the expressions. Absent means null. Source: Spec 2.8 rule 5.
	// +optional
	HostObject *JSON `json:"hostObject,omitempty"`
	// VirtualObject is context.virtualObject of the expressions. Absent means null. Source: Spec 2.8 rule 5.
	// +optional
	VirtualObject *JSON `json:"virtualObject,omitempty"`
	// References say which objects of the tenant cluster the names on the host stand for. A reference patch
	// needs them from host to tenant in single-namespace mode, since a generated name does not tell what it
	// was made from. Source: Spec 2.8 rule 6; ADR-0013.
	// +optional
	// +listType=atomic
	References []SyncPatchObjectReference `json:"references,omitempty"`
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

// SyncPatchObjectReference is an object that another one refers to, as both clusters know it.
// Source: Spec 2.8 rule 6; ADR-0013.
type SyncPatchObjectReference struct {
	// APIVersion is its group and version. Source: Spec 2.8.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is its kind. Source: Spec 2.8.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name is its name in the tenant cluster. Source: ADR-0013.
	Name string `json:"name"`
	// Namespace is its namespace in the tenant cluster. Source: ADR-0013.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// HostName is its name on the host. Empty in a request means the generated name and the long form.
	// Source: ADR-0013.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// HostNamespace is its namespace on the host. Source: ADR-0013.
	// +optional
	HostNamespace string `json:"hostNamespace,omitempty"`
}

// SyncPatchEvaluationStatus is the result of an evaluation. Source: ADR-0003.
type SyncPatchEvaluationStatus struct {
	// Object is the object after all patches; after an error, as it was sent. Source: ADR-0003.
	// +optional
	Object *JSON `json:"object,omitempty"`
	// Patches tell what each patch did, in the order of the patches. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Patches []SyncPatchTrace `json:"patches,omitempty"`
	// References are the objects that the reference patches found, each once, in the order of their
	// appearance: they must be synced too. Source: Spec 2.8 rule 6; ADR-0013.
	// +optional
	// +listType=atomic
	References []SyncPatchObjectReference `json:"references,omitempty"`
	// Error is why the evaluation ended early. Absent means that it did not. Source: ADR-0013.
	// +optional
	Error *SyncPatchError `json:"error,omitempty"`
	// Warnings name what is allowed but does hardly what was meant, each with its field, such as an expression
	// that is always null. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// Checks are the answers to spec.checks, in their order. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Checks []SyncPatchCheck `json:"checks,omitempty"`
}

// SyncPatchTrace is what one patch did. Source: ADR-0013.
type SyncPatchTrace struct {
	// Index is the place of the patch in the list, from 0. Source: ADR-0013.
	Index int32 `json:"index"`
	// Path is the path of the patch, as it was sent. Source: ADR-0013.
	Path string `json:"path"`
	// Outcome is Applied, Unchanged, Deleted, Skipped or Failed: the first of Failed, Applied, Deleted and
	// Unchanged that a match has, else Skipped. Source: ADR-0013.
	Outcome string `json:"outcome"`
	// Reason explains in a sentence why the patch changed nothing. Source: ADR-0013.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Matches tell what happened at each concrete path, maps in the order of their keys. A patch that was
	// skipped as a whole has one, at its own path. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Matches []SyncPatchMatch `json:"matches,omitempty"`
	// OmittedMatches counts those that are not listed because the trace has its full size. Source: ADR-0013.
	// +optional
	OmittedMatches int32 `json:"omittedMatches,omitempty"`
}

// SyncPatchMatch is what a patch did at one concrete path. Source: ADR-0013.
type SyncPatchMatch struct {
	// Path is concrete: an index or key in place of each wildcard. It is context.path of the expression.
	// Source: Spec 2.8; ADR-0013.
	Path string `json:"path"`
	// Outcome is Applied, Unchanged, Deleted, Skipped or Failed. Source: ADR-0013.
	Outcome string `json:"outcome"`
	// Reason explains every outcome but Applied and Deleted. Source: ADR-0013.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Before is the value that the patch found. Source: ADR-0013.
	// +optional
	Before *JSON `json:"before,omitempty"`
	// After is the value that the patch left. Absent: none. Source: ADR-0013.
	// +optional
	After *JSON `json:"after,omitempty"`
}

// SyncPatchError is why an evaluation ended early. Source: ADR-0013.
type SyncPatchError struct {
	// Index is the place of the patch in the list, from 0. Source: ADR-0013.
	Index int32 `json:"index"`
	// Path is the concrete path that the patch was at. Source: ADR-0013.
	Path string `json:"path"`
	// Message says what is wrong, and which limit was passed if one was. Source: ADR-0013.
	Message string `json:"message"`
	// Line is the line of the expression, from 1. 0 means not known. Source: ADR-0013.
	// +optional
	Line int32 `json:"line,omitempty"`
	// Column is the column in that line, from 1. 0 means not known. Source: ADR-0013.
	// +optional
	Column int32 `json:"column,omitempty"`
}

// SyncPatchCheck is the answer to one of spec.checks. Source: ADR-0013.
type SyncPatchCheck struct {
	// Type is RoundTrip or Fixpoint. Source: ADR-0013.
	Type string `json:"type"`
	// Passed tells whether the check found nothing. Source: ADR-0013.
	Passed bool `json:"passed"`
	// Reason says in a sentence what the differences mean, or why there was nothing to compare.
	// Source: ADR-0013.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Differences are the paths where the two objects differ. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Differences []SyncPatchDifference `json:"differences,omitempty"`
}

// SyncPatchDifference is one path where two objects differ. Source: ADR-0013.
type SyncPatchDifference struct {
	// Path is the concrete path. Source: ADR-0013.
	Path string `json:"path"`
	// Want is what should be there. Absent: nothing. Source: ADR-0013.
	// +optional
	Want *JSON `json:"want,omitempty"`
	// Got is what is there. Absent: nothing. Source: ADR-0013.
	// +optional
	Got *JSON `json:"got,omitempty"`
}

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
	// SingleNamespace syncs all namespaces of a tenant into one namespace on the host. It is the default.
	SingleNamespace = "Single"
	// MultiNamespace syncs each namespace of a tenant into its own namespace on the host.
	MultiNamespace = "Multi"
)

// The values of SyncPatchEvaluation spec.naming. Source: ADR-0048.
const (
	// NamingNeutral names every referent v followed by 13 digits, and translates labels to keys below platform.sh/. It is
	// the default.
	NamingNeutral = "neutral"
	// NamingVCluster names referents and labels as the open syncer of vcluster does on a host.
	NamingVCluster = "vcluster"
)

// The values of SyncPatchEvaluation spec.checks. Source: Spec 2.8 rule 2; ADR-0013.
const (
	// CheckRoundTrip checks that the opposite direction restores the object of the request.
	CheckRoundTrip = "RoundTrip"
	// CheckFixpoint checks that the result stays the same when it is synced to the other side and back. If it
	// does not, the two sides would update each other forever.
	CheckFixpoint = "Fixpoint"
)

// The values of the outcomes in SyncPatchEvaluation status.patches. Source: ADR-0013.
const (
	// PatchApplied means that a value was replaced by another value.
	PatchApplied = "Applied"
	// PatchUnchanged means that the result is equal to the previous value.
	PatchUnchanged = "Unchanged"
	// PatchDeleted means that the field or element was removed.
	PatchDeleted = "Deleted"
	// PatchSkipped means that nothing was evaluated: the path is absent, the patch does nothing in this
	// direction, or an earlier patch failed.
	PatchSkipped = "Skipped"
	// PatchFailed means that the evaluation ended at this patch with an error.
	PatchFailed = "Failed"
)

// SyncPatchEvaluation applies sync patches to an object as a trial and reports what each of them did. It is
// cluster-scoped and created at syncpatchevaluations. The server does not store it. Source: Spec 2.8 (the
// patches); ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SyncPatchEvaluation struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec describes what to evaluate. Source: ADR-0003.
	// +optional
	Spec SyncPatchEvaluationSpec `json:"spec"`
	// Status is the result. It is ignored in requests. Source: ADR-0003.
	// +optional
	Status SyncPatchEvaluationStatus `json:"status"`
}

// SyncPatchEvaluationSpec describes what to evaluate. Source: Spec 2.8; ADR-0003.
type SyncPatchEvaluationSpec struct {
	// Direction is TenantToHost or HostToTenant. Defaults to TenantToHost, and to HostToTenant if the resource is below
	// sync.fromHost. Source: Spec 2.8; ADR-0003, ADR-0013.
	// +optional
	Direction string `json:"direction,omitempty"`
	// NamespaceMode is Single or Multi. In Single mode all namespaces of the tenant share one namespace on the
	// host, so names are rewritten. Defaults to Single. Source: Spec 2.8 rule 6; ADR-0003.
	// +optional
	NamespaceMode string `json:"namespaceMode,omitempty"`
	// Naming is neutral or vcluster: how referents and labels are named on the host in Single mode. With vcluster, they
	// have the names that the open syncer of vcluster gives them, and expressions can use context.vcluster, which is the
	// same as context.tenant. Defaults to neutral. Source: ADR-0048.
	// +optional
	Naming string `json:"naming,omitempty"`
	// ClusterDomain is the domain of the host cluster, which virtualToHostDNS uses. Defaults to cluster.local.
	// Source: Spec 2.8 rule 3; ADR-0003.
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// Patches are evaluated in this order; each patch sees the result of the earlier ones. Set either patches,
	// or resource and configuration. Source: Spec 2.8.
	// +optional
	// +listType=atomic
	Patches []SyncPatch `json:"patches,omitempty"`
	// Resource selects the patches in the configuration: a key below sync.toHost or sync.fromHost, such as
	// endpoints or gatewayApi.httpRoutes. If both sections have the key, the prefix fromHost. selects
	// sync.fromHost. Source: Spec 2.8; ADR-0013.
	// +optional
	Resource string `json:"resource,omitempty"`
	// Configuration is a virtual cluster configuration. The patches that resource selects are taken from it.
	// Source: Spec 2.8; ADR-0013.
	// +optional
	Configuration *JSON `json:"configuration,omitempty"`
	// Object is the object to patch. Source: ADR-0003.
	Object *JSON `json:"object"`
	// Context contains what expressions and references can use in addition to the object. Source: Spec 2.8 rule
	// 5; ADR-0013.
	// +optional
	Context SyncPatchContext `json:"context,omitzero"`
	// Checks are additional checks of the result: RoundTrip and Fixpoint. Source: ADR-0013.
	// +optional
	// +listType=set
	Checks []string `json:"checks,omitempty"`
}

// SyncPatchContext contains what expressions and references can use in addition to the object. Source: Spec
// 2.8 rule 5; ADR-0013.
type SyncPatchContext struct {
	// Tenant is the value of context.tenant in expressions. Source: Spec 2.8 rule 5.
	// +optional
	Tenant SyncPatchTenant `json:"tenant,omitzero"`
	// HostObject is the value of context.hostObject in expressions. If absent, it is null. Source: Spec 2.8 rule
	// 5.
	// +optional
	HostObject *JSON `json:"hostObject,omitempty"`
	// VirtualObject is the value of context.virtualObject in expressions. If absent, it is null. Source: Spec
	// 2.8 rule 5.
	// +optional
	VirtualObject *JSON `json:"virtualObject,omitempty"`
	// References map names on the host to the objects of the tenant cluster that they stand for. A reference
	// patch needs them in the direction from host to tenant in single-namespace mode, because the original name
	// cannot be derived from a generated name. Source: Spec 2.8 rule 6; ADR-0013.
	// +optional
	// +listType=atomic
	References []SyncPatchObjectReference `json:"references,omitempty"`
}

// SyncPatchTenant describes the tenant cluster to expressions. Source: Spec 2.8.
type SyncPatchTenant struct {
	// Name is the name of the tenant cluster. Source: Spec 2.8.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace is the namespace of the tenant cluster on the host. Source: Spec 2.8.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Config is the configuration of the tenant cluster. If absent, it is spec.configuration. Expressions see it merged
	// with the defaults of enabled below sync.toHost and sync.fromHost. Source: Spec 2.8 rule 5; ADR-0013.
	// +optional
	Config *JSON `json:"config,omitempty"`
}

// SyncPatchObjectReference identifies a referenced object in the tenant cluster and on the host.
// Source: Spec 2.8 rule 6; ADR-0013.
type SyncPatchObjectReference struct {
	// APIVersion is the group and version of the object. Source: Spec 2.8.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is the kind of the object. Source: Spec 2.8.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name is the name of the object in the tenant cluster. Source: ADR-0013.
	Name string `json:"name"`
	// Namespace is the namespace of the object in the tenant cluster. Source: ADR-0013.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// HostName is the name of the object on the host. If a request leaves it out, it is computed from the other fields:
	// with the naming neutral, the generated name and the long form; with the naming vcluster, the name that vcluster gives
	// an object of this kind. Source: ADR-0013, ADR-0048.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// HostNamespace is the namespace of the object on the host. Source: ADR-0013.
	// +optional
	HostNamespace string `json:"hostNamespace,omitempty"`
}

// SyncPatchEvaluationStatus is the result of an evaluation. Source: ADR-0003.
type SyncPatchEvaluationStatus struct {
	// Object is the object after all patches. If there was an error, it is the object of the request.
	// Source: ADR-0003.
	// +optional
	Object *JSON `json:"object,omitempty"`
	// Patches report what each patch did, in the order of the patches. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Patches []SyncPatchTrace `json:"patches,omitempty"`
	// References are the objects that the reference patches found, without duplicates and in the order of their
	// appearance. These objects must be synced too. Source: Spec 2.8 rule 6; ADR-0013.
	// +optional
	// +listType=atomic
	References []SyncPatchObjectReference `json:"references,omitempty"`
	// Error is the reason why the evaluation ended early. Absent if it did not. Source: ADR-0013.
	// +optional
	Error *SyncPatchError `json:"error,omitempty"`
	// Warnings point out what is allowed but is probably not intended, such as an expression that always returns null. Each
	// warning names its field. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// Checks are the results of spec.checks, in the same order. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Checks []SyncPatchCheck `json:"checks,omitempty"`
}

// SyncPatchTrace reports what one patch did. Source: ADR-0013.
type SyncPatchTrace struct {
	// Index is the position of the patch in the list, counted from 0. Source: ADR-0013.
	Index int32 `json:"index"`
	// Path is the path of the patch, as in the request. Source: ADR-0013.
	Path string `json:"path"`
	// Outcome is Applied, Unchanged, Deleted, Skipped or Failed. If the matches differ, it is the first of
	// Failed, Applied, Deleted and Unchanged that occurs. If there are no such matches, it is Skipped.
	// Source: ADR-0013.
	Outcome string `json:"outcome"`
	// Reason explains in a sentence why the patch changed nothing. Source: ADR-0013.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Matches report what happened at each concrete path; the entries of a map are in the order of their keys. A
	// patch that was skipped entirely has one match, at its own path. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Matches []SyncPatchMatch `json:"matches,omitempty"`
	// OmittedMatches is the number of matches that are not listed because the trace reached its maximum size.
	// Source: ADR-0013.
	// +optional
	OmittedMatches int32 `json:"omittedMatches,omitempty"`
}

// SyncPatchMatch reports what a patch did at one concrete path. Source: ADR-0013.
type SyncPatchMatch struct {
	// Path is the concrete path, with an index or a key in place of each wildcard. Expressions see it as
	// context.path. Source: Spec 2.8; ADR-0013.
	Path string `json:"path"`
	// Outcome is Applied, Unchanged, Deleted, Skipped or Failed. Source: ADR-0013.
	Outcome string `json:"outcome"`
	// Reason explains the outcome. It is set for every outcome except Applied and Deleted. Source: ADR-0013.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Before is the value before the patch. Source: ADR-0013.
	// +optional
	Before *JSON `json:"before,omitempty"`
	// After is the value after the patch. Absent if there is none. Source: ADR-0013.
	// +optional
	After *JSON `json:"after,omitempty"`
}

// SyncPatchError is the reason why an evaluation ended early. Source: ADR-0013.
type SyncPatchError struct {
	// Index is the position of the patch in the list, counted from 0. Source: ADR-0013.
	Index int32 `json:"index"`
	// Path is the concrete path at which the patch failed. Source: ADR-0013.
	Path string `json:"path"`
	// Message says what is wrong. If a limit was exceeded, it names the limit. Source: ADR-0013.
	Message string `json:"message"`
	// Line is the line in the expression, counted from 1. 0 or absent means that it is not known.
	// Source: ADR-0013.
	// +optional
	Line int32 `json:"line,omitempty"`
	// Column is the column in the line, counted from 1. 0 or absent means that it is not known.
	// Source: ADR-0013.
	// +optional
	Column int32 `json:"column,omitempty"`
}

// SyncPatchCheck is the result of one of spec.checks. Source: ADR-0013.
type SyncPatchCheck struct {
	// Type is RoundTrip or Fixpoint. Source: ADR-0013.
	Type string `json:"type"`
	// Passed is true if the check found no differences. It is true for objects that are synced from host to tenant
	// only, which have no way back. Source: ADR-0013.
	Passed bool `json:"passed"`
	// Reason explains in a sentence what the differences mean, or why there was nothing to compare.
	// Source: ADR-0013.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Differences are the paths at which the two objects differ. Source: ADR-0013.
	// +optional
	// +listType=atomic
	Differences []SyncPatchDifference `json:"differences,omitempty"`
}

// SyncPatchDifference is one path at which two objects differ. Source: ADR-0013.
type SyncPatchDifference struct {
	// Path is the concrete path. Source: ADR-0013.
	Path string `json:"path"`
	// Want is the expected value. Absent if no value is expected. Source: ADR-0013.
	// +optional
	Want *JSON `json:"want,omitempty"`
	// Got is the actual value. Absent if there is none. Source: ADR-0013.
	// +optional
	Got *JSON `json:"got,omitempty"`
}

// Package syncpatch applies the patches of a tenant admin to objects that are synced between a tenant cluster and its
// host cluster: paths, expressions, references and labels. The result says what each patch did at each path, or why it
// did nothing. Source: Spec 2.8; ADR-0013.
//
// Evaluate runs in the process of its caller. Package worker runs it in a process that can be killed: nothing else
// bounds the time and memory of a tenant's expression. The package reads nothing but the request, and stores nothing.
package syncpatch

import "management.platform.sh/shared/model"

// Request is one object, its patches, and the direction of the sync. Object and the values of Context are JSON as
// apimachinery decodes it: map[string]any, []any, string, int64, float64, bool and nil.
type Request struct {
	// Direction is model.TenantToHost or model.HostToTenant. Empty means TenantToHost.
	Direction string `json:"direction,omitempty"`
	// NamespaceMode is model.SingleNamespace or model.MultiNamespace. Empty means SingleNamespace.
	NamespaceMode string `json:"namespaceMode,omitempty"`
	// Naming is model.NamingNeutral or model.NamingVCluster. Empty means NamingNeutral.
	Naming string `json:"naming,omitempty"`
	// ClusterDomain is the domain of the host cluster. Empty means cluster.local.
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// Resource is the resource of the configuration that the patches are from. Empty means that they are from none.
	Resource string `json:"resource,omitempty"`
	// Patches are evaluated in this order.
	Patches []model.SyncPatch `json:"patches,omitempty"`
	// Disabled is the reason why the resource of the object is not synced. If it is not empty, every patch is skipped
	// for this reason.
	Disabled string `json:"disabled,omitempty"`
	// OneWay reports whether the object is synced from the host to the tenant cluster only, so that there is no way
	// back to check.
	OneWay bool `json:"oneWay,omitempty"`
	// Object is the object to patch. It is not changed.
	Object map[string]any `json:"object"`
	// Context has the values that patches can use in addition to the object.
	Context Context `json:"context"`
	// Checks are model.CheckRoundTrip and model.CheckFixpoint.
	Checks []string `json:"checks,omitempty"`
}

// Context has the values that patches can use in addition to the object. Source: Spec 2.8 rule 5.
type Context struct {
	Tenant Tenant `json:"tenant"`
	// HostObject is the object on the host. Nil means that there is none.
	HostObject map[string]any `json:"hostObject,omitempty"`
	// VirtualObject is the object in the tenant cluster. Nil means that there is none.
	VirtualObject map[string]any `json:"virtualObject,omitempty"`
	// References map names on the host to objects of the tenant cluster.
	References []model.SyncPatchObjectReference `json:"references,omitempty"`
}

// Tenant is the tenant cluster, as expressions see it. Source: Spec 2.8 rule 5.
type Tenant struct {
	Name string `json:"name,omitempty"`
	// Namespace is the namespace of the tenant cluster on the host.
	Namespace string `json:"namespace,omitempty"`
	// Config is the configuration of the tenant cluster. Expressions see it merged with defaults.
	Config map[string]any `json:"config,omitempty"`
}

// Result is the outcome of an evaluation.
type Result struct {
	// Object is the object after all patches; with an Error, as it was in the request.
	Object map[string]any `json:"object"`
	// Patches are the results of the patches, in their order.
	Patches []model.SyncPatchTrace `json:"patches,omitempty"`
	// References are the objects that the reference patches found, each once.
	References []model.SyncPatchObjectReference `json:"references,omitempty"`
	// Error is the reason why the evaluation ended early, or nil.
	Error *model.SyncPatchError `json:"error,omitempty"`
	// Checks are the results of the checks of the request, in their order.
	Checks []model.SyncPatchCheck `json:"checks,omitempty"`
}

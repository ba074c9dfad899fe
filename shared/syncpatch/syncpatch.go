// Package syncpatch applies the patches of a tenant admin to objects that are synced between a tenant cluster and its
// host cluster: paths, expressions, references and labels. The result says of every patch what it did at every path, or
// why it did nothing. Source: Spec 2.8; ADR-0013.
//
// Evaluate runs in the process of its caller. The package worker runs it in a process that can be killed, which is the
// only way to bound what the expression of a tenant costs. The package reads nothing but the request, and stores
// nothing.
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
	// Patches are evaluated in this order.
	Patches []model.SyncPatch `json:"patches,omitempty"`
	// Disabled says why the resource of the object is not synced. If it is not empty, every patch is skipped for
	// this reason.
	Disabled string `json:"disabled,omitempty"`
	// OneWay means that the object is synced from the host to the tenant cluster only, so that there is no way back to check.
	OneWay bool `json:"oneWay,omitempty"`
	// Object is the object to patch. It is not changed.
	Object map[string]any `json:"object"`
	// Context is what patches can use in addition to the object.
	Context Context `json:"context"`
	// Checks are model.CheckRoundTrip and model.CheckFixpoint.
	Checks []string `json:"checks,omitempty"`
}

// Context is what patches can use in addition to the object. Source: Spec 2.8 rule 5.
type Context struct {
	// Tenant is the tenant cluster.
	Tenant Tenant `json:"tenant"`
	// HostObject is the object on the host. Nil means that there is none.
	HostObject map[string]any `json:"hostObject,omitempty"`
	// VirtualObject is the object in the tenant cluster. Nil means that there is none.
	VirtualObject map[string]any `json:"virtualObject,omitempty"`
	// References say which objects of the tenant cluster the names on the host stand for.
	References []model.SyncPatchObjectReference `json:"references,omitempty"`
}

// Tenant is the tenant cluster, as expressions see it. Source: Spec 2.8 rule 5.
type Tenant struct {
	// Name is the name of the tenant cluster.
	Name string `json:"name,omitempty"`
	// Namespace is its namespace on the host.
	Namespace string `json:"namespace,omitempty"`
	// Config is its configuration. Expressions see it merged with defaults.
	Config map[string]any `json:"config,omitempty"`
}

// Result is the outcome of an evaluation.
type Result struct {
	// Object is the object after all patches; with an Error, as it was in the request.
	Object map[string]any `json:"object"`
	// Patches say what each patch did, in their order.
	Patches []model.SyncPatchTrace `json:"patches,omitempty"`
	// References are the objects that the reference patches found, each once.
	References []model.SyncPatchObjectReference `json:"references,omitempty"`
	// Error says why the evaluation ended early, or is nil.
	Error *model.SyncPatchError `json:"error,omitempty"`
	// Checks are the results of the checks of the request, in their order.
	Checks []model.SyncPatchCheck `json:"checks,omitempty"`
}

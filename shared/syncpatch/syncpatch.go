// Package syncpatch changes objects on their way between a tenant cluster and its host cluster, by the
// patches of a tenant admin: paths, expressions, references and labels. It tells of every patch what it did
// at every path, or why it did nothing. Source: Spec 2.8; ADR-0013.
//
// Evaluate runs in the process of its caller. The package worker runs it in one that can be ended from
// outside, which is the only way to bound what a foreign expression costs. Nothing is read but the request,
// and nothing is stored.
package syncpatch

import "management.platform.sh/shared/model"

// Request is one object, the patches, and the direction in which it goes. It is JSON on its way to a worker;
// Object and the values of Context hold what apimachinery makes of JSON: map[string]any, []any, string,
// int64, float64, bool and nil.
type Request struct {
	// Direction is model.TenantToHost or model.HostToTenant. Empty means TenantToHost.
	Direction string `json:"direction,omitempty"`
	// NamespaceMode is model.SingleNamespace or model.MultiNamespace. Empty means SingleNamespace.
	NamespaceMode string `json:"namespaceMode,omitempty"`
	// ClusterDomain is the domain of the host cluster. Empty means cluster.local.
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// Patches are evaluated in this order.
	Patches []model.SyncPatch `json:"patches,omitempty"`
	// Disabled is why the resource of the object is not synced at all. Not empty, every patch is skipped for
	// this reason.
	Disabled string `json:"disabled,omitempty"`
	// Object is the object. It is not changed.
	Object map[string]any `json:"object"`
	// Context is what patches know beside the object.
	Context Context `json:"context"`
	// Checks are model.CheckRoundTrip and model.CheckFixpoint.
	Checks []string `json:"checks,omitempty"`
}

// Context is what patches know beside the object. Source: Spec 2.8 rule 5.
type Context struct {
	// Tenant is the tenant cluster.
	Tenant Tenant `json:"tenant"`
	// HostObject is the object on the host. Nil means that there is none.
	HostObject map[string]any `json:"hostObject,omitempty"`
	// VirtualObject is the object in the tenant cluster. Nil means that there is none.
	VirtualObject map[string]any `json:"virtualObject,omitempty"`
	// References say what the names on the host stand for.
	References []model.SyncPatchObjectReference `json:"references,omitempty"`
}

// Tenant is the tenant cluster, as expressions see it. Source: Spec 2.8 rule 5.
type Tenant struct {
	// Name is the name of the tenant cluster.
	Name string `json:"name,omitempty"`
	// Namespace is its namespace on the host.
	Namespace string `json:"namespace,omitempty"`
	// Config is its configuration. Nil means an empty object.
	Config map[string]any `json:"config,omitempty"`
}

// Result is what became of the object.
type Result struct {
	// Object is the object after all patches; with an Error, as it was in the request.
	Object map[string]any `json:"object"`
	// Patches tell what each patch did, in their order.
	Patches []model.SyncPatchTrace `json:"patches,omitempty"`
	// References are the objects that the reference patches found, each once.
	References []model.SyncPatchObjectReference `json:"references,omitempty"`
	// Error is why the evaluation ended early, or nil.
	Error *model.SyncPatchError `json:"error,omitempty"`
	// Checks are the answers to the checks of the request, in their order.
	Checks []model.SyncPatchCheck `json:"checks,omitempty"`
}

// Package syncpatch changes objects on their way between a tenant cluster and its host cluster, by the
// patches of a tenant admin: paths, expressions, references and labels. It tells of every patch what it did
// at every path, or why it did nothing. Source: Spec 2.8; ADR-0013.
//
// Evaluate runs in the process of its caller. The package worker runs it in one that can be ended from
// outside, which is the only way to bound what a foreign expression costs. Nothing is read but the request,
// and nothing is stored.
package syncpatch

import (
	"time"

	"management.platform.sh/shared/model"
)

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

	names names
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

// Limits bound what an evaluation costs. 0 means the one of DefaultLimits. Source: ADR-0013.
type Limits struct {
	// Expression is the time for one expression at one path.
	Expression time.Duration `json:"expression,omitempty"`
	// Object is the time for all patches of an object, checks included.
	Object time.Duration `json:"object,omitempty"`
	// Memory is what an evaluation may use, in bytes. Only a worker can hold it.
	Memory int64 `json:"memory,omitempty"`
	// Result is the size of the result of one expression, and by how much all patches together may make the
	// object grow, in bytes of JSON.
	Result int64 `json:"result,omitempty"`
	// Depth is how deep calls may be nested, and how deep a result.
	Depth int `json:"depth,omitempty"`
	// Trace is the size of the trace, in bytes. What is beyond it is left out, and counted.
	Trace int64 `json:"trace,omitempty"`
}

// DefaultLimits returns 100 ms for an expression, 1 s for an object, 64 MiB of memory, 1 MiB for a result and
// for the trace, and depth 200. Source: ADR-0013.
func DefaultLimits() Limits {
	return Limits{
		Expression: 100 * time.Millisecond,
		Object:     time.Second,
		Memory:     64 << 20,
		Result:     1 << 20,
		Depth:      200,
		Trace:      1 << 20,
	}
}

// WithDefaults fills in what is 0.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	if l.Expression > 0 {
		d.Expression = l.Expression
	}
	if l.Object > 0 {
		d.Object = l.Object
	}
	if l.Memory > 0 {
		d.Memory = l.Memory
	}
	if l.Result > 0 {
		d.Result = l.Result
	}
	if l.Depth > 0 {
		d.Depth = l.Depth
	}
	if l.Trace > 0 {
		d.Trace = l.Trace
	}
	return d
}

// EvaluationError is why a patch failed at a path: its expression threw, gave what is no JSON or passed a
// limit, or the value is not what the patch needs.
type EvaluationError struct {
	// Message says what is wrong. After a limit it names the limit.
	Message string
	// Line and Column are the position in the expression, from 1. 0 means not known.
	Line, Column int
}

// Error returns the message.
func (e *EvaluationError) Error() string { return e.Message }

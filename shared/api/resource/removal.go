package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Removal is an object that was removed from the state.
type Removal struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	UID             types.UID
	// Consequence tells that no request named the object: its owners are gone, or its grace period is over.
	Consequence bool
}

type (
	removals     struct{}
	consequences struct{}
)

// ObserveRemovals returns a context in which operations report each object that they remove, for the audit. They call report
// until they return, from one goroutine at a time. Results cannot contain the removals: a get, a list and a refused create
// remove objects too, and so does an operation that fails half-way. Source: ADR-0016.
func ObserveRemovals(ctx context.Context, report func(Removal)) context.Context {
	return context.WithValue(ctx, removals{}, report)
}

// consequently returns a context whose removals are consequences.
func consequently(ctx context.Context) context.Context {
	return context.WithValue(ctx, consequences{}, true)
}

// Removed reports a removal to the observer of the context. The operations of this package do that themselves.
func (r *Registry[T]) Removed(ctx context.Context, object T) {
	if report, ok := ctx.Value(removals{}).(func(Removal)); ok {
		report(Removal{
			Resource: r.Definition.Resource, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
			Consequence: ctx.Value(consequences{}) != nil,
		})
	}
}

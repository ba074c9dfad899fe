package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Removal is an object that is gone from the state.
type Removal struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	UID             types.UID
	// Consequence tells that a request did not ask for it: its owners are gone, or its grace period is over.
	Consequence bool
}

type (
	removals     struct{}
	consequences struct{}
)

// ObserveRemovals returns a context whose operations tell of each object that they have removed, for the audit.
// Tell may be called at any time until they return, by one goroutine at a time. Source: ADR-0016.
func ObserveRemovals(ctx context.Context, tell func(Removal)) context.Context {
	return context.WithValue(ctx, removals{}, tell)
}

// consequently returns a context whose removals are consequences.
func consequently(ctx context.Context) context.Context {
	return context.WithValue(ctx, consequences{}, true)
}

// Removed tells whoever observes that an object is gone. Operations of this package do it themselves.
func (r *Registry[T]) Removed(ctx context.Context, object T) {
	if tell, ok := ctx.Value(removals{}).(func(Removal)); ok {
		tell(Removal{
			Resource: r.Definition.Resource, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
			Consequence: ctx.Value(consequences{}) != nil,
		})
	}
}

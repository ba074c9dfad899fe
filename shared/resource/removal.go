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
}

type removals struct{}

// ObserveRemovals returns a context whose operations tell of each object that they have removed, for the audit of
// schedules. Tell may be called at any time until they return, by one goroutine at a time. Source: ADR-0016.
func ObserveRemovals(ctx context.Context, tell func(Removal)) context.Context {
	return context.WithValue(ctx, removals{}, tell)
}

// removed tells whoever observes.
func (r *Registry[T]) removed(ctx context.Context, object Object) {
	if tell, ok := ctx.Value(removals{}).(func(Removal)); ok {
		tell(Removal{Resource: r.Resource, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()})
	}
}

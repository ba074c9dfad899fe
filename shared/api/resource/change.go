package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Change is an object that was created, updated or deleted in the state.
type Change struct {
	// Verb is create, update or delete.
	Verb            string
	Resource        schema.GroupVersionResource
	Namespace, Name string
	UID             types.UID
	// Object is the object as it is stored, for reading. Nil: the object was deleted.
	Object runtime.Object
	// Consequence reports whether no request named a deleted object: its owners are gone, or its grace period is over.
	Consequence bool
}

type (
	removals     struct{}
	writes       struct{}
	consequences struct{}
)

// ObserveRemovals returns a context in which operations report each object that they delete, for the audit. They call report
// until they return, from one goroutine at a time. Results cannot contain the removals: a get, a list and a refused create
// remove objects too, and so does an operation that fails half-way. Source: ADR-0016.
func ObserveRemovals(ctx context.Context, report func(Change)) context.Context {
	return context.WithValue(ctx, removals{}, report)
}

// ObserveWrites is ObserveRemovals for each object that operations create or update. It is for programs that serve no request,
// whose event would say the same. Source: ADR-0047.
func ObserveWrites(ctx context.Context, report func(Change)) context.Context {
	return context.WithValue(ctx, writes{}, report)
}

// withConsequences returns a context whose removals are consequences.
func withConsequences(ctx context.Context) context.Context {
	return context.WithValue(ctx, consequences{}, true)
}

// Removed reports a removal to the observer of the context. The operations of this package do that themselves.
func (r *Registry[T]) Removed(ctx context.Context, object T) {
	if report, ok := ctx.Value(removals{}).(func(Change)); ok {
		change := r.newChange("delete", object)
		change.Consequence = ctx.Value(consequences{}) != nil
		report(change)
	}
}

// reportWrite reports a write to the observer of the context.
func (r *Registry[T]) reportWrite(ctx context.Context, verb string, object T) {
	if report, ok := ctx.Value(writes{}).(func(Change)); ok {
		change := r.newChange(verb, object)
		change.Object = object.DeepCopyObject()
		report(change)
	}
}

func (r *Registry[T]) newChange(verb string, object T) Change {
	return Change{
		Verb: verb, Resource: r.Definition.Resource, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

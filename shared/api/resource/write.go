package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Write is an object that was created or updated in the state.
type Write struct {
	// Verb is create or update.
	Verb            string
	Resource        schema.GroupVersionResource
	Namespace, Name string
	UID             types.UID
	// Object is the object as it is stored, for reading.
	Object runtime.Object
}

type writes struct{}

// ObserveWrites returns a context in which operations report each object that they create or update, for the audit of a program
// that serves no request. They call report until they return, from one goroutine at a time. Source: ADR-0047.
func ObserveWrites(ctx context.Context, report func(Write)) context.Context {
	return context.WithValue(ctx, writes{}, report)
}

// wrote reports a write to the observer of the context.
func (r *Registry[T]) wrote(ctx context.Context, verb string, object T) {
	if report, ok := ctx.Value(writes{}).(func(Write)); ok {
		report(Write{
			Verb: verb, Resource: r.Definition.Resource, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
			Object: object.DeepCopyObject(),
		})
	}
}

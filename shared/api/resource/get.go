package resource

import (
	"context"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// GetInput is a request to read one object.
type GetInput struct {
	Caller          identity.Caller
	Namespace, Name string
	// Prefetched is the record of that name where authentication read it in the same round trip. Nil: Get reads it.
	Prefetched *store.Record
	// Reveal asks for secrets in clear. The frame has checked that the caller may have them.
	Reveal bool
}

// Get returns one object, without secrets. NotFound also for an object that the caller may not see.
// Source: ADR-0004.
func Get[T Object](ctx context.Context, r *Registry[T], in GetInput) (T, error) {
	if in.Prefetched == nil || in.Prefetched.Name != storeName(in.Namespace, in.Name) {
		object, _, err := r.Read(ctx, in.Caller, in.Namespace, in.Name)
		return object, err
	}
	return r.show(ctx, in.Caller, *in.Prefetched, in.Name)
}

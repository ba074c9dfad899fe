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
	// Prefetched has the record of that name where authentication read it in the same round trip, and records that its
	// status depends on. Get reads what is missing.
	Prefetched map[string]store.Record
	// Reveal asks for secrets in clear. The frame has checked that the caller may have them.
	Reveal bool
}

// Get returns one object, without secrets. NotFound also for an object that the caller may not see.
// Source: ADR-0004.
func Get[T Object](ctx context.Context, r *Registry[T], in GetInput) (T, error) {
	record, known := in.Prefetched[storeName(in.Namespace, in.Name)]
	if !known {
		object, _, err := r.Read(ctx, in.Caller, in.Namespace, in.Name)
		return object, err
	}
	return r.show(ctx, in.Caller, record, in.Name, in.Prefetched)
}

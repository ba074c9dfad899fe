package resource

import (
	"context"

	"management.platform.sh/shared/identity"
)

// GetInput is a request to read one object.
type GetInput struct {
	Caller          identity.Caller
	Namespace, Name string
}

// Get returns one object, without secrets. NotFound also for an object that the caller may not see.
// Source: ADR-0004.
func Get[T Object](ctx context.Context, r *Registry[T], in GetInput) (T, error) {
	object, _, err := r.read(ctx, in.Caller, in.Namespace, in.Name)
	return object, err
}

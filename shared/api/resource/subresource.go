package resource

import (
	"io"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// SubresourceInput is a request to create at a subresource of an object. The answer is not stored.
type SubresourceInput[O Object] struct {
	// Caller is the caller of the request.
	Caller          identity.Caller
	Namespace, Name string
	// Prefetched is as in GetInput.
	Prefetched map[string]store.Record
	// Object is what the caller sent. Its name and namespace are empty or as in the request.
	Object O
	// Manager owns the fields that are written. Empty: unknown.
	Manager string
	// DryRun does everything that has no effect.
	DryRun bool
	// Random is as in CreateInput.
	Random io.Reader
}

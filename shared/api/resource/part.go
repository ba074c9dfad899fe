package resource

import (
	"io"

	"management.platform.sh/shared/model/identity"
)

// PartInput is a request to make something of one object that is answered and not stored as an object of its own.
type PartInput[O Object] struct {
	// Caller is who asks.
	Caller          identity.Caller
	Namespace, Name string
	// Object is what the caller sent; its name and namespace are those of the request or empty.
	Object O
	// Manager is who owns the fields that are written. Empty: unknown.
	Manager string
	// DryRun does everything but what has an effect.
	DryRun bool
	// Random is that of CreateInput.
	Random io.Reader
}

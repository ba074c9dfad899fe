// Package platform is the world of a process: its state, clock, random source, keys, log and configuration, which kinds
// and operations are opened with. Settings are plain values. It knows no kind of object and no HTTP.
// Source: Spec 7; ADR-0019.
package platform

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Environment is where operations run: the state and the world around it. Fields are set once, before the first use; it
// is safe for concurrent use after.
type Environment struct {
	// Stores returns the state of a resource, by its plural name. It does not connect yet.
	Stores func(resource string) store.Store
	// Now is the clock.
	Now func() time.Time
	// Random is where names and keys come from.
	Random io.Reader
	// Encryption returns the keys that seal secrets in the state. nil: there are none.
	Encryption func(context.Context) (*encryption.Keyring, error)
	// Log takes what goes wrong beside an answer.
	Log *slog.Logger
	// Config is the platform configuration of this moment. It is never nil, and its result is not to be changed.
	Config func() *model.ConfigStatus
	// Version is the build, for /version.
	Version string
	// Edition is what of the platform is in use: settings.Enterprise or settings.Community. Empty means the former.
	Edition string
	// LocalSigners permits virtual clusters that sign certificates at addresses that only mean something on this machine:
	// the local runner and tests. Source: ADR-0017.
	LocalSigners bool
	// Patches bound the evaluation of sync patches.
	Patches settings.Patches
	// Tokens say how direct cluster endpoint tokens are issued.
	Tokens settings.Tokens

	singles singles
}

// Keyring returns the keys that seal secrets in the state. Without any it is nil, and sealing with that fails.
func (e *Environment) Keyring(ctx context.Context) (*encryption.Keyring, error) {
	if e.Encryption == nil {
		return nil, nil //nolint:nilnil // a nil ring is one without keys
	}
	return e.Encryption(ctx)
}

// Project returns the project of a namespace; empty for a namespace that belongs to none. Source: Spec 2.7
// (projectNamespacePrefix), 8.
func (e *Environment) Project(namespace string) string {
	prefix := cmp.Or(e.Config().ProjectNamespacePrefix, model.DefaultProjectNamespacePrefix)
	project, ok := strings.CutPrefix(namespace, prefix)
	if !ok {
		return ""
	}
	return project
}

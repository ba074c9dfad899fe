// Package platform is the environment of a process: its state, clock, random source, keys, log and configuration. Kinds
// and operations are opened with it. Settings are plain values. The package knows no kind of object and no HTTP.
// Source: Spec 7; ADR-0019.
package platform

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Environment is the environment in which operations run. Fields are set once, before the first use; after that it is
// safe for concurrent use.
type Environment struct {
	// Stores returns the state of a resource, by its plural name. It does not connect yet.
	Stores func(resource string) store.Store
	// Now is the clock.
	Now func() time.Time
	// Random is the source of randomness for names and keys.
	Random io.Reader
	// Encryption returns the keys that seal secrets in the state. nil: the process has no keys.
	Encryption func(context.Context) (*encryption.Keyring, error)
	// Log receives errors that do not change a response.
	Log *slog.Logger
	// Config returns the current platform configuration. It is never nil, and callers must not change its result.
	Config func() *model.ConfigStatus
	// Version is the build, for /version.
	Version string
	// Edition is the edition of the platform: settings.Enterprise or settings.Community. Empty means Enterprise.
	Edition string
	// DeviceLogin reports whether people can sign in with the code of a device: settings.On or settings.Off. Empty means On.
	DeviceLogin string
	// Probe reports whether a canary is probed on a schedule: settings.On or settings.Off. Empty means Off.
	Probe string
	// UnsignedSAML reports whether a connector of the configuration may accept SAML responses without a signature: settings.On or
	// settings.Off. Empty means Off. Source: ADR-0038.
	UnsignedSAML string
	// LocalSigners permits virtual clusters whose signer has an address that is only valid on this machine. The runner on a
	// loopback address and tests set it. Source: ADR-0017, ADR-0050.
	LocalSigners bool
	// Endpoints replace public addresses of connectors. The zero value replaces none.
	Endpoints Endpoints
	// Patches bound the evaluation of sync patches.
	Patches settings.Patches
	// Tokens say how direct cluster endpoint tokens are issued.
	Tokens settings.Tokens
	// AuditEvents opens the data store of the audit for reading, for one request. nil: this process has no audit.
	AuditEvents func() (audit.Reader, error)
	// Quota bounds the objects of each owner, for each kind. The zero value sets no bound.
	Quota store.Quota

	singles singles
}

// Keyring returns the keys that seal secrets in the state. If none are configured, it returns nil: sealing then fails.
func (e *Environment) Keyring(ctx context.Context) (*encryption.Keyring, error) {
	if e.Encryption == nil {
		return nil, nil //nolint:nilnil // a nil ring is one without keys
	}
	return e.Encryption(ctx)
}

// Project returns the project of a namespace; empty if the namespace belongs to no project. Source: Spec 2.7
// (projectNamespacePrefix), 8.
func (e *Environment) Project(namespace string) string {
	project, ok := strings.CutPrefix(namespace, e.ProjectNamespace(""))
	if !ok {
		return ""
	}
	return project
}

// ProjectNamespace returns the namespace of a project. Source: Spec 2.7 (projectNamespacePrefix), 8.
func (e *Environment) ProjectNamespace(project string) string {
	return cmp.Or(e.Config().ProjectNamespacePrefix, model.DefaultProjectNamespacePrefix) + project
}

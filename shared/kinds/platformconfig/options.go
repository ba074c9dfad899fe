package platformconfig

import (
	"context"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Options say where a configuration comes from.
type Options struct {
	// File is a YAML file. Empty: the state holds the configuration.
	File string
	// Store is the state of configs. It is not used if there is a file.
	Store store.Store
	// Keyring returns the keys that secrets are sealed with. nil: the process has no keys.
	Keyring func(context.Context) (*encryption.Keyring, error)
	// FileLimits has how the limits of files were lowered, for processes that start later. nil: a process applies the limits that
	// it starts with at once. Source: ADR-0024.
	FileLimits store.Store
	// Lookup returns environment variables, for placeholders. nil: no variable is set.
	Lookup func(string) (string, bool)
	// Variables begins the names of the variables that placeholders can name. Empty: DefaultVariables.
	Variables string
	// Keys are the access keys, from which a write learns which callers it locks out. nil: it names none.
	Keys func() *accesskey.Registry
	// Sinks returns what of a new configuration of the audit cannot record events, in comparison with the earlier one, which
	// may be nil. nil: sinks are not checked. Set it before the first write.
	Sinks func(ctx context.Context, was, next *model.ConfigAudit, path *field.Path) field.ErrorList
	// Issuer returns the scopes that an issuer of tokens supports, as far as it says so, or an error if it cannot be reached. Roots is the
	// content of its caFile. nil: issuers are not checked.
	Issuer func(ctx context.Context, provider *model.OIDCProvider, roots []byte) (scopes []string, err error)
	// Now is the clock.
	Now func() time.Time
	// Random is the source of the uid.
	Random io.Reader
	// Log receives what happens to new versions.
	Log *slog.Logger
	// Report counts outcomes, with the revision in effect. nil: outcomes are not counted.
	Report func(outcome string, revision int64)
}

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

// Options say where a configuration comes from, and what a process needs to load and to write it. Set them before the first
// request: they are read without a lock.
type Options struct {
	// File is the path of a YAML file. Empty: the configuration is in the state.
	File string
	// Store is the state of configs. A configuration that comes from a file does not use it.
	Store store.Store
	// Keyring returns the keys that seal secrets. Nil: the process has no keys.
	Keyring func(context.Context) (*encryption.Keyring, error)
	// FileLimits is the state that has how the limits of a file were lowered, for processes that start later. Nil: a process
	// applies the limits that it starts with at once. Source: ADR-0024.
	FileLimits store.Store
	// Lookup returns environment variables, for placeholders. Nil: no variable is set.
	Lookup func(string) (string, bool)
	// Variables is the prefix of the names of variables that placeholders can name. Empty: DefaultVariables.
	Variables string
	// Keys returns the access keys, by which a write finds the callers that it locks out. Nil: a write finds none.
	Keys func() *accesskey.Registry
	// Sinks returns a problem for each sink of the next audit configuration that cannot record events, if the earlier
	// configuration does not have the sink. Earlier may be nil. Nil: sinks are not checked.
	Sinks func(ctx context.Context, earlier, next *model.ConfigAudit, path *field.Path) field.ErrorList
	// Issuer returns the scopes that an issuer of tokens supports, as far as its metadata lists them, or an error if the issuer
	// cannot be reached. Roots is the content of the provider's caFile. Nil: issuers are not checked.
	Issuer func(ctx context.Context, provider *model.OIDCProvider, roots []byte) (scopes []string, err error)
	// Now is the clock.
	Now func() time.Time
	// Random is the source of the uid.
	Random io.Reader
	// Log receives a line for each new version, and for each one that is refused.
	Log *slog.Logger
	// Report counts the outcomes of checks for a new version, with the revision in effect. Nil: outcomes are not counted.
	Report func(outcome string, revision int64)
}

// FromFile reports whether the configuration comes from a file. Such a configuration cannot be written through the API.
func (o *Options) FromFile() bool { return o.File != "" }

// Package process makes a server from settings: the environment that operations are opened with, and what serves them. It
// is the one way to do so; shells hand in what differs between them. Secrets come by reference where the platform can hold
// them. Nothing connects before the first request needs it: a function that is started for a 404 costs no round trip.
// Source: Spec 7; ADR-0010, ADR-0019.
package process

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// World is what a shell hands in beside the settings.
type World struct {
	// Stores returns the state of a resource, by its plural name.
	Stores func(resource string) store.Store
	// Encryption returns the keys that seal secrets in the state. nil: there are none.
	Encryption func(context.Context) (*encryption.Keyring, error)
	// Log takes what happens.
	Log *slog.Logger
	// Lookup returns environment variables, for placeholders in the configuration. nil: there are none.
	Lookup func(name string) (string, bool)
	// LocalSigners is that of platform.Environment.
	LocalSigners bool
	// Metrics counts. nil: nothing is counted.
	Metrics frame.Metrics
	// Tracer makes spans. nil: there are none.
	Tracer trace.Tracer
}

// New returns a server, without an audit. Its configuration has not been loaded yet.
func New(s settings.Settings, world World) *frame.Server {
	options := platformconfig.Options{
		File: s.Config, Store: world.Stores(platformconfig.Definition.Resource.Resource), Keyring: world.Encryption,
		Lookup: world.Lookup, Now: time.Now, Random: rand.Reader, Log: world.Log,
	}
	if world.Metrics != nil {
		options.Report = world.Metrics.Configuration
	}
	source := platformconfig.New(options)
	env := &platform.Environment{
		Stores: world.Stores, Now: time.Now, Random: rand.Reader, Encryption: world.Encryption, Log: world.Log,
		Version: s.Version, Edition: s.Edition, LocalSigners: world.LocalSigners, Patches: s.Patches, Tokens: s.Tokens,
	}
	platformconfig.Use(env, source)
	server := NewServer(env)
	server.Configuration, server.Metrics, server.Tracer = source, world.Metrics, world.Tracer
	server.Watch = frame.WatchSettings{Window: s.Watch.Window}
	return server
}

// NewServer returns a server of an environment that authenticates with its access keys. It has no audit, no metrics, no
// spans, and nothing that refreshes the configuration.
func NewServer(env *platform.Environment) *frame.Server {
	return &frame.Server{Env: env, Authenticator: accesskey.OpenAuthenticator(env)}
}

// Package process builds a server from settings: the environment that operations are opened with, and the frame that serves
// them. All shells use it, and pass in what differs between them. Secrets are passed by reference if the platform can
// store them. A process opens no connection before a request needs it: a function that is started for a 404 costs no round
// trip. Source: Spec 7; ADR-0010, ADR-0019.
package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/runs"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// World contains what a shell passes in besides the settings.
type World struct {
	// Stores returns the state of a resource, by its plural name.
	Stores func(resource string) store.Store
	// Encryption returns the keys that encrypt secrets in the state. Nil: there are none.
	Encryption func(context.Context) (*encryption.Keyring, error)
	// Log receives the log lines of the server.
	Log *slog.Logger
	// Lookup returns environment variables, for placeholders in the configuration. Nil: there are none.
	Lookup func(name string) (string, bool)
	// LocalSigners has the same meaning as in platform.Environment.
	LocalSigners bool
	// Metrics counts requests, watches and runs. Nil: nothing is counted.
	Metrics frame.Metrics
	// Tracer creates spans. Nil: there are no spans.
	Tracer trace.Tracer
}

// New returns a server without an audit. It does not load the configuration yet.
func New(s settings.Settings, world World) *frame.Server {
	options := platformconfig.Options{
		File: s.Config, Store: world.Stores(platformconfig.Definition.Resource.Resource), Keyring: world.Encryption,
		FileLimits: world.Stores(platformconfig.FileLimits),
		Lookup:     world.Lookup, Variables: s.ConfigVariables, Issuer: issuers{world.LocalSigners}.reach, Now: time.Now, Random: rand.Reader, Log: world.Log,
	}
	if world.Metrics != nil {
		options.Report = world.Metrics.Configuration
	}
	current := platformconfig.New(options)
	env := &platform.Environment{
		Stores: world.Stores, Now: time.Now, Random: rand.Reader, Encryption: world.Encryption, Log: world.Log,
		Version: s.Version, Edition: s.Edition, DeviceLogin: s.DeviceLogin, Probe: s.Probe, UnsignedSAML: s.UnsignedSAML, LocalSigners: world.LocalSigners, Patches: s.Patches, Tokens: s.Tokens,
		Quota: store.Quota{Objects: int64(s.Quota.Objects), Bytes: s.Quota.Bytes},
	}
	platformconfig.Use(env, current)
	server := NewServer(env)
	server.Configuration, server.Metrics, server.Tracer = current, world.Metrics, world.Tracer
	server.Notes = func() store.Store { return world.Stores(runs.Resource) }
	server.Watch = frame.WatchSettings{Window: s.Watch.Window}
	server.Proxies = s.Proxies
	server.Places = places(s, world.Metrics)
	server.Rates = fairness.Rates{
		Callers:   fairness.NewRate("requests", s.Rates.Requests, world.Metrics),
		Anonymous: fairness.NewRate("anonymous requests", s.Rates.Anonymous, world.Metrics),
		Failures:  fairness.NewRate("failed authentications", s.Rates.Failures, world.Metrics),
	}
	return server
}

// places returns the limits on what a process serves at a time.
func places(s settings.Settings, observer fairness.Observer) *fairness.Places {
	// One caller leaves at least one worker to the other callers.
	perCaller := max(1, s.Patches.Workers-1)
	// The remaining connections are for authenticated callers; half of these are for other addresses.
	connections := cmp.Or(s.Redis.PoolSize, settings.DefaultPoolSize)
	// One processor is left to cheap requests.
	heavy := max(1, processors()-1)
	return fairness.New(map[fairness.Class]fairness.Bound{
		fairness.Authentications: {Total: max(1, connections*3/4), PerCaller: max(1, connections/2), Waiting: limits.WaitingRequests},
		fairness.Requests:        {Total: s.Shares.Requests, PerCaller: s.Shares.RequestsPerCaller, Waiting: limits.WaitingRequests},
		fairness.Kubeconfigs:     {Total: max(1, s.Shares.Requests/2), PerCaller: max(1, s.Shares.RequestsPerCaller/2), Waiting: limits.WaitingLarge},
		fairness.Lists:           {Total: s.Shares.Lists, PerCaller: s.Shares.ListsPerCaller, Waiting: limits.WaitingLarge},
		fairness.Bodies:          {Total: limits.LargeBodies, PerCaller: limits.LargeBodiesPerCaller, Waiting: limits.WaitingLarge},
		fairness.Heavy:           {Total: heavy, PerCaller: max(1, heavy/2), Waiting: limits.WaitingLarge},
		fairness.Evaluations:     {Total: s.Patches.Workers, PerCaller: perCaller, Waiting: limits.WaitingLarge, Spare: limits.SpareEvaluations},
		fairness.Watches:         {Total: s.Shares.Watches, PerCaller: s.Shares.WatchesPerCaller},
	}, observer)
}

// NewServer returns a server for an environment. The server authenticates callers with the access keys of the environment.
// It has no audit, no metrics and no spans, and does not refresh the configuration.
func NewServer(env *platform.Environment) *frame.Server {
	return &frame.Server{Env: env, Authenticator: accesskey.OpenAuthenticator(env)}
}

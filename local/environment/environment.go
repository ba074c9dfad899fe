// Package environment makes what functions of this process run in.
package environment

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// New returns the server of all functions of this process, without an audit.
func New(
	client *redisstore.Client, log *slog.Logger, file string, ring *encryption.Keyring, registry prometheus.Registerer, version string,
) *frame.Server {
	counters := metrics.New(registry)
	keyring := func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	source := platformconfig.New(platformconfig.Options{
		File:    file,
		Store:   client.Resource(platformconfig.Definition.Resource.Resource),
		Keyring: keyring,
		Lookup:  os.LookupEnv,
		Now:     time.Now,
		Random:  rand.Reader,
		Log:     log,
		Report:  counters.Configuration,
	})
	env := &platform.Environment{
		Stores:     client.Resource,
		Now:        time.Now,
		Random:     rand.Reader,
		Encryption: keyring,
		Log:        log,
		Version:    version,
	}
	platformconfig.Use(env, source)
	server := process.NewServer(env)
	server.Configuration, server.Metrics, server.Tracer = source, counters, otel.Tracer("management.platform.sh")
	return server
}

package process

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// Shell is what a shell passes to Open.
type Shell struct {
	// Log receives the log lines, as JSON.
	Log io.Writer
	// Annotate returns attributes for the log lines of a request or a run. Nil: there are none.
	Annotate func(context.Context) []slog.Attr
	// Streams reports whether responses can be streamed.
	Streams bool
	// Metrics returns the counter of requests, watches and runs. It is called if PLATFORM_METRICS asks for metrics.
	// Nil: nothing is counted.
	Metrics func() frame.Metrics
}

// Open builds a server from environment variables, which lookup returns by name. The server has no spans and no audit.
// Errors name each wrong variable, and never quote a value.
func Open(lookup func(string) string, shell Shell) (*frame.Server, error) {
	s, wrong := settings.Read(lookup)
	stores, noState := openStores(s)
	keyring, noKeyring := openKeyring(s)
	if err := errors.Join(wrong, noState, noKeyring); err != nil {
		return nil, err
	}
	var metrics frame.Metrics
	if shell.Metrics != nil && s.Metrics == settings.EmbeddedMetrics {
		metrics = shell.Metrics()
	}
	var lines slog.Handler = slog.NewJSONHandler(shell.Log, &slog.HandlerOptions{Level: s.LogLevel})
	if shell.Annotate != nil {
		lines = annotated{lines, shell.Annotate}
	}
	log := slog.New(lines)
	server := New(s, World{
		Stores: stores, Encryption: keyring, Log: log, Metrics: metrics, Lookup: placeholders(lookup, fetcher(s.Extension), log),
	})
	if current := platformconfig.Open(server.Env); current.FromFile() {
		// Only a file is read now. The state is not read before the first request.
		if err := current.Reload(context.Background()); err != nil {
			return nil, s.Wrong(settings.Config, err)
		}
	}
	if server.Watch.Window == 0 && !shell.Streams {
		server.Watch.Window = settings.WatchWindowWithoutStreams
	}
	return server, nil
}

// Streams reports whether PLATFORM_STREAM asks for streamed responses. It returns false if the variable is not set or
// invalid.
func Streams(lookup func(string) string) bool {
	s, err := settings.ReadOnly(lookup, nil, settings.Stream)
	return err == nil && s.Stream
}

// openStores returns a function that returns the store of a resource. If the URL of the state is in a secret, the state
// is opened at the first use. An absent URL is no error here: settings.Read reports it.
func openStores(s settings.Settings) (func(string) store.Store, error) {
	options := redisstore.Options{
		PoolSize: s.Redis.PoolSize, Replicas: s.Redis.Replicas, Timeout: s.Redis.Timeout,
	}
	switch {
	case s.Redis.URL != "":
		client, err := redisstore.Open(s.Redis.URL.Reveal(), options)
		if err != nil {
			return nil, s.Wrong(s.Redis.URLFrom, err)
		}
		return client.Resource, nil
	case s.Redis.Secret != "":
		fetch := fetcher(s.Extension)
		client, err := redisstore.OpenLate(settings.RedisURLSecret, func(ctx context.Context) (secret.String, error) {
			return fetch(ctx, s.Redis.Secret)
		}, options)
		if err != nil {
			return nil, s.Wrong(settings.RedisURLSecret, err)
		}
		return client.Resource, nil
	}
	return nil, nil
}

// annotated adds attributes to log lines that are written with a context.
type annotated struct {
	slog.Handler
	attrs func(context.Context) []slog.Attr
}

func (a annotated) Handle(ctx context.Context, record slog.Record) error {
	record.AddAttrs(a.attrs(ctx)...)
	return a.Handler.Handle(ctx, record)
}

func (a annotated) WithAttrs(attrs []slog.Attr) slog.Handler {
	return annotated{a.Handler.WithAttrs(attrs), a.attrs}
}

func (a annotated) WithGroup(name string) slog.Handler {
	return annotated{a.Handler.WithGroup(name), a.attrs}
}

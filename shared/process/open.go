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

// Open returns a server that is built from environment variables, which lookup returns by name, and that logs to out.
// Streams tells whether responses can be streamed. The server has no spans and no audit. Errors name each wrong variable,
// and never quote a value.
func Open(lookup func(string) string, out io.Writer, streams bool) (*frame.Server, error) {
	s, wrong := settings.Read(lookup)
	stores, noState := openStores(s)
	keyring, noKeyring := openKeyring(s)
	if err := errors.Join(wrong, noState, noKeyring); err != nil {
		return nil, err
	}
	server := New(s, World{
		Stores: stores, Encryption: keyring,
		Log: slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: s.LogLevel})),
		Lookup: func(name string) (string, bool) {
			value := lookup(name)
			return value, value != ""
		},
	})
	if source := platformconfig.Open(server.Env); source.FromFile() {
		// Only a file is read now: the state is not read before the first request.
		if err := source.Reload(context.Background()); err != nil {
			return nil, s.Wrong(settings.Config, err)
		}
	}
	if server.Watch.Window == 0 && !streams {
		server.Watch.Window = settings.WatchWindowWithoutStreams
	}
	return server, nil
}

// Streams tells whether PLATFORM_STREAM says that responses are streamed. If it is not set or invalid, they are not.
func Streams(lookup func(string) string) bool {
	s, err := settings.ReadOnly(lookup, nil, settings.Stream)
	return err == nil && s.Stream
}

// openStores returns a function that returns the state of a resource. If the URL of the state is in a secret, the state is
// opened at the first use. It does not report an absent URL, which settings.Read reports.
func openStores(s settings.Settings) (func(string) store.Store, error) {
	options := redisstore.Options{PoolSize: s.Redis.PoolSize, Replicas: s.Redis.Replicas, Timeout: s.Redis.Timeout}
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

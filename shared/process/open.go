package process

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// Open makes a server from variables, which lookup returns by name, and a log on out. Streams tells whether answers can be
// streamed. It makes no spans and has no audit. Errors name each variable that is wrong, and quote none.
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
		// The state is not asked before a request comes.
		if err := source.Reload(context.Background()); err != nil {
			return nil, s.Wrong(settings.Config, err)
		}
	}
	if server.Watch.Window == 0 && !streams {
		server.Watch.Window = settings.WatchWindowWithoutStreams
	}
	return server, nil
}

// Streams tells whether PLATFORM_STREAM says that answers are streamed. It does not when it is not set.
func Streams(lookup func(string) string) bool {
	s, err := settings.ReadOnly(lookup, nil, settings.Stream)
	return err == nil && s.Stream
}

// openStores opens the state, or returns what opens it at the first use where a secret must be asked for. It says nothing of
// a URL that is absent: settings.Read has.
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
		opening := &opening{fetch: fetcher(s.Extension), id: s.Redis.Secret, options: options}
		return func(resource string) store.Store { return &lazy{opening: opening, resource: resource} }, nil
	}
	return nil, nil
}

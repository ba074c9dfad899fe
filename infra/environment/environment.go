// Package environment makes the world that deployed functions run in from environment variables, which package settings
// lists. Secrets come by reference where the platform can hold them. Nothing connects before the first request needs it:
// a function that is started for a 404 costs no round trip.
// Source: Spec 7; ADR-0010.
package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// Open makes a server from variables, which lookup returns by name, and a log on out. Streams tells whether answers can be
// streamed. It makes no spans and has no audit. Errors name each variable that is wrong, and quote none.
func Open(lookup func(string) string, out io.Writer, streams bool) (*frame.Server, error) {
	s, wrong := settings.Read(lookup)
	stores, noState := stores(s)
	keyring, noKeyring := openKeyring(s)
	if err := errors.Join(wrong, noState, noKeyring); err != nil {
		return nil, err
	}
	log := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: s.LogLevel}))
	source := platformconfig.New(platformconfig.Options{
		File:    s.Config,
		Store:   stores(platformconfig.Definition.Resource.Resource),
		Keyring: keyring,
		Lookup: func(name string) (string, bool) {
			value := lookup(name)
			return value, value != ""
		},
		Now:    time.Now,
		Random: rand.Reader,
		Log:    log,
	})
	if source.FromFile() {
		// The state is not asked before a request comes.
		if err := source.Reload(context.Background()); err != nil {
			return nil, s.Wrong(settings.Config, err)
		}
	}
	window := s.Watch.Window
	if window == 0 && !streams {
		window = settings.WatchWindowWithoutStreams
	}
	env := &platform.Environment{
		Stores:     stores,
		Now:        time.Now,
		Random:     rand.Reader,
		Encryption: keyring,
		Log:        log,
		Version:    s.Version,
		Edition:    s.Edition,
		Patches:    s.Patches,
		Tokens:     s.Tokens,
	}
	platformconfig.Use(env, source)
	server := process.NewServer(env)
	server.Configuration, server.Watch = source, frame.WatchSettings{Window: window}
	return server, nil
}

// Streams tells whether PLATFORM_STREAM says that answers are streamed. It does not when it is not set.
func Streams(lookup func(string) string) bool {
	s, err := settings.ReadOnly(lookup, nil, settings.Stream)
	return err == nil && s.Stream
}

// stores opens the state, or returns what opens it at the first use where a secret must be asked for. It says nothing of
// a URL that is absent: settings.Read has.
func stores(s settings.Settings) (func(string) store.Store, error) {
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

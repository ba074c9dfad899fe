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

	"go.opentelemetry.io/otel/trace/noop"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// Open makes an environment from variables, which lookup returns by name, and a log on out. Streams tells whether
// answers can be streamed. Its tracer makes no spans. Errors name each variable that is wrong, and quote none.
func Open(lookup func(string) string, out io.Writer, streams bool) (*frame.Environment, error) {
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
			return nil, settings.Wrong(settings.Config, err)
		}
	}
	window := s.Watch.Window
	if window == 0 && !streams {
		window = settings.WatchWindowWithoutStreams
	}
	return &frame.Environment{
		Stores:     stores,
		Now:        time.Now,
		Random:     rand.Reader,
		Encryption: keyring,
		Log:        log,
		Config:     source.Current,
		Source:     source,
		Tracer:     noop.NewTracerProvider().Tracer(""),
		Version:    s.Version,
		Watch:      frame.WatchSettings{Window: window},
		Edition:    s.Edition,
		Patches:    frame.PatchSettings(s.Patches),
		Tokens:     frame.TokenSettings(s.Tokens),
	}, nil
}

// Streams tells whether PLATFORM_STREAM says that answers are streamed. It does not when it is not set.
func Streams(lookup func(string) string) bool {
	s, err := settings.ReadOnly(lookup, settings.Stream)
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
			return nil, settings.Wrong(s.Redis.URLFrom, err)
		}
		return client.Resource, nil
	case s.Redis.Secret != "":
		opening := &opening{fetch: fetcher(s.Extension), id: s.Redis.Secret, options: options}
		return func(resource string) store.Store { return &lazy{opening: opening, resource: resource} }, nil
	}
	return nil, nil
}

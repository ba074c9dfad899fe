// Package environment makes the world that deployed functions run in from environment variables; Variables lists
// them. Secrets come by reference where the platform can hold them. Nothing connects before the first request needs
// it: a function that is started for a 404 costs no round trip.
// Source: Spec 7; ADR-0010.
package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// ShortWindow is how long a watch lasts where answers cannot be streamed and PLATFORM_WATCH_WINDOW is absent.
const ShortWindow = 10 * time.Second

// Open makes an environment from variables, which lookup returns by name, and a log on out. Streams tells whether
// answers can be streamed. Its tracer makes no spans. Errors name each variable that is wrong, and quote none.
func Open(lookup func(string) string, out io.Writer, streams bool) (*frame.Environment, error) {
	s, wrong := read(lookup)
	stores, unopened := s.stores()
	if err := errors.Join(wrong, unopened); err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	log := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: s.level}))
	keyring := s.openKeyring()
	source := platformconfig.New(platformconfig.Options{
		File:    s.config,
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
			return nil, fmt.Errorf("%s: %w", config, err)
		}
	}
	window := s.window
	if window == 0 && !streams {
		window = ShortWindow
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
		Version:    s.version,
		Watch:      frame.WatchSettings{Window: window},
		Edition:    s.edition,
		Patches:    s.patches,
		Tokens:     s.tokens,
	}, nil
}

// Streams tells whether PLATFORM_STREAM says that answers are streamed. It does not when it is not set.
func Streams(lookup func(string) string) bool {
	streams, err := strconv.ParseBool(lookup(stream))
	return err == nil && streams
}

// stores opens the state, or what opens it at the first use where a secret must be asked for. It has nothing to say of a
// URL that is not there, which read has said.
func (s settings) stores() (func(string) store.Store, error) {
	if s.secretID == "" && s.url == "" {
		return nil, nil
	}
	if s.secretID == "" {
		client, err := redisstore.Open(s.url.Reveal(), s.redis)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.urlFrom, err)
		}
		return client.Resource, nil
	}
	opening := &opening{fetch: s.fetch, id: s.secretID, options: s.redis}
	return func(resource string) store.Store { return &lazy{opening: opening, resource: resource} }, nil
}

// Package runner serves every function of the catalog in one process over HTTPS. What it is not given it keeps in a data folder: a
// certificate authority, the state, an admin key and a kubeconfig. It runs the schedules, and applies a folder of objects. It is for
// trying the API, for tests, and for deployments that run processes. Source: ADR-0006, ADR-0050.
package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/local/admin"
	"management.platform.sh/local/flags"
	"management.platform.sh/local/state"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/process/memory"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

const (
	// configEvery is the interval at which the configuration is read.
	configEvery = time.Second
	// drain bounds how long requests may take to finish after SIGTERM and the shutdown delay.
	drain = 20 * time.Second
)

// Serve serves the API. Make it with New.
type Serve struct {
	flags.Settings
	// Ready is called once everything is served. It may be nil.
	Ready func() `kong:"-"`

	version string
}

// New returns the command with its flags, for a program of a version.
func New(version string) Serve { return Serve{Settings: flags.Serve(), version: version} }

// Run serves until the context ends, and then drains.
func (c *Serve) Run(ctx context.Context) (err error) {
	s, err := settings.ReadRunner(c.Lookup, c.InputName)
	if err == nil {
		err = s.CheckRunner()
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: s.LogLevel}))
	if s.Config != "" {
		// A wrong configuration is reported before anything is started.
		file := platformconfig.New(platformconfig.Options{
			File: s.Config, Lookup: os.LookupEnv, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err := file.Reload(ctx); err != nil {
			return s.Wrong(settings.Config, err)
		}
	}
	folder := s.Runner.Data
	if s.NeedsFolder() {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return s.Wrong(settings.Data, fmt.Errorf("making the folder: %w", err))
		}
		release, err := lockFolder(folder)
		if err != nil {
			return err
		}
		defer release()
	}
	redis, err := state.Open(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ring, err := state.OpenKeyring(s)
	if err != nil {
		return err
	}
	s.Version = c.version
	counters := metrics.New(registry)
	process.ShareProcessors()
	memory.CollectLessOften()
	api := process.New(s, process.World{
		Stores:     redis.Client.Resource,
		Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
		Log:        log,
		Lookup:     os.LookupEnv,
		// Virtual clusters of this machine have loopback addresses.
		LocalSigners: s.IsLocal(),
		Metrics:      counters,
		Tracer:       otel.Tracer("management.platform.sh"),
	})
	env := api.Env
	current := platformconfig.Open(env)
	if err := current.Reload(ctx); err != nil {
		return err
	}
	process.BeginAudit(api, process.Sinks{Metrics: counters, Openers: []audit.Opener{
		audit.Output(os.Stdout), filesink.Opener(redissink.NewAnchor(redis.Client), log), redissink.Opener, postgressink.Opener,
	}})
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		process.EndAudit(bounded, api)
	}()
	operate := func(ctx context.Context, do func(context.Context) error) error { return api.Operate(ctx, "serve", do) }
	key, noKey := ensureAdmin(ctx, env, operate, s)
	switch {
	case noKey == nil:
	case !errors.Is(noKey, admin.ErrDeleted) && !errors.Is(noKey, admin.ErrPresent) && !errors.Is(noKey, errNoAdminKey):
		return noKey
	case s.Runner.Manifests != "":
		return fmt.Errorf("--manifests: cannot be applied without an admin key: %w", noKey)
	}
	listener, err := net.Listen("tcp", s.Runner.Listen)
	if err != nil {
		return s.Wrong(settings.Listen, err)
	}
	address := clientAddress(listener.Addr().String())
	identity, err := openServerIdentity(ctx, s, env, listener.Addr().String())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := "https://" + address + frame.BasePath
	if s.NeedsFolder() {
		if err := writeKubeconfig(filepath.Join(folder, "kubeconfig"), server, identity.trust(), key); err != nil {
			return err
		}
	}

	env.Tokens.Issuer = cmp.Or(s.Tokens.Issuer, server)
	draining := &atomic.Bool{}
	handler := routes(api, redis.Client, registry, draining)
	if s.Runner.Studio {
		handler = withStudio(handler, api)
	}
	handler = closeConnections(handler, draining)
	handler = forOwnHosts(handler, api, s.Runner.Listen, env.Tokens.Issuer, identity.names)
	servers := []*http.Server{process.NewHTTPServer(handler, log)}
	failed := make(chan error, 2)
	secure := tls.NewListener(listener, &tls.Config{
		GetCertificate: identity.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	})
	go func() { failed <- servers[0].Serve(secure) }()
	plainAddress := ""
	if s.Runner.HTTP != "" {
		plain, err := net.Listen("tcp", s.Runner.HTTP)
		if err != nil {
			return errors.Join(s.Wrong(settings.HTTP, err), servers[0].Close())
		}
		plainAddress = plain.Addr().String()
		second := process.NewHTTPServer(handler, log)
		servers = append(servers, second)
		go func() { failed <- second.Serve(plain) }()
	}
	if err := applyManifests(ctx, newClient(server, identity.trust(), key), s.Runner.Manifests); err != nil {
		return err
	}
	announce(c.version, &s, address, plainAddress, redis.Description, noKey)
	if c.Ready != nil {
		c.Ready()
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	schedules := func(ctx context.Context) { runSchedules(ctx, api, s.Runner.ExpireEvery) }
	if s.Redis.URL != "" {
		// Other processes may have the same state.
		shared, alone := &lease{records: env.Stores(leaseResource), holder: rand.Text(), time: leaseTime, log: log}, schedules
		schedules = func(ctx context.Context) { shared.hold(ctx, alone) }
	}
	endSchedules := begin(background, schedules)
	go runEvery(background, configEvery, func() {
		_ = current.Reload(background) // current.Reload has logged the error
	})
	go runEvery(background, certificateEvery, identity.reload)

	select {
	case err = <-failed:
	case <-ctx.Done():
		draining.Store(true)
		log.Info("draining", "delay", s.Runner.ShutdownDelay.String())
		select {
		case err = <-failed:
		case <-time.After(s.Runner.ShutdownDelay):
		}
	}
	endSchedules()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	// The clients of watches resume elsewhere. All other requests finish.
	api.EndWatches()
	for _, each := range servers {
		err = errors.Join(err, each.Shutdown(bounded))
	}
	return err
}

// errNoAdminKey means that the settings ask for no admin key.
var errNoAdminKey = errors.New("no admin key is to be made")

// ensureAdmin returns the first admin key and makes sure that the state has it. Errors: errNoAdminKey, and the errors of admin.Ensure.
func ensureAdmin(ctx context.Context, env *platform.Environment, operate admin.Operate, s settings.Settings) (secret.String, error) {
	if s.Runner.AdminKey == settings.NoAdminKey {
		return "", errNoAdminKey
	}
	file := ""
	if s.NeedsFolder() {
		file = filepath.Join(s.Runner.Data, "admin.key")
	}
	return admin.Ensure(ctx, env, operate, s.Runner.AdminKey, admin.File(file))
}

// runSchedules runs every schedule of the catalog at an interval until the context ends.
func runSchedules(ctx context.Context, api *frame.Server, interval time.Duration) {
	runEvery(ctx, interval, func() {
		for _, function := range catalog.Functions {
			if function.Schedule != nil && ctx.Err() == nil {
				_ = api.Run(ctx, function) // api.Run has logged the error
			}
		}
	})
}

// routes are the functions of the catalog, and the health of the process. The process is not ready while it drains.
func routes(api *frame.Server, client *redisstore.Client, registry prometheus.Gatherer, draining *atomic.Bool) http.Handler {
	alive := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "ok")
	}
	refuse := func(w http.ResponseWriter, r *http.Request, err error) { api.Refusing("none", err).ServeHTTP(w, r) }
	tokens := issuer.Open(api.Env, issuedtoken.Open(api.Env))
	ready := func(w http.ResponseWriter, r *http.Request) {
		if draining.Load() {
			refuse(w, r, apierror.Upstream("this process is ending; another one answers"))
			return
		}
		if err := client.Ping(r.Context()); err != nil {
			refuse(w, r, apierror.Unavailable().Because(err))
			return
		}
		if _, err := tokens.Current(r.Context()); err != nil {
			api.Env.Log.Error("not ready: no token can be signed", "error", err.Error(), "cause", fmt.Sprint(errors.Unwrap(err)))
			refuse(w, r, apierror.Unavailable().Because(err))
			return
		}
		alive(w, r)
	}
	pages := map[string]http.Handler{metricsPath: requireReader(api, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))}
	for _, base := range []string{"", frame.BasePath} {
		pages[base+"/healthz"], pages[base+"/livez"] = http.HandlerFunc(alive), http.HandlerFunc(alive)
		pages[base+"/readyz"] = http.HandlerFunc(ready)
	}
	functions := leadingToConsole(api.Mount(catalog.Functions...))
	return frame.Guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, found := pages[r.URL.Path]
		switch {
		case !found:
			functions.ServeHTTP(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, r, apierror.MethodNotAllowed(r.Method))
		default:
			page.ServeHTTP(w, r)
		}
	}))
}

// closeConnections asks clients to send no further request on their connections while the process drains. Otherwise a client could
// send one at the moment in which the process closes an idle connection. Source: RFC 9110, 7.6.1; RFC 9113, 6.8 (GOAWAY).
func closeConnections(next http.Handler, draining *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

const metricsPath = "/metrics"

// requireReader serves a page to programs of this machine, and to callers whose access key may read it: a key without a
// scope, or with the role metrics-reader. A request that a proxy forwards does not count as one of this machine.
func requireReader(api *frame.Server, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r) {
			caller, _, err := api.Authenticator.Header(r.Context(), r.Header, store.Ref{})
			if err == nil {
				err = auth.Authorize(caller, scope.Request{Verb: "get", Path: r.URL.Path})
			}
			if err != nil {
				api.Refusing("none", err).ServeHTTP(w, r)
				return
			}
		}
		page.ServeHTTP(w, r)
	})
}

// isLocal reports whether a request comes from this machine, and not through a proxy on it.
func isLocal(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// announce prints the addresses and files of the runner, and commands to try next. NoKey is why there is no admin key;
// nil: there is one.
func announce(version string, s *settings.Settings, address, plain, state string, noKey error) {
	out, folder := os.Stdout, s.Runner.Data
	_, _ = fmt.Fprintf(out, "management.platform.sh %s\n", version)
	_, _ = fmt.Fprintf(out, "  API         https://%s%s\n", address, frame.BasePath)
	_, _ = fmt.Fprintf(out, "  console     https://%s/console\n", address)
	if s.Runner.Studio {
		_, _ = fmt.Fprintf(out, "  studio      https://%s/console/studio (without sign-in)\n", address)
	}
	if plain != "" {
		_, _ = fmt.Fprintf(out, "  plain HTTP  http://%s%s\n", plain, frame.BasePath)
	}
	_, _ = fmt.Fprintf(out, "  state       %s\n", state)
	file := filepath.Join(folder, "admin.key")
	switch {
	case errors.Is(noKey, admin.ErrDeleted) && !s.NeedsFolder():
		_, _ = fmt.Fprintf(out, "  admin key   the first admin key was deleted; give another one with --admin-key, or make one with platform bootstrap\n")
	case errors.Is(noKey, admin.ErrDeleted):
		_, _ = fmt.Fprintf(out, "  admin key   the first admin key was deleted; remove %s and start again, or make one with platform bootstrap\n", file)
	case errors.Is(noKey, admin.ErrPresent):
		_, _ = fmt.Fprintf(out, "  admin key   none: the platform has an admin already; give their key with --admin-key, or make one with platform bootstrap\n")
	case noKey != nil:
		_, _ = fmt.Fprintf(out, "  admin key   none; make one with platform bootstrap\n")
	case !s.NeedsFolder():
		_, _ = fmt.Fprintf(out, "  admin key   as given (user admin, group platform:admins)\n")
	default:
		_, _ = fmt.Fprintf(out, "  admin key   %s (user admin, group platform:admins)\n", file)
	}
	if !s.NeedsFolder() {
		return
	}
	_, _ = fmt.Fprintf(out, "\nTry, in another terminal:\n")
	_, _ = fmt.Fprintf(out, "  export KUBECONFIG=%s\n", filepath.Join(folder, "kubeconfig"))
	_, _ = fmt.Fprintf(out, "  kubectl get ownedaccesskeys\n")
	_, _ = fmt.Fprintf(out, "  kubectl explain ownedaccesskeys.spec\n")
}

// runEvery calls do at an interval until the context ends.
func runEvery(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// clientAddress returns the address at which clients on this machine reach a listener: the loopback address for a listener
// on every address.
func clientAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

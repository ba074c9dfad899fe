// Package runner serves every function of the catalog in one process, with state and a certificate authority of its own.
// Source: ADR-0006.
package runner

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/functions/collectgarbage"
	"management.platform.sh/functions/expirekeys"
	"management.platform.sh/functions/expiretokens"
	"management.platform.sh/functions/rotatesigningkeys"
	"management.platform.sh/local/admin"
	"management.platform.sh/local/environment"
	"management.platform.sh/local/flags"
	"management.platform.sh/local/state"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/state/redisstore"
)

const (
	// configEvery is how often the configuration is looked at.
	configEvery = time.Second
	// drain is how long requests may take to finish after SIGTERM.
	drain = 20 * time.Second
)

// Serve serves the API.
type Serve struct {
	Listen       string         `default:"127.0.0.1:8443" placeholder:"HOST:PORT" help:"Address of the HTTPS listener (${default})."`
	HTTP         string         `name:"http" placeholder:"HOST:PORT" help:"Address of an additional plain HTTP listener, loopback only. Clients drop bearer tokens on plain HTTP; it is for curl and load tools."`
	Redis        secret.String  `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"State: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss:// and so on, or unix:// (embedded)."`
	RedisTimeout time.Duration  `env:"PLATFORM_REDIS_TIMEOUT" default:"1s" help:"The time for each operation on the state; from 100ms to 20s; what takes longer is answered with 503 (${default})."`
	Data         string         `default:".platform" placeholder:"DIR" help:"Folder for the certificate authority, embedded state, encryption.key, kubeconfig and admin.key (${default})."`
	AdminKey     secret.String  `env:"PLATFORM_ADMIN_KEY" placeholder:"KEY" help:"The first admin key, of user admin in the group platform:admins (generated)."`
	Encryption   secret.String  `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals secrets in the state, 32 bytes in base64; after a comma older ones that still open (kept in the data folder)."`
	Issuer       string         `env:"PLATFORM_ISSUER" placeholder:"URL" help:"Issuer of tokens, by which verifiers reach this API (the address of the HTTPS listener)."`
	SigningKey   secret.String  `env:"PLATFORM_SIGNING_KEY" placeholder:"PEM" help:"Signing keys that you manage yourself; the first signs (made and kept in the state)."`
	Signing      flags.Signing  `embed:""`
	Config       string         `placeholder:"FILE" help:"Platform configuration (YAML), watched for changes."`
	Manifests    string         `placeholder:"DIR" help:"Folder of objects to apply at the start."`
	ExpireEvery  time.Duration  `default:"30s" help:"How often expired keys are removed and deletions finished (${default})."`
	Edition      string         `env:"PLATFORM_EDITION" enum:"enterprise,community" default:"enterprise" help:"What of the platform is in use: enterprise or community (${default})."`
	Patches      flags.Patches  `embed:""`
	LogLevel     flags.LogLevel `env:"PLATFORM_LOG_LEVEL" default:"info" help:"Least level of the log on standard error: debug, info, warn or error (${default})."`

	// Version is that of this program.
	Version string `kong:"-"`
}

// Run serves until the context ends, and then drains.
func (c *Serve) Run(ctx context.Context) (err error) {
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(c.LogLevel)}))
	if err := requireLoopback(c.HTTP); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("--data: making the folder: %w", err)
	}
	if c.Config != "" {
		// A bad one is told of before anything is started.
		if _, err := platformconfig.ReadFile(c.Config); err != nil {
			return err
		}
	}
	release, err := lockFolder(c.Data)
	if err != nil {
		return err
	}
	defer release()
	redis, err := state.Open(ctx, c.Redis, redisstore.Options{Timeout: c.RedisTimeout}, c.Data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ring, err := state.OpenKeyring(c.Encryption, filepath.Join(c.Data, "encryption.key"))
	if err != nil {
		return err
	}
	api := environment.New(redis.Client, log, c.Config, ring, registry, c.Version)
	env := api.Env
	env.Edition, env.Patches = c.Edition, c.Patches.Settings()
	// Virtual clusters of this machine are at its loopback.
	env.LocalSigners = true
	source := platformconfig.Open(env)
	if err := source.Reload(ctx); err != nil {
		return err
	}
	trail := audit.NewTrail(audit.Options{
		Config: env.Config, Log: log, Metrics: api.Metrics.(*metrics.Metrics),
		Openers: []audit.Opener{
			audit.Output(os.Stdout), filesink.Opener(redissink.NewAnchor(redis.Client), log), redissink.Opener, postgressink.Opener,
		},
	})
	api.Audit = trail
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		trail.Close(bounded)
	}()
	admin, err := admin.Ensure(ctx, env, c.AdminKey, filepath.Join(c.Data, "admin.key"))
	if err != nil {
		return err
	}
	authority, err := openAuthority(c.Data, time.Now())
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	address := listener.Addr().String()
	// The listener knows the address alone; clients may use the name that it was given.
	certificate, err := authority.serverCertificate(time.Now(), address, c.Listen)
	if err != nil {
		return err
	}
	address = reachable(address)
	server := "https://" + address + frame.BasePath
	if err := writeKubeconfig(filepath.Join(c.Data, "kubeconfig"), server, authority.certificatePEM, admin); err != nil {
		return err
	}

	env.Tokens = c.Signing.Settings()
	env.Tokens.Issuer, env.Tokens.SigningKeys = cmp.Or(c.Issuer, server), c.SigningKey
	handler := routes(api, redis.Client, registry)
	servers := []*http.Server{newServer(handler, log)}
	failed := make(chan error, 2)
	secure := tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	})
	go func() { failed <- servers[0].Serve(secure) }()
	plainAddress := ""
	if c.HTTP != "" {
		plain, err := net.Listen("tcp", c.HTTP)
		if err != nil {
			return errors.Join(fmt.Errorf("--http: %w", err), servers[0].Close())
		}
		plainAddress = plain.Addr().String()
		second := newServer(handler, log)
		servers = append(servers, second)
		go func() { failed <- second.Serve(plain) }()
	}
	if err := applyManifests(ctx, newClient(server, authority.certificatePEM, admin), c.Manifests); err != nil {
		return err
	}
	c.announce(address, plainAddress, redis.Description)
	background, stop := context.WithCancel(ctx)
	defer stop()
	go every(background, c.ExpireEvery, func() {
		for _, scheduled := range []*frame.Function{
			expirekeys.Function, expiretokens.Function, rotatesigningkeys.Function, collectgarbage.Function,
		} {
			_ = api.Run(background, scheduled) // it has logged what went wrong
		}
	})
	go every(background, configEvery, func() {
		_ = source.Reload(background) // it has logged what is wrong
	})

	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("draining")
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	// Their clients resume elsewhere; all other requests come to their end.
	api.EndWatches()
	for _, each := range servers {
		err = errors.Join(err, each.Shutdown(bounded))
	}
	return err
}

// check returns what is wrong with the flags, all at once.
func (c *Serve) check() error {
	problems := []error{c.checkTokens(), c.Patches.Check()}
	if c.ExpireEvery <= 0 {
		problems = append(problems, fmt.Errorf("--expire-every: %s is not positive", c.ExpireEvery))
	}
	if c.RedisTimeout < redisstore.LeastTimeout || c.RedisTimeout > redisstore.MostTimeout {
		problems = append(problems, fmt.Errorf("--redis-timeout: must be from %s to %s", redisstore.LeastTimeout, redisstore.MostTimeout))
	}
	return errors.Join(problems...)
}

// checkTokens returns what is wrong with the flags about tokens.
func (c *Serve) checkTokens() error {
	problems := []error{c.Signing.Check()}
	if c.Issuer != "" {
		if err := settings.CheckIssuer(c.Issuer); err != nil {
			problems = append(problems, fmt.Errorf("--issuer: %w", err))
		}
	}
	if c.SigningKey != "" {
		if _, err := signingkey.ParsePEM(c.SigningKey); err != nil {
			problems = append(problems, fmt.Errorf("--signing-key: %w", err))
		}
	}
	return errors.Join(problems...)
}

// routes are the functions of the catalog, and the health of the process beside them.
func routes(api *frame.Server, client *redisstore.Client, registry prometheus.Gatherer) http.Handler {
	alive := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }
	tokens := issuer.Open(api.Env)
	ready := func(w http.ResponseWriter, r *http.Request) {
		if err := client.Ping(r.Context()); err != nil {
			http.Error(w, "the state cannot be reached", http.StatusServiceUnavailable)
			return
		}
		if _, err := tokens.Current(r.Context()); err != nil {
			api.Env.Log.Error("not ready: no token can be signed", "error", err.Error(), "cause", fmt.Sprint(errors.Unwrap(err)))
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		alive(w, r)
	}
	mux := http.NewServeMux()
	for _, base := range []string{"", frame.BasePath} {
		mux.HandleFunc("GET "+base+"/healthz", alive)
		mux.HandleFunc("GET "+base+"/livez", alive)
		mux.HandleFunc("GET "+base+"/readyz", ready)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", api.Mount(catalog.Functions...))
	return mux
}

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       frame.MaxDuration,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// announce says what was done and what to try next.
func (c *Serve) announce(address, plain, state string) {
	out := os.Stdout
	_, _ = fmt.Fprintf(out, "management.platform.sh %s\n", c.Version)
	_, _ = fmt.Fprintf(out, "  API         https://%s%s\n", address, frame.BasePath)
	if plain != "" {
		_, _ = fmt.Fprintf(out, "  plain HTTP  http://%s%s\n", plain, frame.BasePath)
	}
	_, _ = fmt.Fprintf(out, "  state       %s\n", state)
	_, _ = fmt.Fprintf(out, "  admin key   %s (user admin, group platform:admins)\n", filepath.Join(c.Data, "admin.key"))
	_, _ = fmt.Fprintf(out, "\nTry, in another terminal:\n")
	_, _ = fmt.Fprintf(out, "  export KUBECONFIG=%s\n", filepath.Join(c.Data, "kubeconfig"))
	_, _ = fmt.Fprintf(out, "  kubectl get ownedaccesskeys\n")
	_, _ = fmt.Fprintf(out, "  kubectl explain ownedaccesskeys.spec\n")
}

// every calls do at an interval until the context ends.
func every(ctx context.Context, interval time.Duration, do func()) {
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

// reachable is a listener's address as clients of this machine reach it: one that listens everywhere does so on
// the loopback.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// requireLoopback refuses to offer plain HTTP to other machines.
func requireLoopback(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--http: %q is not a loopback address; bearer tokens must not cross a network in clear", host)
}

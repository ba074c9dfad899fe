// Package operator holds the commands by which an operator of a deployment works on its state, without the API.
package operator

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"management.platform.sh/local/admin"
	"management.platform.sh/local/environment"
	"management.platform.sh/local/state"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
)

// Bootstrap makes the first admin key.
type Bootstrap struct {
	Redis    secret.String `env:"PLATFORM_REDIS_URL" required:"" placeholder:"URL" help:"State: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss:// and so on, or unix://."`
	AdminKey secret.String `env:"PLATFORM_ADMIN_KEY" placeholder:"KEY" help:"The key to use (generated and printed)."`

	// Version is that of this program.
	Version string `kong:"-"`
}

// Run makes the first admin key in a Redis and prints it: the only time that it can be seen.
func (c *Bootstrap) Run(ctx context.Context) error {
	client, err := state.Connect(ctx, redisAt(c.Redis))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	bearer := c.AdminKey
	if bearer == "" {
		if bearer, err = accesskey.NewBearer(rand.Reader); err != nil {
			return err
		}
	}
	env := environment.New(client, slog.New(slog.DiscardHandler), "", nil, prometheus.NewRegistry(), c.Version).Env
	if err := admin.Create(ctx, env, bearer); err != nil {
		return err
	}
	// A key that is there already is left as it is, which may be no admin's.
	caller, err := accesskey.OpenAuthenticator(env).Bearer(ctx, bearer)
	if err != nil {
		return fmt.Errorf("--admin-key: the key is there already: %w", err)
	}
	if !caller.Admin() || caller.Scope != nil {
		return fmt.Errorf("--admin-key: the key is there already, of %s, and not one of an admin without a scope", caller.Owner)
	}
	if _, err := fmt.Println(bearer.Reveal()); err != nil {
		return fmt.Errorf("printing the admin key: %w", err)
	}
	return nil
}

// redisAt are the settings of a command whose flag --redis says where the state is.
func redisAt(url secret.String) settings.Settings {
	s := settings.Default()
	s.Redis.URL, s.Redis.URLFrom = url, "--redis"
	return s
}

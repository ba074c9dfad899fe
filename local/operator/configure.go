package operator

import (
	"context"
	"fmt"
	"os"

	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore"
)

// Configure writes the platform configuration into the state.
type Configure struct {
	Redis      secret.String `env:"PLATFORM_REDIS_URL" required:"" placeholder:"URL" help:"The Redis that holds the state: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss://, rediss-cluster:// or rediss-sentinel://, or unix://."`
	Encryption secret.String `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals the secrets of the configuration, 32 bytes in base64. Absent: the configuration must have no secrets."`
	File       string        `arg:"" placeholder:"FILE" help:"File with the platform configuration (YAML)."`

	Version string `kong:"-"`
}

// Run writes the configuration in a file into a Redis, as an operator.
func (c *Configure) Run(ctx context.Context) error {
	config, err := platformconfig.ReadFile(c.File)
	if err != nil {
		return err
	}
	ring, err := keyring(c.Encryption)
	if err != nil {
		return err
	}
	var written platformconfig.Result
	o := operation{name: "configure", version: c.Version, state: redisAt(c.Redis), keyring: ring}
	err = o.run(ctx, func(ctx context.Context, _ *redisstore.Client, env *platform.Environment) (err error) {
		operator := identity.New(identity.Owner{Kind: identity.Subject, Name: "configure"}, []string{identity.Admins})
		if written, err = platformconfig.Open(env).Writer(nil).Install(ctx, operator, config); err != nil {
			return fmt.Errorf("writing the platform configuration: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, warning := range written.Warnings {
		_, _ = fmt.Fprintln(os.Stderr, "Warning: "+warning)
	}
	_, err = fmt.Printf("configuration written, revision %s\n", written.Object.ResourceVersion)
	return err
}

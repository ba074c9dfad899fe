package operator

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"management.platform.sh/local/state"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
)

// Configure writes the platform configuration into the state.
type Configure struct {
	Redis      secret.String `env:"PLATFORM_REDIS_URL" required:"" placeholder:"URL" help:"The Redis that holds the state: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss://, rediss-cluster:// or rediss-sentinel://, or unix://."`
	Encryption secret.String `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals the secrets of the configuration, 32 bytes in base64. Absent: the configuration must have no secrets."`
	File       string        `arg:"" placeholder:"FILE" help:"File with the platform configuration (YAML)."`

	// Version is the version of this program.
	Version string `kong:"-"`
}

// Run writes the configuration in a file into a Redis, as an operator.
func (c *Configure) Run(ctx context.Context) error {
	config, err := platformconfig.ReadFile(c.File)
	if err != nil {
		return err
	}
	var ring *encryption.Keyring
	if c.Encryption != "" {
		if ring, err = encryption.Parse(c.Encryption); err != nil {
			return fmt.Errorf("--encryption-key: %w", err)
		}
	}
	client, err := state.Connect(ctx, redisAt(c.Redis))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	env := process.New(settings.Settings{Version: c.Version, ConfigVariables: os.Getenv(settings.ConfigVariables)}, process.World{
		Stores: client.Resource, Log: slog.New(slog.DiscardHandler),
		Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
	}).Env
	operator := identity.New(identity.Owner{Kind: identity.Subject, Name: "configure"}, []string{identity.Admins})
	written, err := platformconfig.Open(env).Install(ctx, operator, config)
	if err != nil {
		return fmt.Errorf("writing the platform configuration: %w", err)
	}
	for _, warning := range written.Warnings {
		_, _ = fmt.Fprintln(os.Stderr, "Warning: "+warning)
	}
	_, err = fmt.Printf("configuration written, revision %s\n", written.Object.ResourceVersion)
	return err
}

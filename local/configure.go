package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// Run writes the configuration of a file into a Redis, as an operator.
func (c *configureCommand) Run(ctx context.Context) error {
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
	client, err := openRedis(ctx, c.Redis, redisstore.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	env := newEnvironment(client, slog.New(slog.DiscardHandler), "", ring, prometheus.NewRegistry())
	operator := identity.New(identity.Owner{Kind: identity.Subject, Name: "configure"}, []string{identity.Admins})
	written, err := env.Source.Install(ctx, operator, config)
	if err != nil {
		return fmt.Errorf("writing the platform configuration: %w", err)
	}
	_, err = fmt.Printf("configuration written, revision %s\n", written.Object.ResourceVersion)
	return err
}

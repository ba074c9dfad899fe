package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"management.platform.sh/local/runner"
)

// profileCommand measures operations, each once, and keeps where the runner spent its processor time. The operations share
// the profile by the time that they were measured, which is the same for each.
type profileCommand struct {
	Output   string        `required:"" placeholder:"FILE" help:"Where the profile goes."`
	Duration time.Duration `default:"5s" help:"Time for each operation (${default})."`
	Clients  int           `default:"16" help:"How many clients ask at the same time (${default})."`
	Op       []string      `default:"${ops}" enum:"${ops}" help:"Operations, all if none is named: ${enum}."`
}

// Run writes the profile.
func (c *profileCommand) Run(ctx context.Context) error {
	if c.Clients < 1 || c.Clients > maxClients || c.Duration <= 0 {
		return fmt.Errorf("--clients must be 1 to %d, and --duration positive", maxClients)
	}
	folder, err := os.MkdirTemp("", "load")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	profile := filepath.Join(folder, "profile")
	_, side, err := startPlatform(ctx, platformOptions{
		name: "profiled", program: []string{program, "serve", "--profile", profile}, folder: folder, log: os.DevNull, audit: true, deletes: true,
	})
	if err != nil {
		return err
	}
	err = c.measure(ctx, side)
	// The profile is written when the runner ends.
	side.stop()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return fmt.Errorf("reading the profile: %w", err)
	}
	if err := os.WriteFile(c.Output, text, 0o644); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

func (c *profileCommand) measure(ctx context.Context, side *side) error {
	for _, op := range c.Op {
		one, err := measure(ctx, side, op, c.Clients, c.Duration)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", op, err)
		}
		if one.Errors > 0 {
			return fmt.Errorf("measuring %s: %d errors, the first: %s", op, one.Errors, one.Error)
		}
	}
	return nil
}

// serveCommand is the runner, which profiles itself.
type serveCommand struct {
	runner.Serve
	Profile string `required:"" placeholder:"FILE" help:"Where the CPU profile goes."`
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context) error {
	file, err := os.Create(c.Profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(fmt.Errorf("--profile: %w", err), file.Close())
	}
	served := c.Serve.Run(ctx)
	pprof.StopCPUProfile()
	return errors.Join(served, file.Close())
}

// newCommands returns the commands before their flags are read.
func newCommands() *commands { return &commands{Serve: serveCommand{Serve: runner.New("load")}} }

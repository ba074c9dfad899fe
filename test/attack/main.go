// Command attack shows that no request can harm other requests. It starts the local runner and lets an honest tenant work: get, list, create,
// delete, and an evaluation of about 3 ms. Then other tenants, and clients without a key, send what costs the most for its size, 16 requests at
// a time: each class of input alone, and all of them together.
//
//	go run ./test/attack
//	go run ./test/attack --class expressions,patterns --each 10s
//
// The attackers stand for other machines, so on Linux they have a low priority on the processor of this one.
//
// For each class it reports the honest tenant's 99th percentile with and without the attack, the answers to the attackers, the peak memory of
// the process, and the time until the process answered again. The exit code is 1 if the attack did harm: an honest request that failed or took
// ten times as long, an answer with 5xx, 256 MB of memory, or more than a second until the process answers again. It sends only to the loopback
// and ends within a bounded time. Source: ADR-0020.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"management.platform.sh/test/launch"
)

type commands struct {
	Attack attackCommand `cmd:"" default:"withargs" help:"Attack (the default)."`
	Honest honestCommand `cmd:"" hidden:"" help:"Work as the honest tenant."`
}

type attackCommand struct {
	Class    []string      `placeholder:"NAME,..." help:"Classes of input: ${classes} (all)."`
	Alone    time.Duration `default:"5s" help:"How long the honest tenant works alone (${default})."`
	Each     time.Duration `default:"5s" help:"How long each class attacks (${default})."`
	Together time.Duration `default:"20s" help:"How long all classes attack together (${default}). 0: not at all."`
	Tokens   int           `default:"20000" help:"How many tokens one attacker has (${default})."`
	Log      string        `default:"${devnull}" placeholder:"FILE" help:"File for the log of the runner (${default})."`
	Set      []string      `placeholder:"NAME=VALUE" help:"Settings of the runner."`
}

func main() { os.Exit(start()) }

// start runs the command line and returns the exit code.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var c commands
	line := kong.Parse(&c,
		kong.Name("attack"),
		kong.Description("Attack a runner while an honest tenant works, and report the harm."),
		kong.Vars{"devnull": os.DevNull, "classes": strings.Join(classNames(), ", ")},
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err := line.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return 1
	}
	return 0
}

// Run attacks a runner of its own.
func (c *attackCommand) Run(ctx context.Context) error {
	selection := classes
	if len(c.Class) > 0 {
		selection = nil
		for _, name := range c.Class {
			i := slices.IndexFunc(classes, func(one class) bool { return one.name == name })
			if i < 0 {
				return fmt.Errorf("unknown class %q: use %s", name, strings.Join(classNames(), ", "))
			}
			selection = append(selection, classes[i])
		}
	}
	folder, err := os.MkdirTemp("", "attack")
	if err != nil {
		return fmt.Errorf("making a data folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	runner, err := launch.Start(ctx, folder, c.Log, c.Set...)
	if err != nil {
		return err
	}
	defer runner.Stop()
	results, err := measure(ctx, runner, plan{
		classes: selection, alone: c.Alone, each: c.Each, together: c.Together, tokens: c.Tokens, progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	if err := results.print(os.Stdout); err != nil {
		return err
	}
	return results.harm()
}

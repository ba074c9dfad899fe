// Command load measures a running API against the least that any server in front of the same Redis does: a
// bare net/http handler, the same with two round trips to Redis, and Redis alone. Everything is measured in
// turn, round after round, in one run, and reported beside each other: a rate by itself says something of the
// machine and its hour, the ratio to the handler with two round trips says something of the API.
//
//	go run ./test/load --start
//	go run ./test/load --server http://127.0.0.1:8080/kubernetes/management --key-file .platform/admin.key \
//	    --redis unix://.platform/redis/redis.sock
//
// It sends only to loopback addresses. The objects that it creates have the label load with the name of the
// run, and are removed at its end. Any response but 2xx is an error, and the exit code is then 1. It is not a test:
// it does not decide how fast is fast enough.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/test/launch"
)

type commands struct {
	Run   runCommand   `cmd:"" default:"withargs" help:"Measure (the default)."`
	Hello helloCommand `cmd:"" hidden:"" help:"Serve the handlers that the API is compared with."`
}

type runCommand struct {
	Server   string        `placeholder:"URL" help:"Base URL of a running API: plain HTTP on a loopback address, with the base path."`
	KeyFile  string        `type:"existingfile" placeholder:"FILE" help:"File with the access key of an admin."`
	Redis    secret.String `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"The Redis of that API, redis:// or unix://. Without it there is nothing to compare with but plain hello."`
	Start    bool          `help:"Build and start the local runner on a new data folder, measure it and stop it, instead of --server."`
	Log      string        `default:"${devnull}" placeholder:"FILE" help:"Where the log of a runner started by --start goes (${default})."`
	Clients  []int         `default:"1,16,64" help:"Numbers of clients that ask at the same time (${default})."`
	Duration time.Duration `default:"2s" help:"Time for each measurement (${default})."`
	Rounds   int           `default:"3" help:"How often each is measured; medians are reported (${default})."`
	Op       []string      `default:"get,create,update,list" enum:"get,create,update,list" help:"Operations of the API (${default})."`
	JSON     bool          `name:"json" help:"Report as JSON, every single measurement included."`
}

// Validate refuses what cannot be measured.
func (c *runCommand) Validate() error {
	switch {
	case c.Start == (c.Server != ""):
		return errors.New("give either --server or --start")
	case c.Start && (c.KeyFile != "" || c.Redis != ""):
		return errors.New("--start brings its own key and Redis")
	case c.Server != "" && c.KeyFile == "":
		return errors.New("--server needs --key-file")
	case c.Rounds < 1 || c.Duration <= 0:
		return errors.New("--rounds and --duration must be positive")
	case len(c.Clients) == 0 || slices.Min(c.Clients) < 1 || slices.Max(c.Clients) > maxClients:
		return fmt.Errorf("--clients must be 1 to %d", maxClients)
	}
	return nil
}

func main() { os.Exit(start()) }

// start runs the command line and returns the exit code.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	parsed := kong.Parse(&commands{},
		kong.Name("load"),
		kong.Description("Measure the API beside bare handlers in front of the same Redis."),
		kong.Vars{"devnull": os.DevNull},
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		return 1
	}
	return 0
}

// Run measures and reports.
func (c *runCommand) Run(ctx context.Context) (err error) {
	if c.Start {
		folder, err := os.MkdirTemp("", "load")
		if err != nil {
			return fmt.Errorf("making a data folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		runner, err := launch.Start(ctx, folder, c.Log)
		if err != nil {
			return err
		}
		defer runner.Stop()
		c.Server, c.KeyFile, c.Redis = runner.Server, runner.KeyFile(), runner.Redis()
		if c.Redis == "" {
			fmt.Fprintln(os.Stderr, "load: the runner has no redis-server; nothing is compared with Redis")
		}
	}
	if err := launch.RequireLoopback(c.Server); err != nil {
		return err
	}
	key, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	api, err := newAPI(c.Server, secret.String(strings.TrimSpace(string(key))))
	if err != nil {
		return err
	}
	floor, err := startFloor(ctx, c.Redis, api.run)
	if err != nil {
		return err
	}
	defer floor.stop()
	if err := api.prepare(ctx); err != nil {
		return errors.Join(err, api.cleanUp(ctx))
	}
	defer func() { err = errors.Join(err, api.cleanUp(ctx)) }()

	subjects := floor.subjects()
	for _, op := range c.Op {
		subjects = append(subjects, api.subject(op))
	}
	result := report{Procs: runtime.GOMAXPROCS(0), Seconds: c.Duration.Seconds(), Rounds: c.Rounds}
	for round := range c.Rounds {
		for _, clients := range c.Clients {
			for _, subject := range subjects {
				one, err := measure(ctx, subject, clients, c.Duration)
				if err != nil {
					return fmt.Errorf("measuring %s: %w", subject.name, err)
				}
				one.Round = round
				result.Samples = append(result.Samples, one)
			}
		}
		fmt.Fprintf(os.Stderr, "load: round %d of %d is done\n", round+1, c.Rounds)
	}
	result.summarize()
	if c.JSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(result)
	} else {
		err = result.print(os.Stdout)
	}
	return errors.Join(err, result.failure())
}

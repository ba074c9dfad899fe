// Command load measures a runner, with its Redis and with every write on disk. In the same run it measures the floor, which is the minimum of
// any server in front of the same Redis (net/http, one round trip to Redis, no checks), and kube-apiserver with etcd and OpenBao if their
// programs are on PATH. All of them are measured in turn, round after round: a single rate depends on the machine and on the hour, but the
// ratio of two rates in one round depends on the API.
//
//	go run ./test/load                                       # builds the runner
//	go run ./test/load --program build/platform --program build/before
//	go run ./test/load --keys 1000,200000 --op get,create,update,page --no-floor --no-peers
//	go run ./test/load table build/bench/*.json
//
// It starts every server itself, on loopback addresses and in a new folder, and ends it. Every response other than 2xx is an error and makes
// the exit code 1. The command is not a test: it does not decide how fast is fast enough.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"management.platform.sh/test/launch"
)

// The names of sides.
const (
	floorName      = "floor"
	kubernetesName = "kube-apiserver"
	openBaoName    = "OpenBao"
)

type commands struct {
	Run   runCommand   `cmd:"" default:"withargs" help:"Measure (the default)."`
	Table tableCommand `cmd:"" help:"Print the tables of saved runs."`
	Floor floorCommand `cmd:"" hidden:"" help:"Serve the handlers that the API is compared with."`
}

type runCommand struct {
	Program  []string      `type:"existingfile" placeholder:"FILE" help:"Runners to measure. Ratios compare the first runner with the others. Without this flag, the runner is built."`
	Keys     []int         `placeholder:"N" help:"Measure the runner with these numbers of access keys, each in a process of its own. Without this flag there are 500 keys."`
	Floor    bool          `default:"true" negatable:"" help:"Measure the floor."`
	Peers    bool          `default:"true" negatable:"" help:"Measure kube-apiserver with etcd, and bao, if they are on PATH."`
	Audit    bool          `default:"true" negatable:"" help:"Write the audit at level 1 to a file."`
	Log      string        `default:"${devnull}" placeholder:"FILE" help:"File for the logs of the runners (${default})."`
	Clients  []int         `default:"16" help:"Numbers of simultaneous clients (${default})."`
	Duration time.Duration `default:"2s" help:"Time for each measurement (${default})."`
	Rounds   int           `default:"5" help:"Number of measurements of each operation. The report shows medians (${default})."`
	Op       []string      `default:"${usual}" enum:"${ops}" help:"Operations: ${enum} (${default})."`
	JSON     string        `name:"json" placeholder:"FILE" help:"Also write the run, with every single measurement, to a new file."`
}

// Validate returns an error for options that cannot be measured.
func (c *runCommand) Validate() error {
	switch {
	case c.Rounds < 1 || c.Duration <= 0:
		return errors.New("--rounds and --duration must be positive")
	case len(c.Clients) == 0 || slices.Min(c.Clients) < 1 || slices.Max(c.Clients) > maxClients:
		return fmt.Errorf("--clients must be 1 to %d", maxClients)
	case len(c.Keys) > 0 && slices.Min(c.Keys) < objects:
		return fmt.Errorf("--keys must be at least %d", objects)
	case slices.Contains(c.Op, opDelete) && !slices.Contains(c.Op, opCreate):
		return errors.New("--op: delete removes what create makes, and needs it")
	}
	return nil
}

// defaultOperations returns the default operations of a run: all except pages, which differ from the list only if there are many keys.
func defaultOperations() []string {
	return slices.DeleteFunc(slices.Clone(operations), func(op string) bool { return op == opPage })
}

func main() { os.Exit(start()) }

// start runs the command line and returns the exit code.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	parsed := kong.Parse(&commands{},
		kong.Name("load"),
		kong.Description("Measure the API beside the least that a server does, and beside its peers."),
		kong.Vars{"devnull": os.DevNull, "ops": strings.Join(operations, ","), "usual": strings.Join(defaultOperations(), ",")},
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		return 1
	}
	return 0
}

// Run measures and reports.
func (c *runCommand) Run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "load")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if len(c.Program) == 0 {
		program := filepath.Join(folder, "platform")
		if err := launch.Build(ctx, program); err != nil {
			return err
		}
		c.Program = []string{program}
	}
	var file *os.File
	if c.JSON != "" {
		// The file is created first: a wrong path must not lose a run of minutes, and an earlier run is never overwritten.
		if file, err = os.OpenFile(c.JSON, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
		defer func() { _ = file.Close() }()
	}
	result, err := c.measure(ctx, folder)
	if err != nil {
		return err
	}
	if file != nil {
		encoder := json.NewEncoder(file)
		encoder.SetIndent("", "  ")
		if err := errors.Join(encoder.Encode(result), file.Close()); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	return errors.Join(markdown(os.Stdout, []run{*result}), result.failure())
}

// measure starts all sides, measures them in turn and ends them.
func (c *runCommand) measure(ctx context.Context, folder string) (*run, error) {
	result := &run{Seconds: c.Duration.Seconds(), Rounds: c.Rounds}
	var err error
	if result.Machine, err = describe(folder); err != nil {
		return nil, err
	}
	sides, absent, err := c.startSides(ctx, folder)
	defer func() {
		for _, each := range slices.Backward(sides) {
			each.stop()
		}
	}()
	if err != nil {
		return nil, err
	}
	result.Absent = absent
	result.Begun = time.Now().UTC().Format(time.RFC3339)
	account, err := newAccount(sides)
	if err != nil {
		return nil, err
	}
	for round := range c.Rounds {
		for _, clients := range c.Clients {
			for _, op := range operations {
				if !slices.Contains(c.Op, op) {
					continue
				}
				for i := range sides {
					// The work of a side after its turn slows down the next side, so the order differs in each round.
					side := sides[i]
					if round%2 == 1 {
						side = sides[len(sides)-1-i]
					}
					if side.subject(op) == nil {
						continue
					}
					one, err := measure(ctx, side, op, clients, c.Duration)
					if err != nil {
						return nil, fmt.Errorf("measuring %s of %s: %w", op, side.name, err)
					}
					one.Round = round
					result.Samples = append(result.Samples, one)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "load: round %d of %d is done\n", round+1, c.Rounds)
	}
	result.Machine.LoadAfter = loadAverage()
	if result.Machine.Others, err = account.othersShare(); err != nil {
		return nil, err
	}
	for _, side := range sides {
		sideResult := sideReport{Name: side.name, About: side.about}
		if sideResult.Server, err = side.server.resident(); err != nil {
			return nil, err
		}
		if sideResult.Store, err = side.store.resident(); err != nil {
			return nil, err
		}
		result.Sides = append(result.Sides, sideResult)
	}
	return result, nil
}

// startSides starts the sides. On an error it returns the sides that it has started.
func (c *runCommand) startSides(ctx context.Context, folder string) (sides []*side, absent []string, err error) {
	deletes := slices.Contains(c.Op, opDelete)
	within := func(name string) (string, error) {
		path := filepath.Join(folder, fmt.Sprint(len(sides)))
		if err := os.Mkdir(path, 0o700); err != nil {
			return "", fmt.Errorf("making the folder of %s: %w", name, err)
		}
		return path, nil
	}
	keys := c.Keys
	if len(keys) == 0 {
		keys = []int{objects}
	}
	type setup struct {
		program string
		keys    int
	}
	var setups []setup
	for _, program := range c.Program {
		for _, number := range keys {
			setups = append(setups, setup{program, number})
		}
	}
	var first *platform
	for _, one := range setups {
		program, number := one.program, one.keys
		name := filepath.Base(program)
		if len(c.Keys) > 0 {
			name = fmt.Sprintf("%s, %d keys", name, number)
		}
		if slices.ContainsFunc(sides, func(other *side) bool { return other.name == name }) {
			return sides, nil, fmt.Errorf("%q is measured already: sides need different names", name)
		}
		data, err := within(name)
		if err != nil {
			return sides, nil, err
		}
		if program, err = filepath.Abs(program); err != nil {
			return sides, nil, fmt.Errorf("--program: %w", err)
		}
		started, side, err := startPlatform(ctx, platformOptions{
			name: name, program: []string{program}, folder: data, log: c.Log, audit: c.Audit, keys: number, deletes: deletes,
		})
		if err != nil {
			return sides, nil, err
		}
		if first == nil {
			first = started
		}
		sides = append(sides, side)
	}
	if c.Floor {
		side, err := startFloor(ctx, first, deletes)
		if err != nil {
			return sides, nil, err
		}
		sides = append(sides, side)
	}
	if !c.Peers {
		return sides, nil, nil
	}
	for _, peer := range []struct {
		name  string
		start func(folder string) (*side, error)
	}{
		{kubernetesName, func(folder string) (*side, error) { return startKubernetes(ctx, folder, deletes) }},
		{openBaoName, func(folder string) (*side, error) { return startOpenBao(ctx, folder) }},
	} {
		data, err := within(peer.name)
		if err != nil {
			return sides, nil, err
		}
		side, err := peer.start(data)
		if err == nil {
			sides = append(sides, side)
		} else {
			// A peer that cannot be measured does not stop the measurement of the other sides.
			absent = append(absent, fmt.Sprintf("%s, because %s", peer.name, err))
			if err := os.RemoveAll(data); err != nil {
				return sides, nil, fmt.Errorf("removing the folder of %s: %w", peer.name, err)
			}
		}
	}
	return sides, absent, nil
}

// account is the processor time of a machine and of a run on it.
type account struct {
	run         processes
	begun       time.Time
	busy, ofRun float64
	processors  int
}

func newAccount(sides []*side) (*account, error) {
	a := &account{run: processes{os.Getpid()}, begun: time.Now(), processors: runtime.NumCPU()}
	for _, each := range sides {
		for _, pid := range slices.Concat(each.server, each.store) {
			if !slices.Contains(a.run, pid) {
				a.run = append(a.run, pid)
			}
		}
	}
	var err error
	a.busy, a.ofRun, err = a.readTimes()
	return a, err
}

func (a *account) readTimes() (all, ofRun float64, err error) {
	if all, err = busy(); err != nil {
		return 0, 0, err
	}
	ofRun, err = a.run.processorTime()
	return all, ofRun, err
}

// othersShare returns the share of the processors that other programs have used since the beginning, 0 to 1.
func (a *account) othersShare() (float64, error) {
	all, ofRun, err := a.readTimes()
	if err != nil {
		return 0, err
	}
	capacity := time.Since(a.begun).Seconds() * float64(a.processors)
	return max(0, ((all-a.busy)-(ofRun-a.ofRun))/capacity), nil
}

// Command check runs the checks of this project in parts, and prints the cost of each part. "check" is the list that CI runs at each change,
// "deep" is the rest, and each single part has a name. Before it begins, it installs missing programs, and prints one line for each program
// that it cannot get. parts.go lists all parts; docs/contributing.md shows the list to people. Source: ADR-0046.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	Parts   []string `arg:"" name:"part" help:"check, deep, or names of parts."`
	Timeout string   `default:"40m" help:"Time limit for the tests of one package."`
	Install bool     `help:"Install the programs that these parts need, and run nothing."`
}

func main() {
	var chosen options
	kong.Parse(&chosen, kong.Name("check"))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, chosen)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	if opts.Install {
		return prepare(ctx, opts.Parts, nil)
	}
	var parts []part
	for _, name := range opts.Parts {
		switch p, known := partByName(name); {
		case name == "check":
			parts = append(parts, check...)
		case name == "deep":
			parts = append(parts, deep...)
		case known:
			parts = append(parts, p)
		default:
			return fmt.Errorf("there is no part %q: use check, deep, %s", name, strings.Join(names(), ", "))
		}
	}
	var wanted, modules []string
	for _, p := range parts {
		wanted, modules = append(wanted, p.needs...), append(modules, p.modules()...)
	}
	if err := prepare(ctx, unique(wanted), unique(modules)); err != nil {
		return err
	}
	if os.Getenv("CI") != "" {
		if err := keepTimes(ctx, "."); err != nil {
			return err
		}
	}
	report, err := newReport()
	if err != nil {
		return err
	}
	var failures []error
	for len(parts) > 0 && ctx.Err() == nil {
		together := 1
		for together < len(parts) && parts[together].beside {
			together++
		}
		failures = append(failures, report.runTogether(ctx, parts[:together], opts.Timeout)...)
		parts = parts[together:]
	}
	report.print(os.Stdout)
	return errors.Join(failures...)
}

// prepare installs missing programs, and fails with one line for each missing program that a check requires. On a laptop, tests that need a
// missing program are skipped, so its line is only a warning.
func prepare(ctx context.Context, wanted, modules []string) error {
	for _, name := range wanted {
		if _, known := needs[name]; !known {
			return fmt.Errorf("nothing is called %q", name)
		}
	}
	if len(modules) > 0 {
		if err := enoughDisk(); err != nil {
			return err
		}
	}
	// Two registries are asked at the same time.
	downloaded := make(chan error, 1)
	go func() {
		var failures []error
		for _, folder := range modules {
			failures = append(failures, download(ctx, folder))
		}
		downloaded <- errors.Join(failures...)
	}()
	lines := install(ctx, ".", wanted)
	for _, name := range wanted {
		if needs[name].isMissing(".") {
			continue
		}
		if err := startError(ctx, name); err != nil {
			lines = append(lines, err.Error())
		}
	}
	var fatal []error
	for _, text := range lines {
		if os.Getenv("CI") != "" {
			fatal = append(fatal, errors.New(text))
		} else {
			fmt.Fprintln(os.Stderr, text+" (tests that need it are skipped outside CI)")
		}
	}
	return errors.Join(append(fatal, <-downloaded)...)
}

// download gets the modules of a go.mod that are needed, so that a registry that does not answer fails at once.
func download(ctx context.Context, folder string) error {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "./...")
	if name := filepath.Base(folder); name == "tools" || name == "tofu" {
		command = exec.CommandContext(ctx, "go", "list", "-deps", "tool")
	}
	command.Dir = filepath.Join(".", folder)
	var said strings.Builder
	command.Stderr = &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("the modules of %s/go.mod are not to be had: %w: %s", folder, err, lastLine([]byte(said.String())))
	}
	return nil
}

// leastDisk is the disk space that compiled packages need if nothing is compiled yet, in bytes.
const leastDisk = 12 << 30

// enoughDisk returns an error if the disk of the compiler's cache has less free space than that.
func enoughDisk() error {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("asking go for its cache: %w", err)
	}
	folder := strings.TrimSpace(string(cache))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	free, err := freeBytes(folder)
	if err != nil {
		return err
	}
	if free < leastDisk {
		return fmt.Errorf("%.1f GB are free in %s, and a check needs %d GB if nothing is compiled yet: go clean -cache", float64(free)/(1<<30), folder, leastDisk>>30)
	}
	return nil
}

// freeBytes returns the free space in the file system of a folder, in bytes.
func freeBytes(folder string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, fmt.Errorf("asking for the free space of %s: %w", folder, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:unconvert // the size has another type on other systems
}

func names() []string {
	var all []string
	for _, p := range slices.Concat(check, deep) {
		all = append(all, p.name)
	}
	return all
}

func unique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// seconds rounds a duration for people.
func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

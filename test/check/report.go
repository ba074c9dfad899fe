package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

// slowest is the number of packages that the report names.
const slowest = 10

// report collects the cost of the parts.
type report struct {
	// folder holds the events of go test.
	folder string
	// free is the free disk space at the beginning, in bytes.
	free  int64
	begun time.Time
	// mutex guards the fields below.
	mutex sync.Mutex
	rows  []row
	tests []tested
}

// row is the cost of a part.
type row struct {
	name string
	// wall is the elapsed time, processor the time of all processors.
	wall, processor time.Duration
	// packages are the packages that ran; cached is the number of packages with a cached result.
	packages, cached int
	failed           bool
}

// tested is the cost of a package.
type tested struct {
	part, name string
	wall       time.Duration
}

func newReport() (*report, error) {
	folder := filepath.Join("build", "check")
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, err
	}
	free, err := freeBytes(folder)
	return &report{folder: folder, free: free, begun: time.Now()}, err
}

// runTogether runs parts at the same time, and prints their outputs one after the other.
func (r *report) runTogether(ctx context.Context, parts []part, timeout string) []error {
	var running sync.WaitGroup
	outputs, failures := make([]bytes.Buffer, len(parts)), make([]error, len(parts))
	for i, p := range parts {
		var out io.Writer = os.Stdout
		if i > 0 {
			out = &outputs[i]
		}
		fmt.Fprintf(out, "\n== %s: %s\n", p.name, p.about)
		running.Go(func() {
			if err := r.run(ctx, p, timeout, out); err != nil {
				failures[i] = fmt.Errorf("%s: %w", p.name, err)
			}
		})
	}
	running.Wait()
	for i := range outputs {
		_, _ = outputs[i].WriteTo(os.Stdout)
	}
	return failures
}

// run runs a part, which prints to a writer.
func (r *report) run(ctx context.Context, p part, timeout string, out io.Writer) error {
	events := filepath.Join(r.folder, p.name+".json")
	command, err := p.command(ctx, events, timeout)
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = out, out
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	begun := time.Now()
	failure := command.Run()
	cost := row{name: p.name, wall: time.Since(begun), failed: failure != nil}
	if ended := command.ProcessState; ended != nil {
		cost.processor = ended.UserTime() + ended.SystemTime()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(p.packages) > 0 {
		file, err := os.Open(events)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			defer func() { _ = file.Close() }()
			var found []tested
			if found, cost.cached, err = packages(file, p.name); err != nil {
				return err
			}
			cost.packages, r.tests = len(found), append(r.tests, found...)
		}
	}
	r.rows = append(r.rows, cost)
	return failure
}

// command returns the command of a part. gotestsum runs go test, prints what fails at the end, and keeps the events.
func (p part) command(ctx context.Context, events, timeout string) (*exec.Cmd, error) {
	if p.target != "" {
		return exec.CommandContext(ctx, "make", p.target), nil
	}
	tools, err := filepath.Abs(filepath.Join("test", "tools", "go.mod"))
	if err != nil {
		return nil, err
	}
	if events, err = filepath.Abs(events); err != nil {
		return nil, err
	}
	args := []string{
		"tool", "-modfile=" + tools, "gotestsum", "--format=pkgname", "--format-hide-empty-pkg", "--hide-summary=skipped",
		"--jsonfile=" + events, "--", "-vet=off", "-timeout=" + timeout, // the linters vet
	}
	args = append(args, p.flags...)
	list, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", append(args, list...)...)
	command.Dir = p.module
	return command, nil
}

// list returns the packages of a part as arguments of go test. The packages that take longest come first.
func (p part) list(ctx context.Context) ([]string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.Dir}}"}, packagePatterns(p.packages)...)...)
	command.Dir = p.module
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	top, err := filepath.Abs(p.module)
	if err != nil {
		return nil, err
	}
	var first, rest []string
	for folder := range strings.FieldsSeq(string(output)) {
		name, err := filepath.Rel(top, folder)
		switch {
		case err != nil:
			return nil, err
		case slices.Contains(p.except, filepath.ToSlash(name)):
		case slices.Contains(p.first, filepath.ToSlash(name)):
			first = append(first, "./"+name)
		default:
			rest = append(rest, "./"+name)
		}
	}
	return append(first, rest...), nil
}

// modules returns the folders of the go.mod files that a part needs.
func (p part) modules() []string {
	all := []string{p.module, "test/tools"}
	if slices.Contains(p.packages, "test/script") || slices.Contains(p.packages, "test/browser") {
		all = append(all, "test/kubectl")
	}
	if slices.Contains(p.first, "test/signin") && !slices.Contains(p.flags, short) {
		all = append(all, "test/providers")
	}
	if p.module == "test/helm" {
		all = append(all, "", "test/kubectl")
	}
	if p.module == "infra/terraform/provider" {
		all = append(all, "", "test/tofu")
	}
	if p.module == "infra/release" {
		all = append(all, "", "infra/terraform/provider")
	}
	if slices.Contains(p.packages, "test/clients") {
		all = append(all, "docs/examples/typed")
	}
	return all
}

// packagePatterns returns patterns below the folder of a module.
func packagePatterns(patterns []string) []string {
	var all []string
	for _, pattern := range patterns {
		all = append(all, "./"+pattern)
	}
	return all
}

// packages reads the events of go test, and returns the packages that have tests, and the number of cached results.
func packages(events io.Reader, partName string) (packages []tested, cached int, err error) {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct {
			Action, Package, Test, Output string
			Elapsed                       float64
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, 0, fmt.Errorf("reading the events of go test: %w: %.200s", err, lines.Bytes())
		}
		switch {
		case event.Test != "" || event.Package == "":
		case event.Action == "output" && strings.Contains(event.Output, "\t(cached)"):
			cached++
		case event.Action == "pass" || event.Action == "fail":
			packages = append(packages, tested{partName, event.Package, time.Duration(event.Elapsed * float64(time.Second))})
		}
	}
	return packages, cached, lines.Err()
}

// print writes the parts and the slowest packages.
func (r *report) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\npart\ttime\tprocessors\tpackages\tcached\t\n")
	var processor time.Duration
	for _, cost := range r.rows {
		processor += cost.processor
		counts := "\t\t"
		if cost.packages > 0 {
			counts = fmt.Sprintf("%d\t%d\t", cost.packages, cost.cached)
		}
		state := ""
		if cost.failed {
			state = " FAILED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s%s\n", cost.name, seconds(cost.wall), seconds(cost.processor), counts, state)
	}
	fmt.Fprintf(table, "all\t%s\t%s\t\t\t\n", seconds(time.Since(r.begun)), seconds(processor))
	_ = table.Flush()
	if left, err := freeBytes(r.folder); err == nil {
		fmt.Fprintf(w, "disk: %.1f GB written, %.1f GB are free\n", float64(r.free-left)/(1<<30), float64(left)/(1<<30))
	}
	slices.SortFunc(r.tests, func(a, b tested) int { return cmp.Compare(b.wall, a.wall) })
	if len(r.tests) > 0 {
		fmt.Fprintln(w, "the slowest packages:")
	}
	for _, one := range r.tests[:min(slowest, len(r.tests))] {
		fmt.Fprintf(w, "%8.1f s  %s  %s\n", one.wall.Seconds(), one.part, strings.TrimPrefix(one.name, "management.platform.sh/"))
	}
}

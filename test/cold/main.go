// Command cold measures what a function costs where it starts for a request: the size of its program for AWS Lambda,
// the time from the start of the process to its first answer, and the time of an answer after that, beside a bare
// program of net/http in the same run. Requests carry no credential; the state, on loopback, is empty. A scheduled function
// first responds that it serves no requests, and then runs: its work is not part of its start. Beside that stands how long
// packages initialize themselves, and which of them take longest. Source: ADR-0010.
//
//	go run ./test/cold
//	go run ./test/cold getaccesskey patchaccesskey
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alicebob/miniredis/v2"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/lambda/bootstrap"
	"management.platform.sh/infra/lambda/lambdatest"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/state/encryption"
)

const (
	// rounds is how often each program is started.
	rounds = 20
	// warm is how many answers are measured after the first of each round.
	warm = 50
	// traces is how often each program is started to see what its packages do. The time of a package is the least of them: a
	// pause of the machine falls on one package.
	traces = 5
	// named is how many packages are named in a row.
	named = 3
)

// bare fetches requests and responds to them without code of the platform.
const bare = `package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	api := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	for {
		call, err := http.Get(api + "next")
		if err != nil {
			os.Exit(1)
		}
		io.Copy(io.Discard, call.Body)
		call.Body.Close()
		answer, err := http.Post(api+call.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/response", "application/json", strings.NewReader("{}"))
		if err != nil {
			os.Exit(1)
		}
		answer.Body.Close()
	}
}
`

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cold:", err)
		os.Exit(1)
	}
}

// program is one that is measured.
type program struct {
	name, file string
	// starting is the event of its first answer, event is the event of the other answers.
	starting, event string
	size            int64
	first, later    []time.Duration
	// packages is how long each package initializes itself, at the start at which it took least.
	packages map[string]time.Duration
}

// run measures the functions of those names, or all.
func run(out io.Writer, names []string) error {
	folder, err := os.MkdirTemp("", "cold-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	programs, err := build(folder, names)
	if err != nil {
		return err
	}
	state, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer state.Close()
	variables := []string{
		"PLATFORM_REDIS_URL=redis://" + state.Addr(), "PLATFORM_ENCRYPTION_KEY=" + encryption.Generate().Reveal(), "PLATFORM_LOG_LEVEL=error",
	}
	for range rounds {
		for _, p := range programs {
			if err := p.measure(variables...); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	for range traces {
		for _, p := range programs {
			if err := p.trace(variables...); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "program\tMiB\tstart to first answer, ms\tof net/http\tanswer after, µs\tinitializing, ms\tmost of it\t")
	for _, p := range programs {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%d\t%.1f\t%s\t\n", p.name, float64(p.size)/(1<<20), milliseconds(median(p.first)),
			float64(median(p.first))/float64(median(programs[0].first)), median(p.later).Microseconds(),
			milliseconds(p.initializing()), p.most())
	}
	return table.Flush()
}

func milliseconds(of time.Duration) float64 { return float64(of.Microseconds()) / 1000 }

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

// build builds the bare program and the functions of those names, or all, for this machine.
func build(folder string, names []string) ([]*program, error) {
	for _, name := range names {
		if !slices.ContainsFunc(catalog.Functions, func(f *frame.Function) bool { return f.Name == name }) {
			return nil, fmt.Errorf("the catalog has no function %q", name)
		}
	}
	source := filepath.Join(folder, "bare.go")
	if err := os.WriteFile(source, []byte(bare), 0o600); err != nil {
		return nil, err
	}
	programs := []*program{{name: "net/http", file: filepath.Join(folder, "bare"), starting: "{}", event: "{}"}}
	if err := compile(programs[0].file, source); err != nil {
		return nil, err
	}
	packages := []string{}
	for _, f := range catalog.Functions {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		packages = append(packages, "./infra/lambda/functions/"+f.Name)
		p := &program{name: f.Name, file: filepath.Join(folder, f.Name), starting: request(http.MethodGet, "/")}
		if f.Schedule != nil {
			p.event = `{"version":"0","source":"aws.events","detail-type":"Scheduled Event"}`
		} else {
			path := strings.NewReplacer("{", "", "}", "").Replace(f.Endpoints[0].Path)
			p.event = request(f.Endpoints[0].Method, path)
			p.starting = p.event
		}
		programs = append(programs, p)
	}
	if err := compile(folder+string(filepath.Separator), packages...); err != nil {
		return nil, err
	}
	for _, p := range programs {
		info, err := os.Stat(p.file)
		if err != nil {
			return nil, err
		}
		p.size = info.Size()
	}
	return programs, nil
}

func compile(output string, packages ...string) error {
	command := bootstrap.Command(output, packages...)
	command.Stderr = os.Stderr
	return command.Run()
}

// request is the event of a request below the management paths.
func request(method, path string) string {
	return fmt.Sprintf(`{"version":"2.0","rawPath":%q,"headers":{},"requestContext":{"http":{"method":%q}}}`, frame.BasePath+path, method)
}

// measure starts a program once.
func (p *program) measure(variables ...string) error {
	var said bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begun := time.Now()
	sandbox, err := lambdatest.Start(p.file, time.Minute, &said, variables...)
	if err != nil {
		return err
	}
	defer sandbox.Kill()
	for i := range warm + 1 {
		event := p.starting
		if i > 0 {
			begun, event = time.Now(), p.event
		}
		answer, err := sandbox.Call(ctx, []byte(event))
		if err != nil {
			return fmt.Errorf("%w; it says %s", err, &said)
		}
		took := time.Since(begun)
		if answer.Failed {
			return fmt.Errorf("it fails, and says %s", &said)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return err
		}
		answer.Close()
		if i == 0 {
			p.first = append(p.first, took)
		} else {
			p.later = append(p.later, took)
		}
	}
	return nil
}

// trace starts a program once and notes how long its packages initialize themselves.
func (p *program) trace(variables ...string) error {
	var said bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sandbox, err := lambdatest.Start(p.file, time.Minute, &said, append(slices.Clone(variables), "GODEBUG=inittrace=1")...)
	if err != nil {
		return err
	}
	answer, err := sandbox.Call(ctx, []byte(p.starting))
	if err == nil {
		answer.Close()
	}
	// The text is complete once the program has ended.
	sandbox.Kill()
	if err != nil {
		return err
	}
	took, err := initializations(said.String())
	if err != nil {
		return err
	}
	if p.packages == nil {
		p.packages = map[string]time.Duration{}
	}
	for name, duration := range took {
		if least, known := p.packages[name]; !known || duration < least {
			p.packages[name] = duration
		}
	}
	return nil
}

// initializing is how long all packages together take.
func (p *program) initializing() time.Duration {
	sum := time.Duration(0)
	for _, took := range p.packages {
		sum += took
	}
	return sum
}

// initializations reads what the runtime says under GODEBUG=inittrace=1: a line for each package, such as
// "init net/http @1.2 ms, 0.03 ms clock, 1 bytes, 2 allocs".
func initializations(text string) (map[string]time.Duration, error) {
	found := map[string]time.Duration{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[0] != "init" || !strings.HasPrefix(fields[2], "@") {
			continue
		}
		duration, err := strconv.ParseFloat(fields[4], 64)
		if err != nil || fields[5] != "ms" {
			return nil, fmt.Errorf("the runtime says %q", line)
		}
		found[fields[1]] = time.Duration(duration * float64(time.Millisecond))
	}
	if len(found) == 0 {
		return nil, errors.New("the runtime says nothing of packages that are initialized")
	}
	return found, nil
}

// most names the packages that take longest, with their times.
func (p *program) most() string {
	names := slices.SortedFunc(maps.Keys(p.packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.packages[b], p.packages[a]), cmp.Compare(a, b))
	})
	var text []string
	for _, name := range names[:min(named, len(names))] {
		text = append(text, fmt.Sprintf("%s %.2f", name, milliseconds(p.packages[name])))
	}
	return strings.Join(text, ", ")
}

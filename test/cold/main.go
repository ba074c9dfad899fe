// Command cold measures what a function costs where it starts for a request: the size of its program for AWS Lambda,
// the time from the start of the process to its first answer, and the time of an answer after that, beside a bare
// program of net/http in the same run. Requests carry no credential; the state, on loopback, is empty. A scheduled function
// first responds that it serves no requests, and then runs: its work is not part of its start. Source: ADR-0010.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cold:", err)
		os.Exit(1)
	}
}

// program is one that is measured.
type program struct {
	name, file string
	// starting is the event of its first answer, event that of the others.
	starting, event string
	size            int64
	first, later    []time.Duration
}

func run(out io.Writer) error {
	folder, err := os.MkdirTemp("", "cold-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	programs, err := build(folder)
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
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "program\tMiB\tstart to first answer, ms\tof net/http\tanswer after, µs\t")
	for _, p := range programs {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%d\t\n", p.name, float64(p.size)/(1<<20), float64(median(p.first).Microseconds())/1000,
			float64(median(p.first))/float64(median(programs[0].first)), median(p.later).Microseconds())
	}
	return table.Flush()
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

// build builds the bare program and all functions, for this machine.
func build(folder string) ([]*program, error) {
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

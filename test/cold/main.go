// Command cold measures what a function costs where it starts for a request: the size of its program for AWS Lambda,
// the time from the start of the process to its first answer, and the time of an answer after that, beside a bare
// program of net/http in the same run. It plays the runtime API of Lambda on loopback. Requests carry no credential and
// there is no state, so no time of a network is in the figures. Source: ADR-0010.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/function"
)

const (
	// rounds is how often each program is started.
	rounds = 20
	// warm is how many answers are measured after the first of each round.
	warm = 50
)

// bare asks for requests and answers them with nothing of ours.
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

// Flags are those that programs for Lambda are built with.
var Flags = []string{"-tags", "lambda.norpc,nethttpomithttp2", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cold:", err)
		os.Exit(1)
	}
}

// program is one that is measured.
type program struct {
	name, file, event string
	size              int64
	first, later      []time.Duration
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
	for range rounds {
		for _, p := range programs {
			if err := p.measure(); err != nil {
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
	programs := []*program{{name: "net/http", file: filepath.Join(folder, "bare"), event: "{}"}}
	if err := compile(programs[0].file, source); err != nil {
		return nil, err
	}
	packages := []string{}
	for _, f := range catalog.Functions {
		packages = append(packages, "./infra/lambda/functions/"+f.Name)
		programs = append(programs, &program{name: f.Name, file: filepath.Join(folder, f.Name), event: event(f)})
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
	command := exec.Command("go", slices.Concat([]string{"build"}, Flags, []string{"-o", output}, packages)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	return command.Run()
}

// event is what a function is called with.
func event(f *function.Function) string {
	if f.Schedule != nil {
		return `{"version":"0","source":"aws.events","detail-type":"Scheduled Event"}`
	}
	path := strings.NewReplacer("{", "", "}", "").Replace(f.Endpoints[0].Path)
	return fmt.Sprintf(`{"version":"2.0","rawPath":%q,"headers":{},"requestContext":{"http":{"method":%q}}}`, function.BasePath+path, f.Endpoints[0].Method)
}

// api is the runtime API: it hands out the event that it is given and tells when it was answered.
type api struct {
	server   *http.Server
	address  string
	events   chan string
	answered chan time.Time
}

func listen() (*api, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &api{address: listener.Addr().String(), events: make(chan string), answered: make(chan time.Time, 1)}
	a.server = &http.Server{Handler: a}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/invocation/next"):
		select {
		case text := <-a.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "call")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
		}
	case strings.HasSuffix(r.URL.Path, "/extension/register"):
		w.Header().Set("Lambda-Extension-Identifier", "x")
		_, _ = io.WriteString(w, "{}")
	case strings.HasSuffix(r.URL.Path, "/extension/event/next"):
		<-r.Context().Done()
	default:
		_, _ = io.Copy(io.Discard, r.Body)
		a.answered <- time.Now()
		w.WriteHeader(http.StatusAccepted)
	}
}

// measure starts a program once.
func (p *program) measure() error {
	// Of its own: the one before may still hold a request for an event.
	a, err := listen()
	if err != nil {
		return err
	}
	defer a.server.Close()
	command := exec.Command(p.file)
	// Nothing listens there: what needs the state fails at once.
	command.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + a.address, "PLATFORM_REDIS_URL=redis://127.0.0.1:1", "PLATFORM_CONFIG=" + os.DevNull, "PLATFORM_LOG_LEVEL=error"}
	var said bytes.Buffer
	command.Stderr = &said
	begun := time.Now()
	if err := command.Start(); err != nil {
		return err
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	for i := range warm + 1 {
		late := time.After(10 * time.Second)
		if i > 0 {
			begun = time.Now()
		}
		select {
		case a.events <- p.event:
		case <-late:
			return errors.New("it does not ask for a request")
		}
		select {
		case at := <-a.answered:
			if i == 0 {
				p.first = append(p.first, at.Sub(begun))
			} else {
				p.later = append(p.later, at.Sub(begun))
			}
		case <-late:
			_ = command.Process.Kill()
			_ = command.Wait()
			return fmt.Errorf("it does not answer, and says %s", &said)
		}
	}
	return nil
}

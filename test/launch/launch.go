// Package launch builds the local runner and kubectl for tests. It starts the runner in a process of its own, for tests that put load on it.
package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"management.platform.sh/shared/model/secret"
)

const (
	// readyWithin is the time within which a runner must be ready.
	readyWithin = 30 * time.Second
	// stopWithin is the time within which a runner must drain.
	stopWithin = 30 * time.Second
)

// The release of kubectl that test/kubectl builds. The linker sets it in kubectl.
const (
	kubectlMinor = "37"
	kubectlPatch = "2"
)

// Kubectl builds the unmodified kubectl of test/kubectl in build/test of the checkout at root, unless it is up to date, and returns
// its path.
func Kubectl(ctx context.Context, root string) (string, error) {
	program, err := filepath.Abs(filepath.Join(root, "build", "test", "kubectl"))
	if err != nil {
		return "", err
	}
	// Tests of two packages build it at the same time.
	if err := os.MkdirAll(filepath.Dir(program), 0o750); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(program+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("waiting for another build of kubectl: %w", err)
	}
	const set = "-X k8s.io/component-base/version."
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", set+"gitVersion=v1."+kubectlMinor+"."+kubectlPatch+" "+
		set+"gitMajor=1 "+set+"gitMinor="+kubectlMinor, "-o", program, ".")
	build.Dir = filepath.Join(root, "test", "kubectl") // a module of its own
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kubectl: %w\n%s", err, output)
	}
	return program, nil
}

// Runner is a runner that serves.
type Runner struct {
	// Server is the base URL of its plain HTTP listener.
	Server string
	// PID is the id of its process.
	PID int

	folder  string
	process *os.Process
	ended   chan struct{}
}

// Start builds the local runner, starts it on a data folder with free ports and waits until it is ready. It logs to logFile. Variables are its
// only settings, as NAME=value.
func Start(ctx context.Context, folder, logFile string, variables ...string) (*Runner, error) {
	program := filepath.Join(folder, "runner")
	if err := Build(ctx, program); err != nil {
		return nil, err
	}
	return StartProgram(ctx, []string{program}, folder, logFile, variables...)
}

// Build builds the local runner with flags of go build.
func Build(ctx context.Context, program string, flags ...string) error {
	build := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", program, "management.platform.sh/local")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the runner: %w", err)
	}
	return nil
}

// StartProgram is like Start for a runner that is already built. Program is its path and its first arguments.
func StartProgram(ctx context.Context, program []string, folder, logFile string, variables ...string) (*Runner, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(program[0], append(program[1:len(program):len(program)],
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", folder)...)
	command.Env = append(withoutPlatform(os.Environ()), variables...)
	command.Stderr = log
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the runner: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the runner: %w", err)
	}
	r := &Runner{PID: command.Process.Pid, folder: folder, process: command.Process, ended: make(chan struct{})}
	addresses := make(chan string, 1)
	go func() {
		defer close(r.ended)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if _, rest, ok := strings.Cut(lines.Text(), "plain HTTP"); ok {
				addresses <- strings.TrimSpace(rest)
			}
		}
		_, _ = io.Copy(io.Discard, output)
		_ = command.Wait()
	}()
	waiting, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	select {
	case r.Server = <-addresses:
	case <-r.ended:
		return nil, errors.New("starting the runner: it ended; --log keeps what it wrote")
	case <-waiting.Done():
		r.Stop()
		return nil, fmt.Errorf("starting the runner: %w", waiting.Err())
	}
	if err := r.waitUntilReady(waiting); err != nil {
		r.Stop()
		return nil, fmt.Errorf("waiting for the runner: %w", err)
	}
	return r, nil
}

// waitUntilReady waits until the runner is ready.
func (r *Runner) waitUntilReady(ctx context.Context) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Server+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop ends the runner. A runner that does not drain in time is killed.
func (r *Runner) Stop() {
	// The signal fails if the process has already ended.
	_ = r.process.Signal(syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(stopWithin):
		_ = r.process.Kill()
		<-r.ended
	}
}

// KeyFile returns the path of the file with the key of an admin.
func (r *Runner) KeyFile() string { return filepath.Join(r.folder, "admin.key") }

// Redis returns the URL of the Redis that the runner has started. Empty: this machine has no redis-server, and the state is in the process of
// the runner.
func (r *Runner) Redis() secret.String {
	socket := filepath.Join(r.folder, "redis", "redis.sock")
	if _, err := os.Stat(socket); err != nil {
		return ""
	}
	return secret.String("unix://" + socket)
}

// withoutPlatform returns the environment without the settings of the API, which could name another state.
func withoutPlatform(environment []string) []string {
	var variables []string
	for _, each := range environment {
		if !strings.HasPrefix(each, "PLATFORM_") {
			variables = append(variables, each)
		}
	}
	return variables
}

// RequireLoopback returns an error for an address of another machine: tests must not put load on it, or send it a bearer token in clear.
func RequireLoopback(server string) error {
	parsed, err := url.Parse(server)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	ip := net.ParseIP(parsed.Hostname())
	if parsed.Scheme != "http" || parsed.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--server: %q is not plain HTTP on a loopback address", server)
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// readyWithin is how long a runner may take until it is ready.
	readyWithin = 30 * time.Second
	// stopWithin is how long it may take to drain.
	stopWithin = 30 * time.Second
)

// startRunner builds the local runner, starts it on a data folder with free ports and waits until it is
// ready. It returns the base URL of its plain HTTP listener.
func startRunner(ctx context.Context, folder, logFile string) (server string, stop func(), err error) {
	program := filepath.Join(folder, "runner")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "management.platform.sh/local")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", nil, fmt.Errorf("building the runner: %w", err)
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("--log: %w", err)
	}
	defer func() { _ = log.Close() }()
	runner := exec.Command(program, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", folder)
	runner.Env = withoutPlatform(os.Environ())
	runner.Stderr = log
	output, err := runner.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("starting the runner: %w", err)
	}
	if err := runner.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the runner: %w", err)
	}
	ended := make(chan struct{})
	stop = func() {
		// It fails for a process that has ended by itself.
		_ = runner.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(stopWithin):
			_ = runner.Process.Kill()
			<-ended
		}
	}
	said := make(chan string, 1)
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if _, rest, ok := strings.Cut(lines.Text(), "plain HTTP"); ok {
				said <- strings.TrimSpace(rest)
			}
		}
		_, _ = io.Copy(io.Discard, output)
		_ = runner.Wait()
	}()
	waiting, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	select {
	case server = <-said:
	case <-ended:
		return "", nil, errors.New("starting the runner: it ended; --log keeps what it wrote")
	case <-waiting.Done():
		stop()
		return "", nil, fmt.Errorf("starting the runner: %w", waiting.Err())
	}
	for {
		request, err := http.NewRequestWithContext(waiting, http.MethodGet, server+"/readyz", nil)
		if err != nil {
			stop()
			return "", nil, fmt.Errorf("starting the runner: %w", err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return server, stop, nil
			}
		}
		select {
		case <-waiting.Done():
			stop()
			return "", nil, fmt.Errorf("waiting for the runner: %w", waiting.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// withoutPlatform is the environment without the settings of the API: they would reach another state.
func withoutPlatform(environment []string) []string {
	var kept []string
	for _, each := range environment {
		if !strings.HasPrefix(each, "PLATFORM_") {
			kept = append(kept, each)
		}
	}
	return kept
}

// Package state opens the Redis of a process on this machine: the given Redis, a child redis-server with its data on
// disk, or a Redis in this process that forgets everything. It also keeps the key that seals secrets in the state.
// Source: ADR-0002, ADR-0006.
package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
)

const (
	// readyWithin is how long a child redis-server may take to answer. It reads its data first.
	readyWithin = 30 * time.Second
	// restartPause is the pause before a redis-server is restarted.
	restartPause = 200 * time.Millisecond
	// maxSocketPath is the longest path of a unix socket that every system supports.
	maxSocketPath = 100
)

// Redis is the Redis of this process.
type Redis struct {
	Client      *redisstore.Client
	Description string
	Close       func() error
}

// Open connects to the Redis in the settings. Without one it starts a child redis-server with an append-only file in
// the data folder, if redis-server is on PATH. Otherwise it starts a Redis in this process that forgets everything at
// its end.
func Open(ctx context.Context, s settings.Settings, log *slog.Logger) (*Redis, error) {
	options, folder := options(s), s.Runner.Data
	if s.Redis.URL != "" {
		client, err := Connect(ctx, s)
		if err != nil {
			return nil, err
		}
		return &Redis{Client: client, Description: "Redis at " + Hosts(s.Redis.URL), Close: client.Close}, nil
	}
	if program, err := exec.LookPath("redis-server"); err == nil {
		return childState(ctx, program, options, folder, log)
	}
	server, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("starting the embedded state: %w", err)
	}
	client, err := redisstore.Open("redis://"+server.Addr(), options)
	if err != nil {
		return nil, err
	}
	return &Redis{
		Client:      client,
		Description: "in this process and VOLATILE: a restart loses all data, because redis-server is not on PATH",
		Close: func() error {
			defer server.Close()
			return client.Close()
		},
	}, nil
}

// Connect connects to the Redis of an operator. If it cannot be reached, the error names the setting.
func Connect(ctx context.Context, s settings.Settings) (*redisstore.Client, error) {
	client, err := redisstore.Open(s.Redis.URL.Reveal(), options(s))
	if err != nil {
		return nil, s.Wrong(s.Redis.URLFrom, err)
	}
	if err := client.Ping(ctx); err != nil {
		return nil, errors.Join(s.Wrong(s.Redis.URLFrom, err), client.Close())
	}
	return client, nil
}

func options(s settings.Settings) redisstore.Options {
	return redisstore.Options{
		PoolSize: s.Redis.PoolSize, Replicas: s.Redis.Replicas, Timeout: s.Redis.Timeout,
	}
}

// Hosts returns the servers in a URL, without its secrets.
func Hosts(given secret.String) string {
	var names []string
	for server := range strings.SplitSeq(given.Reveal(), ",") {
		// Further hosts of a cluster or of sentinels have no scheme and no credentials.
		server = strings.TrimSpace(server)
		if len(names) > 0 && !strings.Contains(server, "://") {
			server = "redis://" + server
		}
		if parsed, err := url.Parse(server); err == nil {
			names = append(names, parsed.Host+parsed.Path)
		}
	}
	return strings.Join(names, ", ")
}

// childState runs a redis-server on a unix socket, and restarts it if it ends by itself.
func childState(ctx context.Context, program string, options redisstore.Options, folder string, log *slog.Logger) (*Redis, error) {
	data, err := filepath.Abs(filepath.Join(folder, "redis"))
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("--data: making the folder of the embedded state: %w", err)
	}
	keepPrivate()
	if err := makePrivate(data); err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	sockets, cleanUp := data, func() {}
	if len(data) > maxSocketPath-len("/redis.sock") {
		if sockets, err = os.MkdirTemp("", "platform-"); err != nil {
			return nil, fmt.Errorf("making a folder for the socket: %w", err)
		}
		cleanUp = func() { _ = os.RemoveAll(sockets) }
	}
	socket := filepath.Join(sockets, "redis.sock")
	client, err := redisstore.Open("unix://"+socket, options)
	if err != nil {
		cleanUp()
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		supervise(running, program, data, socket, log)
	}()
	shut := func() error {
		stop()
		<-ended
		cleanUp()
		return client.Close()
	}
	if err := waitReady(ctx, client); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", program, err), shut())
	}
	return &Redis{
		Client:      client,
		Description: "redis-server as a child process; every write is on disk in " + filepath.Join(folder, "redis"),
		Close:       shut,
	}, nil
}

// makePrivate makes the files in a folder readable for their user alone. A redis-server makes its append-only files
// with the rights that its umask leaves.
func makePrivate(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return root.Chmod(path, 0o600)
	})
}

// supervise keeps a redis-server running until the context ends.
func supervise(ctx context.Context, program, data, socket string, log *slog.Logger) {
	// The child is tied to this thread; see dieTogether.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		command := exec.Command(program,
			"--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
			"--dir", data, "--appendonly", "yes", "--appendfsync", "always", "--save", "",
			"--maxmemory-policy", "noeviction", "--daemonize", "no", "--loglevel", "warning", "--logfile", filepath.Join(data, "redis.log"))
		dieTogether(command)
		if err := command.Start(); err != nil {
			log.Error("starting redis-server", "error", err.Error())
		} else {
			done := make(chan struct{})
			var outcome error
			go func() {
				defer close(done)
				outcome = command.Wait()
			}()
			select {
			case <-done:
				log.Error("redis-server ended; restarting it", "error", fmt.Sprint(outcome))
			case <-ctx.Done():
				// The child writes its data and ends. No other process uses it.
				_ = command.Process.Signal(os.Interrupt)
				select {
				case <-done:
				case <-time.After(readyWithin):
					_ = command.Process.Kill()
					<-done
				}
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartPause):
		}
	}
}

func waitReady(ctx context.Context, client *redisstore.Client) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := client.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

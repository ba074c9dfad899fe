package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"management.platform.sh/shared/model/secret"
)

// The names of what the API is compared with.
const (
	rawRedis   = "redis GET"
	plainHello = "hello"
	redisHello = "hello, 2 round trips"
)

// valueSize is about that of an access key.
const valueSize = 1024

// helloCommand serves in a process of its own, as the API does, with the same number of processors. It ends
// when its standard input does, so that it never outlives the process that started it.
type helloCommand struct {
	Redis secret.String `env:"LOAD_HELLO_REDIS"`
	Key   string
}

// Run prints the address and serves.
func (c *helloCommand) Run(context.Context) error {
	mux := http.NewServeMux()
	answer := bytes.Repeat([]byte("x"), valueSize)
	write := func(w http.ResponseWriter, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
	mux.HandleFunc("GET /plain", func(w http.ResponseWriter, _ *http.Request) { write(w, answer) })
	if c.Redis != "" {
		client, err := openRedis(c.Redis)
		if err != nil {
			return err
		}
		mux.HandleFunc("GET /redis", func(w http.ResponseWriter, r *http.Request) {
			var body []byte
			for range 2 {
				var err error
				if body, err = client.Get(r.Context(), c.Key).Bytes(); err != nil {
					http.Error(w, "the state cannot be reached", http.StatusServiceUnavailable)
					return
				}
			}
			write(w, body)
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// openRedis sets the client up as the API's store does.
func openRedis(url secret.String) (*redis.Client, error) {
	options, err := redis.ParseURL(url.Reveal())
	if err != nil {
		return nil, errors.New("--redis: it is not redis://, rediss:// or unix://")
	}
	logging.Disable()
	options.Protocol, options.DisableIdentity = 2, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.PoolSize, options.MaxRetries = 64, -1
	return redis.NewClient(options), nil
}

// floor is what the API is compared with: a process with the bare handlers, and Redis.
type floor struct {
	address string
	redis   *redis.Client
	key     string
	input   io.Closer
	process *exec.Cmd
}

// startFloor starts the bare handlers. Without a Redis there is only the plainest.
func startFloor(ctx context.Context, url secret.String, run string) (*floor, error) {
	f := &floor{key: "load:" + run}
	if url != "" {
		var err error
		if f.redis, err = openRedis(url); err != nil {
			return nil, err
		}
		// It expires by itself if this process ends before it removes it.
		if err := f.redis.Set(ctx, f.key, bytes.Repeat([]byte("x"), valueSize), time.Hour).Err(); err != nil {
			return nil, errors.Join(fmt.Errorf("--redis: %w", err), f.redis.Close())
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	f.process = exec.Command(program, "hello", "--key", f.key)
	f.process.Env = append(os.Environ(), "LOAD_HELLO_REDIS="+url.Reveal())
	f.process.Stderr = os.Stderr
	if f.input, err = f.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting hello: %w", err)
	}
	output, err := f.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting hello: %w", err)
	}
	if err := f.process.Start(); err != nil {
		return nil, fmt.Errorf("starting hello: %w", err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		f.stop()
		return nil, fmt.Errorf("starting hello: %w", err)
	}
	f.address = strings.TrimSpace(line)
	return f, nil
}

// stop ends the process and removes the value.
func (f *floor) stop() {
	_ = f.input.Close()
	_ = f.process.Wait()
	if f.redis != nil {
		_ = f.redis.Del(context.Background(), f.key).Err()
		_ = f.redis.Close()
	}
}

func (f *floor) subjects() []subject {
	hello := func(name, path string) subject {
		request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + f.address + "\r\n\r\n")
		return subject{name: name, client: func(ctx context.Context, _ int) (*client, error) {
			return httpClient(ctx, f.address, func() []byte { return request })
		}}
	}
	if f.redis == nil {
		return []subject{hello(plainHello, "/plain")}
	}
	raw := subject{name: rawRedis, client: func(context.Context, int) (*client, error) {
		return &client{
			step:  func(ctx context.Context) error { return f.redis.Get(ctx, f.key).Err() },
			close: func() {},
		}, nil
	}}
	return []subject{raw, hello(plainHello, "/plain"), hello(redisHello, "/redis")}
}

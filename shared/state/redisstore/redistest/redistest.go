// Package redistest starts Redis for tests: embedded, as a process of its own that can be killed, stopped and started
// again, and as a cluster. It also opens clients that wait longer than a busy machine takes. Source: Spec 7; ADR-0002.
//
// It is not for production. It uses no fixed port and only servers that it started itself. The servers end with the
// test process, however the process ends.
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"management.platform.sh/shared/state/redisstore"
)

// readiness bounds every wait for a server or a cluster.
const readiness = 30 * time.Second

// Patience is a timeout for tests that do not measure speed. A busy machine does not reach it.
const Patience = 30 * time.Second

// Open returns a client of the Redis at a URL, with the timeout Patience. It is closed with the test.
func Open(t testing.TB, url string) *redisstore.Client {
	t.Helper()
	client, err := redisstore.Open(url, redisstore.Options{Timeout: Patience})
	if err != nil {
		t.Fatalf("opening a client of Redis: %v", err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Embedded starts a server inside the test process and returns its URL. It ends with the test.
func Embedded(t testing.TB) string {
	t.Helper()
	return "redis://" + miniredis.RunT(t).Addr()
}

// Option changes how Server starts Redis.
type Option func(*Process)

// AppendOnly makes Redis log every write to disk before it answers.
func AppendOnly() Option {
	return func(p *Process) { p.args = append(p.args, "--appendonly", "yes", "--appendfsync", "always") }
}

// Password makes Redis ask for a password; URL and UnixURL contain it.
func Password(password string) Option {
	return func(p *Process) {
		p.password = password
		p.args = append(p.args, "--requirepass", password)
	}
}

// Argument adds a setting to the command line of redis-server, such as "--maxmemory", "1mb".
func Argument(args ...string) Option {
	return func(p *Process) { p.args = append(p.args, args...) }
}

// TLS makes Redis listen with TLS at a second port, which SecureURL returns. The arguments are PEM files; clients
// reports whether clients need a certificate of their own.
func TLS(certificate, key, authority string, clients bool) Option {
	return func(p *Process) {
		p.securePort = FreePort(p.t)
		auth := "no"
		if clients {
			auth = "yes"
		}
		p.args = append(p.args, "--tls-port", strconv.Itoa(p.securePort), "--tls-cert-file", certificate,
			"--tls-key-file", key, "--tls-ca-cert-file", authority, "--tls-auth-clients", auth)
	}
}

// Process is a redis-server process with a TCP port on loopback, a unix socket and a data directory. Its methods fail
// the test if they fail. It is not safe for concurrent use.
type Process struct {
	t          testing.TB
	port       int
	securePort int
	socket     string
	password   string
	args       []string
	output     *bytes.Buffer
	command    *exec.Cmd
}

// Server starts redis-server from PATH and waits until it answers. If redis-server is not in PATH, the test is
// skipped; if the environment variable CI is set, the test fails instead.
func Server(t testing.TB, options ...Option) *Process {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("redis-server is not in PATH: %v", err)
		}
		t.Skipf("redis-server is not in PATH: %v", err)
	}
	// Not under t.TempDir: the path of a socket must be short.
	socket, err := os.MkdirTemp("", "redis") //nolint:usetesting // its path may be too long for a socket
	if err != nil {
		t.Fatalf("making a directory for the socket: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(socket) })

	p := &Process{t: t, port: FreePort(t), socket: filepath.Join(socket, "s")}
	p.args = []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(p.port), "--unixsocket", p.socket,
		"--dir", t.TempDir(), "--save", "", "--loglevel", "warning",
	}
	for _, option := range options {
		option(p)
	}
	t.Cleanup(p.end)
	p.start()
	return p
}

// URL returns the URL of the TCP port.
func (p *Process) URL() string { return "redis://" + p.credentials() + p.address() }

// SecureURL returns the URL of the port with TLS.
func (p *Process) SecureURL() string {
	return fmt.Sprintf("rediss://%s127.0.0.1:%d", p.credentials(), p.securePort)
}

func (p *Process) Address() string { return p.address() }

// UnixURL returns the URL of the unix socket.
func (p *Process) UnixURL() string { return "unix://" + p.credentials() + p.socket }

func (p *Process) address() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

func (p *Process) credentials() string {
	if p.password == "" {
		return ""
	}
	return ":" + p.password + "@"
}

// Kill ends the server at once, as a crash does, and waits until it is gone.
func (p *Process) Kill() {
	p.t.Helper()
	p.end()
}

// Stop suspends the server: connections stay, but it does not answer.
func (p *Process) Stop() { p.signal(syscall.SIGSTOP) }

// Cont resumes a suspended server.
func (p *Process) Cont() { p.signal(syscall.SIGCONT) }

// Restart starts the server again with the same addresses, settings and data directory.
func (p *Process) Restart() {
	p.t.Helper()
	p.end()
	p.start()
}

// WroteElsewhere marks the last write to a resource as made by another server, as in a copy of a state. Source:
// ADR-0041.
func (p *Process) WroteElsewhere(resource string) {
	p.t.Helper()
	client := p.client()
	defer client.Close()
	if err := client.Set(context.Background(), "p1:{"+resource+"}:server", "0123456789abcdef", 0).Err(); err != nil {
		p.t.Fatalf("naming another server: %v", err)
	}
}

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatalf("sending %v to redis-server: %v", s, err)
	}
}

func (p *Process) end() {
	if p.command == nil {
		return
	}
	// Both calls fail only if the process has ended by itself.
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
	p.command = nil
}

func (p *Process) start() {
	p.t.Helper()
	p.output = &bytes.Buffer{}
	command := exec.Command("redis-server", p.args...)
	command.Stdout, command.Stderr = p.output, p.output
	command.SysProcAttr = endWithParent()
	if err := spawn(command); err != nil {
		p.t.Fatalf("starting redis-server: %v", err)
	}
	p.command = command

	client := p.client()
	defer client.Close()
	if !poll(func() bool { return client.Ping(context.Background()).Err() == nil }) {
		p.end()
		p.t.Fatalf("redis-server did not become ready; it wrote:\n%s", p.output)
	}
}

func (p *Process) client() *redis.Client {
	// The library would log an error for each attempt while the server starts.
	logging.Disable()
	return redis.NewClient(&redis.Options{
		Addr: p.address(), Password: p.password, Protocol: 2, DisableIdentity: true,
		DialTimeout: time.Second, DialerRetries: 1, MaxRetries: -1,
	})
}

// Replica starts a replica of a server and waits until it is in sync.
func Replica(t testing.TB, of *Process, options ...Option) *Process {
	t.Helper()
	// The full copy is small and needs no pause before it.
	p := Server(t, append(options, Argument("--replicaof", "127.0.0.1", strconv.Itoa(of.port), "--repl-diskless-sync-delay", "0"))...)
	client := p.client()
	defer client.Close()
	if !poll(func() bool {
		return strings.Contains(client.Info(context.Background(), "replication").Val(), "master_link_status:up")
	}) {
		t.Fatalf("the replica did not connect; it wrote:\n%s", p.output)
	}
	return p
}

// Sentinel starts a sentinel that monitors a server under a name with a quorum of one, and waits until it has found
// that many replicas.
func Sentinel(t testing.TB, name string, of *Process, replicas int) *Process {
	t.Helper()
	p := &Process{t: t, port: FreePort(t)}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	config := fmt.Sprintf("bind 127.0.0.1\nport %d\nsentinel monitor %s 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds %s 1000\nsentinel failover-timeout %s 10000\n", p.port, name, of.port, name, name)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatalf("writing the configuration of a sentinel: %v", err)
	}
	p.args = []string{file, "--sentinel"}
	t.Cleanup(p.end)
	p.start()
	client := redis.NewSentinelClient(&redis.Options{Addr: p.address(), Protocol: 2})
	defer client.Close()
	if !poll(func() bool { return len(client.Replicas(context.Background(), name).Val()) == replicas }) {
		t.Fatalf("the sentinel did not find %d replicas; it wrote:\n%s", replicas, p.output)
	}
	return p
}

// Cluster starts a cluster of three masters and returns its URL.
func Cluster(t testing.TB) string {
	t.Helper()
	var urls []string
	for _, node := range Nodes(t) {
		urls = append(urls, node.URL())
	}
	return strings.Join(urls, ",")
}

// Nodes starts a cluster of three masters and returns them once each reports that the cluster is healthy.
func Nodes(t testing.TB) []*Process {
	t.Helper()
	const nodes, slots = 3, 16384
	var processes []*Process
	var clients []*redis.Client
	var buses []int
	ctx := context.Background()
	for i := range nodes {
		bus := FreePort(t)
		p := Server(t, Argument("--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "5000"))
		client := p.client()
		t.Cleanup(func() { client.Close() })
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatalf("setting the epoch of node %d: %v", i, err)
		}
		first, last := slots*i/nodes, slots*(i+1)/nodes-1
		if err := client.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", first, last).Err(); err != nil {
			t.Fatalf("giving slots to node %d: %v", i, err)
		}
		clients, buses, processes = append(clients, client), append(buses, bus), append(processes, p)
	}
	for i := 1; i < nodes; i++ {
		host, port, _ := net.SplitHostPort(clients[i].Options().Addr)
		if err := clients[0].Do(ctx, "CLUSTER", "MEET", host, port, buses[i]).Err(); err != nil {
			t.Fatalf("joining node %d: %v", i, err)
		}
	}
	for i, client := range clients {
		var info string
		ready := poll(func() bool {
			info = client.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d", nodes))
		})
		if !ready {
			t.Fatalf("node %d is not healthy:\n%s", i, info)
		}
	}
	return processes
}

// ClusterReplica adds a replica of one of the Nodes to their cluster, and waits until it is in sync.
func ClusterReplica(t testing.TB, of *Process) *Process {
	t.Helper()
	ctx := context.Background()
	bus := FreePort(t)
	p := Server(t, Argument("--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "5000", "--repl-diskless-sync-delay", "0"))
	primary, client := of.client(), p.client()
	defer primary.Close()
	defer client.Close()
	id, err := primary.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		t.Fatalf("asking for the id of a node: %v", err)
	}
	if err := primary.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(p.port), bus).Err(); err != nil {
		t.Fatalf("joining a replica: %v", err)
	}
	// The node refuses the command until it knows the primary.
	if !poll(func() bool { return client.Do(ctx, "CLUSTER", "REPLICATE", id).Err() == nil }) {
		t.Fatalf("the replica does not know its primary; it wrote:\n%s", p.output)
	}
	if !poll(func() bool {
		return strings.Contains(client.Info(ctx, "replication").Val(), "master_link_status:up")
	}) {
		t.Fatalf("the replica did not connect; it wrote:\n%s", p.output)
	}
	return p
}

// poll calls ready until it returns true or the time is up.
func poll(ready func() bool) bool {
	for end := time.Now().Add(readiness); time.Now().Before(end); time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // bounded polling of a process
		if ready() {
			return true
		}
	}
	return false
}

// FreePort returns a TCP port of loopback on which nothing listens. No other test of this machine gets the same port until the test has
// ended, and no client gets it for an outgoing connection: systems do not choose ports below 32768 for these. So a server can be
// stopped and started again.
func FreePort(t testing.TB) int {
	t.Helper()
	port := 0
	if !poll(func() bool {
		port = 10000 + rand.N(22000)
		if runtime.GOOS == "linux" {
			// An abstract socket is a name that only one process of the machine can have at a time. It leaves no file.
			taken, err := net.Listen("unix", fmt.Sprintf("@platform-test-port-%d", port))
			if err != nil {
				return false
			}
			t.Cleanup(func() { _ = taken.Close() })
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		return err == nil && listener.Close() == nil
	}) {
		t.Fatal("finding a free port: there is none")
	}
	return port
}

var spawner struct {
	once     sync.Once
	commands chan *exec.Cmd
	errors   chan error
}

// spawn starts a command on a thread that lives as long as the process. The kernel ends a child together with the
// thread that started it, so this thread must not end earlier.
func spawn(command *exec.Cmd) error {
	spawner.once.Do(func() {
		spawner.commands, spawner.errors = make(chan *exec.Cmd), make(chan error)
		go func() {
			runtime.LockOSThread()
			for command := range spawner.commands {
				spawner.errors <- command.Start()
			}
		}()
	})
	spawner.commands <- command
	return <-spawner.errors
}

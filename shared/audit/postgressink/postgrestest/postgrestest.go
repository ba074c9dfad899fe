// Package postgrestest starts PostgreSQL for tests, as a process of its own that can be stopped, killed and started
// again. It uses no fixed port and only servers that it started itself. Source: Spec 2.7; ADR-0016.
package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"management.platform.sh/shared/state/redisstore/redistest"
)

// readiness bounds every wait for a server.
const readiness = 60 * time.Second

// password is in every URL, so that tests can look for it.
const password = "hunter2-of-the-test"

// Process is a PostgreSQL server on loopback. Its methods fail the test if they fail. It is not safe for concurrent use.
type Process struct {
	t       testing.TB
	folder  string
	port    int
	server  string
	account *syscall.Credential
	output  *bytes.Buffer
	command *exec.Cmd
}

// Server starts a PostgreSQL and waits until it answers. If PostgreSQL is not installed, the test is skipped; if the
// environment variable CI is set, the test fails instead. PostgreSQL refuses to run as root: if the test runs as root,
// the server runs as the user of Debian's package.
func Server(t testing.TB) *Process {
	t.Helper()
	initdb, server := program("initdb"), program("postgres")
	if initdb == "" || server == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("PostgreSQL is not installed")
		}
		t.Skip("PostgreSQL is not installed")
	}
	folder, err := os.MkdirTemp("", "postgres") //nolint:usetesting // another user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	p := &Process{t: t, folder: folder, server: server, port: redistest.FreePort(t)}
	if os.Geteuid() == 0 {
		p.account = postgres(t)
		if err := os.Chown(folder, int(p.account.Uid), int(p.account.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(folder, "password")
	if err := os.WriteFile(secret, []byte(password), 0o644); err != nil {
		t.Fatal(err)
	}
	command := p.run(initdb, "-D", filepath.Join(folder, "data"), "-U", "audit", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--no-locale", "-N")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	t.Cleanup(p.Kill)
	p.Start()
	return p
}

// program finds a program of PostgreSQL. Debian does not put it into PATH.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// postgres is the account of the package.
func postgres(t testing.TB) *syscall.Credential {
	account, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("PostgreSQL does not run as root: %v", err)
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (p *Process) run(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.Dir = p.folder
	command.SysProcAttr = &syscall.SysProcAttr{Credential: p.account}
	return command
}

// URL returns the URL of the database "postgres", which contains the password.
func (p *Process) URL() string {
	return fmt.Sprintf("postgres://audit:%s@127.0.0.1:%d/postgres?sslmode=disable", password, p.port)
}

// Password returns the password in URL.
func (p *Process) Password() string { return password }

// Connect opens a connection that ends with the test.
func (p *Process) Connect() *pgx.Conn {
	p.t.Helper()
	connection, err := pgx.Connect(p.t.Context(), p.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

// Start starts the server again, with the same data and port.
func (p *Process) Start() {
	p.t.Helper()
	p.output = &bytes.Buffer{}
	p.command = p.run(p.server, "-D", filepath.Join(p.folder, "data"), "-p", strconv.Itoa(p.port), "-k", "",
		"-c", "listen_addresses=127.0.0.1")
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
	deadline := time.Now().Add(readiness)
	for {
		connection, err := pgx.Connect(context.Background(), p.URL())
		if err == nil {
			_ = connection.Close(context.Background())
			return
		}
		if time.Now().After(deadline) {
			p.Kill()
			p.t.Fatalf("PostgreSQL does not answer: %v\n%s", err, p.output)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// Kill ends the server at once, as a crash does.
func (p *Process) Kill() {
	if p.command == nil {
		return
	}
	// SIGQUIT ends its children as well, without writing anything.
	_ = p.command.Process.Signal(syscall.SIGQUIT)
	_ = p.command.Wait()
	p.command = nil
}

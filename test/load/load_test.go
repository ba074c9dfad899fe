package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"management.platform.sh/local/runner"
	"management.platform.sh/shared/model/secret"
)

// TestMain runs the program itself if this binary was started with one of its hidden commands.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "floor":
		main()
	case len(os.Args) > 1 && os.Args[1] == "serve":
		os.Exit(serve())
	}
	os.Exit(m.Run())
}

// serve runs the runner and returns its exit code.
func serve() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	command := struct {
		Serve runner.Serve `cmd:""`
	}{runner.New("load")}
	if err := kong.Parse(&command, kong.BindTo(ctx, (*context.Context)(nil))).Run(); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		return 1
	}
	return 0
}

// A ratio compares two measurements of the same run and round. Measurements of two runs have no ratio.
func TestRatios(t *testing.T) {
	t.Parallel()
	samples := func(side string, rates ...float64) []sample {
		var made []sample
		for round, rate := range rates {
			made = append(made, sample{Side: side, Op: opGet, Clients: 16, Round: round, Rate: rate})
		}
		return made
	}
	both := run{Samples: slices.Concat(samples("platform", 100, 300), samples(floorName, 200, 300))}
	mine, theirs := run{Samples: samples("platform", 1000)}, run{Samples: samples(floorName, 10)}
	for name, row := range map[string]struct {
		runs []run
		want values
	}{
		"each round by itself":            {[]run{both}, values{0.5, 1}},
		"what is alone in its run is not": {[]run{mine, both, theirs}, values{0.5, 1}},
		"two runs":                        {[]run{mine, theirs}, nil},
		"a side without answers":          {[]run{{Samples: slices.Concat(samples("platform", 1), samples(floorName, 0))}}, nil},
		"another number of clients":       {[]run{{Samples: append(samples("platform", 1), sample{Side: floorName, Op: opGet, Clients: 1, Rate: 1})}}, nil},
	} {
		if got := ratios(row.runs, opGet, 16, "platform", floorName); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v instead of %v", name, got, row.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	if err := markdown(&bytes.Buffer{}, []run{{}}); err == nil {
		t.Error("a table of nothing is printed")
	}
	var out bytes.Buffer
	if err := markdown(&out, []run{{
		Begun: "2026-01-02T03:04:05Z", Rounds: 1, Seconds: 2, Machine: machine{CPU: "Tested", Procs: 2, SyncMicroseconds: 44, Others: 0.25},
		Sides:  []sideReport{{Name: "platform", About: "with an audit", Server: 50, Store: 9}, {Name: floorName}, {Name: openBaoName}},
		Absent: []string{"kube-apiserver, because it is not there"},
		Samples: []sample{
			{Side: "platform", Op: opToken, Clients: 16, Rate: 100, Server: 0.5, Store: 0.25, P50: 1500, P99: 2500},
			{Side: openBaoName, Op: opToken, Clients: 16, Rate: 50},
			{Side: "platform", Op: opGet, Clients: 16, Rate: 300},
			{Side: floorName, Op: opGet, Clients: 16, Rate: 400},
		},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{
		"| get | 16 | 300 (300 to 300) | 0.75 (0.75 to 0.75) | - |",
		"| token (ES256) | 16 | 100 (100 to 100) | - | 2.00 (2.00 to 2.00) | 0.50 (0.50 to 0.50) | 0.25 (0.25 to 0.25) |",
		"| token (ES256) | 16 | platform | 100 (100 to 100) | 1.50 | 2.50 | 0.500 | 0.250 |",
		"Tested, 2 processors", "used 25 % of the processors", "after 44 us", "with an audit; 50 MB after the run, its store 9 MB",
		"Not measured: kube-apiserver, because it is not there.",
	} {
		if !strings.Contains(out.String(), wanted) {
			t.Errorf("the report has no %q:\n%s", wanted, &out)
		}
	}
	if strings.Index(out.String(), "| get |") > strings.Index(out.String(), "| token (ES256) |") {
		t.Error("the operations are not in their order")
	}
}

// A connection reads each answer to its end, with a length or with chunks, so that the next answer starts at its beginning.
func TestConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/chunks":
			for i := range 3 {
				fmt.Fprint(w, strings.Repeat("x", 100*i), "\r\n")
				w.(http.Flusher).Flush()
			}
		case "/refused":
			w.WriteHeader(http.StatusTeapot)
		default:
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"42"}}`)
		}
	}))
	defer server.Close()
	connection, err := plainDialer(server.Listener.Addr().String()).connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.conn.Close()
	connection.keep = true
	for _, row := range []struct {
		path string
		want int
	}{{"/", 200}, {"/chunks", 200}, {"/refused", http.StatusTeapot}, {"/chunks", 200}, {"/", 200}} {
		status, err := connection.send([]byte("GET " + row.path + " HTTP/1.1\r\nHost: test\r\n\r\n"))
		if err != nil || status != row.want {
			t.Fatalf("%s: %d, %v", row.path, status, err)
		}
	}
	if got := versionIn(connection.body); got != "42" {
		t.Errorf("the version is %q", got)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	got, err := parseStat([]byte("7 (a ) name) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 1 2 3"))
	if err != nil || got != 2 {
		t.Errorf("%v s, %v", got, err)
	}
	for _, text := range []string{"", "7 (x) S 1 2", "7 (x) S 1 7 7 0 -1 4194560 1 2 3 4 many 50 0"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	own, err := processes{os.Getpid()}.resident()
	if err != nil || own <= 0 {
		t.Errorf("this process has %v MB, %v", own, err)
	}
}

// All operations of the runner and of the floor are measured without an error. The peers are not on PATH.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a runner")
	}
	redis, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("redis-server is not on PATH")
	}
	folder := t.TempDir()
	if err := os.Symlink(redis, filepath.Join(folder, "redis-server")); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(folder, "platform")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec %q serve \"$@\"\n", program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	const keys = 2*objects + 100
	c := &runCommand{
		Program: []string{script}, Keys: []int{keys}, Floor: true, Peers: true, Audit: true, Log: os.DevNull,
		Clients: []int{2}, Duration: 50 * time.Millisecond, Rounds: 2, Op: operations,
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	result, err := c.measure(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := result.failure(); err != nil {
		t.Error(err)
	}
	if want := 2 * 2 * len(operations); len(result.Samples) != want {
		t.Errorf("there are %d measurements instead of %d", len(result.Samples), want)
	}
	if len(result.Absent) != 2 || len(result.Sides) != 2 || result.Sides[0].Server <= 0 || result.Sides[0].Store <= 0 {
		t.Errorf("the sides are %+v, absent are %q", result.Sides, result.Absent)
	}
}

// Seeded keys behave like created keys: each key is found by its name, and all keys are listed.
func TestSeed(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a runner")
	}
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") == "" {
		t.Skip("redis-server is not on PATH")
	}
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	const keys = 2*objects + 100
	started, side, err := startPlatform(t.Context(), platformOptions{
		name: "seeded", program: []string{program, "serve"}, folder: folder, log: os.DevNull, keys: keys,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer side.stop()
	var last struct {
		Metadata struct{ Name, UID string }
	}
	if err := started.api.ask(t.Context(), http.MethodGet, started.api.item(keptName(keys-1)), nil, &last); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []struct{ Metadata struct{ Name, UID string } }
	}
	if err := started.api.ask(t.Context(), http.MethodGet, keysPath, nil, &list); err != nil {
		t.Fatal(err)
	}
	uids := map[string]bool{}
	for _, item := range list.Items {
		uids[item.Metadata.UID] = true
	}
	// The admin's key is one more.
	if last.Metadata.Name != keptName(keys-1) || len(list.Items) != keys+1 || len(uids) != keys+1 || !uids[last.Metadata.UID] {
		t.Errorf("there are %d keys with %d uids, and the last is %+v", len(list.Items), len(uids), last)
	}
	var answer map[string]any
	if err := started.api.ask(t.Context(), http.MethodDelete, started.api.item(keptName(keys-1)), nil, &answer); err != nil {
		t.Errorf("a seeded key cannot be deleted: %v", err)
	}
}

// Only a program that is not found is absent.
func TestAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := startKubernetes(context.Background(), t.TempDir(), false); err == nil || !strings.Contains(err.Error(), errAbsent.Error()) {
		t.Errorf("kube-apiserver: %v", err)
	}
	if _, err := openRedis(secret.String("http://127.0.0.1")); err == nil {
		t.Error("an address that is not one of Redis is accepted")
	}
}

//go:build unix

package script_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"management.platform.sh/infra/lambda/lambdatest"
)

// shape is a way to run the API: one process with all functions, or processes for each function behind a gateway.
type shape string

const (
	// localRunner is the local runner.
	localRunner shape = "local"
	// frameworkServers is one server of the Functions Framework for each function, as on Cloud Run and Knative.
	frameworkServers shape = "framework"
	// The programs for AWS Lambda under its runtime API, behind each kind of gateway.
	lambdaHTTPAPI     shape = "lambda-httpapi"
	lambdaRESTAPI     shape = "lambda-restapi"
	lambdaBalancer    shape = "lambda-balancer"
	lambdaFunctionURL shape = "lambda-url"
)

var shapes = []shape{localRunner, frameworkServers, lambdaHTTPAPI, lambdaRESTAPI, lambdaBalancer, lambdaFunctionURL}

// shortRunShapes are the shapes of a short run: the runner, and a shape in which each function is a process of its own.
var shortRunShapes = []shape{localRunner, frameworkServers}

// storiesOfEveryShape are the stories that run in every shape: reads and writes, lists, watches, errors and large bodies. Gateways for AWS Lambda
// differ only in the form of their events and answers, which infra/lambda tests byte by byte, so only one of them runs all stories. The servers
// of the Functions Framework run all stories unless the run is short.
var storiesOfEveryShape = []string{"kubectl", "lists", "watch", "input"}

// gateways are the gateways in front of the programs for AWS Lambda in each shape. Several gateways take turns.
var gateways = map[shape][]lambdatest.Gateway{
	lambdaHTTPAPI:     {lambdatest.HTTPAPI},
	lambdaRESTAPI:     {lambdatest.RESTAPI},
	lambdaBalancer:    {lambdatest.Balancer, lambdatest.BalancerMulti},
	lambdaFunctionURL: {lambdatest.FunctionURL},
}

// aboutTheRunner has the stories that only the local runner runs, with the reason: they are about the runner itself. Single
// lines of other stories are marked with [local]; the reason is beside them.
var aboutTheRunner = map[string]string{
	"adopt":     "a command of the program platform on a Redis",
	"audit":     "files, which one process writes, their verification by a command of the runner, and its metrics",
	"auditor":   "the runner's files of the audit",
	"documents": "the data folder, the authority and the redis-server of the runner are what the pages name",
	"bootstrap": "two runners on one Redis; the other shapes get their admin key by the same command",
	"config":    "the runner looks at its configuration every second and logs it; functions look when requests come",
	"tokens":    "the command signing-keys, and HTTPS on the issuer, which is the platform's elsewhere",
	"giveback":  "the runner's data folder and its files of the audit, and tokens",
	"jobs":      "an issuer of tokens on this machine, to which deployed functions do not connect",
	"killed":    "the runner starts its redis-server again; elsewhere that is the platform's",
	"manifests": "a flag of the runner",
	"newcomer":  "a provider on this machine, to which deployed functions do not connect",
	"operate":   "an operator's commands on a Redis, which the runner stands for",
	"restart":   "the runner's data folder, lock and announcement",
	"stolen":    "the runner's files of the audit, and tokens",
	"upgrade":   "two runners on one Redis, of two releases",
	"volatile":  "the runner's state without a redis-server",
}

// deployment are the functions in a shape other than the local runner, with their own redis-server.
type deployment struct {
	table   map[string]entry
	routes  []route
	run     platform
	fronts  []*httptest.Server
	redis   *exec.Cmd
	stop    context.CancelFunc
	clocks  sync.WaitGroup
	stopped bool
}

// entry is a function in the table of a deployment. Source: infra/deployment.
type entry struct {
	Routes          []string
	Fallback        bool
	Stream          bool
	Encrypts        bool
	ScheduleMinutes int
	TimeoutSeconds  int
}

// platform runs functions.
type platform interface {
	// serve answers a request to a function.
	serve(name string, w http.ResponseWriter, r *http.Request)
	// tick runs the schedule of a function.
	tick(ctx context.Context, name string) error
	// end ends all processes: gracefully with SIGTERM, immediately with SIGKILL.
	end(signal os.Signal) error
}

// deploy is the command serve for shapes other than the local runner.
func deploy(ts *testscript.TestScript, args []string) {
	s := sessionOf(ts)
	config, every := "", 30*time.Second
	for ; len(args) > 1; args = args[2:] {
		switch args[0] {
		case "--config":
			config = ts.MkAbs(args[1])
		case "--expire-every":
			var err error
			every, err = time.ParseDuration(args[1])
			ts.Check(err)
		default:
			ts.Fatalf("%s is a flag of the local runner: add the story to those that are about it", args[0])
		}
	}
	data, logs := ts.MkAbs("data"), filepath.Join(s.folder, "log")
	for _, folder := range []string{logs, filepath.Join(data, "redis")} {
		ts.Check(os.MkdirAll(folder, 0o700))
	}
	r := &runner{data: data, stdout: filepath.Join(logs, "runner.stdout"), stderr: filepath.Join(logs, "runner.stderr"), deployed: &deployment{}}
	d := r.deployed
	stdout, _ := openLog(ts, r.stdout)
	_ = stdout.Close()
	log, _ := openLog(ts, r.stderr)
	content, err := os.ReadFile(filepath.Join(repository, "infra", "terraform", "functions.json"))
	ts.Check(err)
	ts.Check(json.Unmarshal(content, &d.table))
	d.routes = routesOf(d.table)

	socket := filepath.Join(data, "redis", "redis.sock")
	d.redis = exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", filepath.Dir(socket),
		"--appendonly", "yes", "--appendfsync", "always", "--save", "")
	d.redis.SysProcAttr = endWithParent()
	ts.Check(d.redis.Start())
	s.runners["runner"] = r
	client := openRedis(socket)
	defer func() { _ = client.Close() }()
	await(ts, func() string {
		if err := client.Ping(context.Background()).Err(); err != nil {
			return err.Error()
		}
		return ""
	})

	// The first admin key is created as in a deployment.
	admin := filepath.Join(data, "admin.key")
	if _, err := os.Stat(admin); err != nil {
		command := exec.Command(runnerProgram, "bootstrap", "--redis", "unix://"+socket)
		command.Stderr = log
		key, err := command.Output()
		ts.Check(err)
		ts.Check(os.WriteFile(admin, key, 0o600))
	}

	sealing := filepath.Join(data, "encryption.key")
	if _, err := os.Stat(sealing); err != nil {
		key := make([]byte, 32)
		_, _ = rand.Read(key)
		ts.Check(os.WriteFile(sealing, []byte(base64.StdEncoding.EncodeToString(key)), 0o600))
	}

	variables := func(name string) []string {
		list := []string{
			"PLATFORM_REDIS_URL=unix://" + socket, "PLATFORM_CONFIG=" + config, "PLATFORM_LOG_LEVEL=" + ts.Getenv("PLATFORM_LOG_LEVEL"),
		}
		for _, setting := range settings {
			if value := ts.Getenv(setting); value != "" {
				list = append(list, setting+"="+value)
			}
		}
		if d.table[name].Encrypts {
			list = append(list, "PLATFORM_ENCRYPTION_KEY_FILE="+sealing)
		}
		return list
	}
	if through := gateways[s.shape]; through != nil {
		built, err := buildBootstraps()
		ts.Check(err)
		d.run = newLambda(built, through, d.table, log, variables)
	} else {
		d.run = &framework{log: log, variables: variables, servers: map[string]*server{}}
	}
	d.fronts = []*httptest.Server{httptest.NewServer(d), httptest.NewUnstartedServer(d)}
	d.fronts[1].EnableHTTP2 = true
	d.fronts[1].TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	d.fronts[1].StartTLS()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.fronts[1].Certificate().Raw})
	ts.Check(os.WriteFile(filepath.Join(data, "ca.crt"), authority, 0o600))
	ts.Setenv("DATA", data)
	ts.Setenv("ADMIN", admin)
	ts.Setenv("KUBECONFIG", filepath.Join(data, "kubeconfig"))
	ts.Setenv("SECURE", d.fronts[1].URL)
	ts.Setenv("ORIGIN", d.fronts[0].URL)
	ts.Setenv("API", d.fronts[0].URL+"/kubernetes/management")
	ts.Setenv("LOG", r.stderr)
	kubeconfig(ts, false, []string{admin, filepath.Join(data, "kubeconfig")})

	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	for name, one := range d.table {
		if one.ScheduleMinutes > 0 {
			d.clocks.Go(func() { d.clock(ctx, name, every, log) })
		}
	}
}

// clock calls a function with a schedule until the context ends.
func (d *deployment) clock(ctx context.Context, name string, every time.Duration, log io.Writer) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := d.run.tick(ctx, name); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintf(log, "the clock of %s: %v\n", name, err)
		}
	}
}

// ServeHTTP is the gateway: it finds the function for a request.
func (d *deployment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.run.serve(target(d.routes, r.Method, r.URL.EscapedPath()), w, r)
}

// end ends functions, gateway and redis-server.
func (d *deployment) end(signal os.Signal) error {
	if d.stopped {
		return nil
	}
	d.stopped = true
	var err error
	if d.run != nil {
		if d.stop != nil {
			d.stop()
			d.clocks.Wait()
		}
		err = d.run.end(signal)
		for _, front := range d.fronts {
			front.CloseClientConnections()
			front.Close()
		}
	}
	_ = d.redis.Process.Signal(syscall.SIGTERM)
	_ = d.redis.Wait()
	return err
}

// route is a pattern of a gateway. A variable matches a single step. A variable whose name ends in a plus matches the rest.
type route struct {
	method, function string
	steps            []string
}

// routesOf returns the routes of functions. Routes with fewer variables come first. The last route is the fallback.
func routesOf(table map[string]entry) []route {
	var routes []route
	fallback := ""
	for name, one := range table {
		if one.Fallback {
			fallback = name
		}
		for _, text := range one.Routes {
			method, path, _ := strings.Cut(text, " ")
			routes = append(routes, route{method, name, strings.Split(path, "/")})
		}
	}
	slices.SortFunc(routes, func(a, b route) int {
		return strings.Count(strings.Join(a.steps, "/"), "{") - strings.Count(strings.Join(b.steps, "/"), "{")
	})
	return append(routes, route{function: fallback})
}

// target returns the function of the first route that matches a request.
func target(routes []route, method, path string) string {
	steps := strings.Split(path, "/")
	at := slices.IndexFunc(routes, func(r route) bool {
		return r.method == "" || r.method == method && r.takes(steps)
	})
	return routes[at].function
}

func (r route) takes(steps []string) bool {
	for i, want := range r.steps {
		switch {
		case i >= len(steps):
			return false
		case strings.HasSuffix(want, "+}"):
			return true
		case strings.HasPrefix(want, "{"):
			if steps[i] == "" {
				return false
			}
		case want != steps[i]:
			return false
		}
	}
	return len(steps) == len(r.steps)
}

// framework runs each function in its own server, which starts with the first request.
type framework struct {
	log       *os.File
	variables func(name string) []string

	mu      sync.Mutex
	servers map[string]*server
}

// server is the server of one function.
type server struct {
	process *os.Process
	done    chan struct{}
	err     error
	proxy   *httputil.ReverseProxy
	url     string
}

// addressLine matches the log line in which a server names its address.
var addressLine = regexp.MustCompile(`"msg":"serving".*"address":"[^"]*:(\d+)"`)

// announcement is a log that reports the port in that line.
type announcement struct {
	log  io.Writer
	text strings.Builder
	port chan string
}

func (a *announcement) Write(text []byte) (int, error) {
	if a.port != nil {
		a.text.Write(text)
		if found := addressLine.FindStringSubmatch(a.text.String()); found != nil {
			a.port <- found[1]
			a.port = nil
		}
	}
	return a.log.Write(text)
}

// server returns the server of a function. It starts the server at the first use.
func (f *framework) server(name string) (*server, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.servers[name]; s != nil {
		return s, nil
	}
	port := make(chan string, 1)
	command := exec.Command(serverProgram)
	command.Env = append(f.variables(name), "FUNCTION_TARGET="+name, "PORT=0")
	command.Stderr = &announcement{log: f.log, port: port}
	command.SysProcAttr = endWithParent()
	if err := command.Start(); err != nil {
		return nil, err
	}
	s := &server{process: command.Process, done: make(chan struct{})}
	go func() {
		s.err = command.Wait()
		close(s.done)
	}()
	select {
	case number := <-port:
		s.url = "http://127.0.0.1:" + number
	case <-s.done:
		return nil, fmt.Errorf("the server of %s ended before it served: %w", name, s.err)
	}
	address, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	s.proxy = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(address)
		// The query is passed on as it was sent: the proxy would remove parts that it cannot parse.
		r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery
		r.SetXForwarded()
	}}
	f.servers[name] = s
	return s, nil
}

func (f *framework) serve(name string, w http.ResponseWriter, r *http.Request) {
	s, err := f.server(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	s.proxy.ServeHTTP(w, r)
}

// tick sends a CloudEvent, as Cloud Scheduler and a PingSource do.
func (f *framework) tick(ctx context.Context, name string) error {
	s, err := f.server(name)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/clock", "Ce-Type": "clock",
	} {
		r.Header.Set(header, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}

func (f *framework) end(signal os.Signal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wrong error
	for _, s := range f.servers {
		_ = s.process.Signal(signal)
	}
	for name, s := range f.servers {
		select {
		case <-s.done:
			if s.err != nil && signal == syscall.SIGTERM {
				wrong = fmt.Errorf("the server of %s: %w", name, s.err)
			}
		case <-time.After(patience):
			_ = s.process.Kill()
			<-s.done
			wrong = fmt.Errorf("the server of %s still ran %s after %s", name, patience, signal)
		}
	}
	return wrong
}

// lambda runs the functions under the runtime API of Lambda. Requests go through each of its gateways in turn.
type lambda struct {
	gateways  []lambdatest.Gateway
	functions map[string]*lambdatest.Function
	count     atomic.Int64
}

const (
	// streamed is the suffix of the name under which a function is deployed a second time for streams.
	streamed = "Stream"
	// shortWatch is the longest watch, in seconds, that goes to a function whose answers are not streamed.
	shortWatch = 5
)

func newLambda(built *lambdatest.Programs, through []lambdatest.Gateway, table map[string]entry, log io.Writer, variables func(name string) []string) *lambda {
	l := &lambda{gateways: through, functions: map[string]*lambdatest.Function{}}
	for name, function := range table {
		variables := append(variables(name), "AWS_LAMBDA_FUNCTION_NAME="+name)
		program := built.Path(name)
		l.functions[name] = &lambdatest.Function{
			Program: program, Timeout: time.Duration(function.TimeoutSeconds) * time.Second, Output: log, Variables: variables,
		}
		if function.Stream {
			l.functions[name+streamed] = &lambdatest.Function{
				Program: program, Timeout: 15 * time.Minute, Output: log, Variables: append(slices.Clone(variables), "PLATFORM_STREAM=true"),
			}
		}
	}
	return l
}

func (l *lambda) serve(name string, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	count := l.count.Add(1)
	gateway := l.gateways[count%int64(len(l.gateways))]
	// Long watches use the URL that streams. Large bodies do not use the load balancer.
	query := r.URL.Query()
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	if follows := query.Get("watch") != "" && (seconds == 0 || seconds > shortWatch); follows && !gateway.Streams() {
		gateway = lambdatest.FunctionURL
	}
	if !gateway.Takes(len(body)) {
		gateway = lambdatest.HTTPAPI
	}
	if l.functions[name+streamed] != nil && gateway.Streams() {
		name += streamed
	}
	event, err := gateway.Event(r, body, strconv.FormatInt(count, 16))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	answer, err := l.functions[name].Call(context.WithoutCancel(r.Context()), event)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	gateway.Respond(w, answer)
}

// tick sends an event of EventBridge.
func (l *lambda) tick(_ context.Context, name string) error {
	answer, err := l.functions[name].Call(context.Background(), []byte(`{"version":"0","source":"aws.events","detail-type":"Scheduled Event","detail":{}}`))
	if err != nil {
		return err
	}
	defer answer.Close()
	if answer.Failed {
		return fmt.Errorf("%s returned an error", name)
	}
	return nil
}

func (l *lambda) end(signal os.Signal) error {
	var all sync.WaitGroup
	for _, f := range l.functions {
		all.Go(func() {
			if signal == syscall.SIGTERM {
				f.Drain()
			} else {
				f.Kill()
			}
		})
	}
	all.Wait()
	return nil
}

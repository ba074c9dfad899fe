//go:build unix

package script_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// session has the processes of one story and the answers to its clients.
type session struct {
	shape   shape
	folder  string
	runners map[string]*runner
	writer  *writer
	// followers are the kubectl processes in the background.
	followers map[string]*follower
	// begun is the time at which the stopwatch was begun.
	begun time.Time

	mu sync.Mutex
	// answers are everything that clients saw, except for the answers that deliver a key.
	answers []string
}

type sessionKey struct{}

func newSession(as shape, folder string) *session {
	return &session{shape: as, folder: folder, runners: map[string]*runner{}, followers: map[string]*follower{}}
}

func sessionOf(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

// saw records what a client saw.
func (s *session) saw(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, text)
}

// end stops everything that still runs.
func (s *session) end() {
	if s.writer != nil {
		s.writer.stop()
	}
	for _, each := range s.followers {
		each.end()
	}
	for _, each := range s.runners {
		if each.redis != 0 {
			// A stopped redis-server cannot handle a signal to end.
			_ = syscall.Kill(each.redis, syscall.SIGCONT)
		}
		_ = each.end(syscall.SIGTERM)
	}
}

// runner is the runner as a child process, or the functions in another shape.
type runner struct {
	// deployed are the functions in another shape. It is nil for the runner. Only the runner has process, done and err.
	deployed *deployment
	process  *os.Process
	data     string
	// stdout and stderr are files to which every start of the runner appends.
	stdout, stderr string
	// done is closed when the process has ended, with err.
	done chan struct{}
	err  error
	// redis is the process of the stopped redis-server. 0: none is stopped.
	redis int
}

// inheritedVariables are the names of the environment variables that the runner gets from the story.
var inheritedVariables = append([]string{"PATH", "HOME", "TMPDIR", "PLATFORM_REDIS_URL", "PLATFORM_ADMIN_KEY", "PLATFORM_LOG_LEVEL"}, settings...)

// settings are the settings of functions that a story can set, in every shape.
var settings = []string{"PLATFORM_REDIS_TIMEOUT", "PLATFORM_EDITION", "PLATFORM_PATCH_EXPRESSION_TIME", "PLATFORM_PATCH_OBJECT_TIME", "PLATFORM_SECRET_AUDIT_STORE"}

var announced = regexp.MustCompile(`(?s)API +https://(\S+)/kubernetes/management\n(?:.*plain HTTP +(http://\S+)/kubernetes/management\n)?.*kubectl explain`)

// serve starts the runner with its own data folder and on free ports, unless the flags say otherwise. In another shape it
// starts the functions.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	s := sessionOf(ts)
	if s.shape != localRunner {
		refuseNegation(ts, neg)
		deploy(ts, args)
		return
	}
	program := runnerProgram
	if len(args) > 0 && args[0] == "-previous" {
		built, err := previousProgram()
		ts.Check(err)
		program, args = built, args[1:]
	}
	name := "runner"
	if len(args) > 1 && args[0] == "-name" {
		name, args = args[1], args[2:]
	}
	flagValue := func(flag string) string {
		if at := slices.Index(args, flag); at >= 0 && at+1 < len(args) {
			return args[at+1]
		}
		return ""
	}
	data := flagValue("--data")
	if data == "" {
		data = "data"
		args = append(args, "--data", data)
	}
	for _, flag := range []string{"--listen", "--http"} {
		if flagValue(flag) == "" {
			args = append(args, flag, "127.0.0.1:0")
		}
	}
	logs := filepath.Join(s.folder, "log")
	ts.Check(os.MkdirAll(logs, 0o700))
	r := &runner{
		data:   ts.MkAbs(data),
		stdout: filepath.Join(logs, name+".stdout"), stderr: filepath.Join(logs, name+".stderr"),
		done: make(chan struct{}),
	}
	stdout, before := openLog(ts, r.stdout)
	defer func() { _ = stdout.Close() }()
	stderr, beforeErr := openLog(ts, r.stderr)
	defer func() { _ = stderr.Close() }()

	command := exec.Command(program, append([]string{"serve"}, args...)...)
	command.Dir = ts.MkAbs(".")
	command.Stdout, command.Stderr = stdout, stderr
	command.SysProcAttr = endWithParent()
	for _, variable := range inheritedVariables {
		if value := ts.Getenv(variable); value != "" || variable == "PATH" {
			command.Env = append(command.Env, variable+"="+value)
		}
	}
	ts.Check(command.Start())
	r.process = command.Process
	go func() {
		r.err = command.Wait()
		close(r.done)
	}()
	s.runners[name] = r

	deadline := time.After(patience)
	for {
		output := ts.ReadFile(r.stdout)[before:]
		if match := announced.FindStringSubmatch(output); match != nil {
			if neg {
				ts.Fatalf("the runner serves, but must refuse to start")
			}
			ts.Setenv("DATA", r.data)
			ts.Setenv("ADMIN", filepath.Join(r.data, "admin.key"))
			ts.Setenv("KUBECONFIG", filepath.Join(r.data, "kubeconfig"))
			ts.Setenv("SECURE", "https://"+match[1])
			ts.Setenv("ORIGIN", match[2])
			ts.Setenv("API", match[2]+"/kubernetes/management")
			ts.Setenv("LOG", r.stderr)
			_, _ = fmt.Fprint(ts.Stdout(), output)
			return
		}
		select {
		case <-r.done:
			_, _ = fmt.Fprint(ts.Stdout(), ts.ReadFile(r.stdout)[before:])
			_, _ = fmt.Fprint(ts.Stderr(), ts.ReadFile(r.stderr)[beforeErr:])
			if !neg {
				ts.Fatalf("the runner ended before it served: %v", r.err)
			} else if r.err == nil {
				ts.Fatalf("the runner exited with 0, but must refuse to start")
			}
			return
		case <-deadline:
			ts.Fatalf("the runner has neither printed its welcome nor ended; its log:\n%s", ts.ReadFile(r.stderr)[beforeErr:])
		case <-time.After(pollEvery):
		}
	}
}

// openLog opens a file for appending, and returns its length.
func openLog(ts *testscript.TestScript, name string) (*os.File, int64) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	info, err := file.Stat()
	ts.Check(err)
	return file, info.Size()
}

// end sends a signal and returns how the runner ended.
func (r *runner) end(signal os.Signal) error {
	if r.deployed != nil {
		return r.deployed.end(signal)
	}
	_ = r.process.Signal(signal)
	select {
	case <-r.done:
		return r.err
	case <-time.After(patience):
		_ = r.process.Kill()
		<-r.done
		return fmt.Errorf("still running %s after %s", patience, signal)
	}
}

// runnerByName returns the runner that the arguments name, by default the runner without a name.
func runnerByName(ts *testscript.TestScript, args []string) *runner {
	name := "runner"
	if len(args) > 0 {
		name = args[0]
	}
	r := sessionOf(ts).runners[name]
	if r == nil {
		ts.Fatalf("no runner %q was started", name)
	}
	return r
}

func drain(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if err := runnerByName(ts, args).end(syscall.SIGTERM); err != nil {
		ts.Fatalf("the runner did not end in good order: %v", err)
	}
}

func crash(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	_ = runnerByName(ts, args).end(syscall.SIGKILL)
}

// waitForLog waits for a line in the runner's log.
func waitForLog(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	pattern := compile(ts, singleArgument(ts, args))
	await(ts, func() string {
		text := ts.ReadFile(runnerByName(ts, nil).stderr)
		if pattern.MatchString(text) {
			return ""
		}
		return "the log has no match for " + pattern.String() + ":\n" + text
	})
}

// await calls complaint until it returns an empty text.
func await(ts *testscript.TestScript, complaint func() string) {
	deadline := time.After(patience)
	for {
		why := complaint()
		if why == "" {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("after %s: %s", patience, why)
		case <-time.After(pollEvery):
		}
	}
}

// compile reads a pattern as the command stdout does: anchors match at lines.
func compile(ts *testscript.TestScript, pattern string) *regexp.Regexp {
	compiled, err := regexp.Compile("(?m)" + pattern)
	ts.Check(err)
	return compiled
}

func singleArgument(ts *testscript.TestScript, args []string) string {
	if len(args) != 1 {
		ts.Fatalf("one argument was expected, not %q", strings.Join(args, " "))
	}
	return args[0]
}

func refuseNegation(ts *testscript.TestScript, neg bool) {
	if neg {
		ts.Fatalf("this command cannot be negated")
	}
}

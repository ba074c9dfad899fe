//go:build unix

package script_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"management.platform.sh/shared/process/processtest"
)

// follower is a kubectl in the background.
type follower struct {
	command *exec.Cmd
	output  processtest.Log
	// done is closed when the process has ended.
	done chan struct{}
	err  error
}

// background starts a kubectl in the background, under a name, or with -platform another command of the program.
func background(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	program := kubectlProgram
	if len(args) > 0 && args[0] == "-platform" {
		program, args = runnerProgram, args[1:]
	}
	if len(args) < 2 {
		ts.Fatalf("usage: background [-platform] NAME ARG...")
	}
	f := &follower{command: exec.Command(program, args[1:]...), done: make(chan struct{})}
	f.command.Dir = ts.MkAbs(".")
	f.command.Stdout, f.command.Stderr = &f.output, &f.output
	f.command.SysProcAttr = endWithParent()
	for _, variable := range []string{"PATH", "HOME", "KUBECONFIG", "KUBECACHEDIR"} {
		f.command.Env = append(f.command.Env, variable+"="+ts.Getenv(variable))
	}
	ts.Check(f.command.Start())
	go func() {
		f.err = f.command.Wait()
		close(f.done)
	}()
	sessionOf(ts).followers[args[0]] = f
}

func followed(ts *testscript.TestScript, name string) *follower {
	f := sessionOf(ts).followers[name]
	if f == nil {
		ts.Fatalf("nothing named %q was started", name)
	}
	return f
}

// waitForOutput waits until the output of a kubectl in the background matches.
func waitForOutput(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: until NAME PATTERN")
	}
	f, pattern := followed(ts, args[0]), compile(ts, args[1])
	await(ts, func() string {
		if text := f.output.String(); !pattern.MatchString(text) {
			return args[0] + " has no match for " + pattern.String() + ":\n" + text
		}
		return ""
	})
}

// finish prints the output of a kubectl in the background at its end. A watch is interrupted. With -within it must end by itself, as kubectl
// wait and delete must. With -peek it continues, and its output so far is printed.
func finish(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	options := flag.NewFlagSet("finish", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	within := options.Duration("within", 0, "")
	peek := options.Bool("peek", false, "")
	ts.Check(options.Parse(args))
	name := singleArgument(ts, options.Args())
	f := followed(ts, name)
	if *peek {
		_, _ = fmt.Fprint(ts.Stdout(), f.output.String())
		return
	}
	patient := *within
	if patient == 0 && !f.watches() {
		patient = patience
	}
	if patient > 0 {
		select {
		case <-f.done:
		case <-time.After(patient):
			ts.Fatalf("%s has not ended within %s:\n%s", name, patient, f.output.String())
		}
		if f.err != nil {
			ts.Fatalf("%s failed: %v\n%s", name, f.err, f.output.String())
		}
	}
	f.end()
	delete(sessionOf(ts).followers, name)
	text := f.output.String()
	sessionOf(ts).saw(text)
	_, _ = fmt.Fprint(ts.Stdout(), text)
}

// watches reports whether a kubectl runs until it is interrupted.
func (f *follower) watches() bool {
	for _, arg := range f.command.Args {
		if arg == "-w" {
			return true
		}
	}
	return false
}

func (f *follower) end() {
	_ = f.command.Process.Signal(os.Interrupt)
	select {
	case <-f.done:
	case <-time.After(patience):
		_ = f.command.Process.Signal(syscall.SIGKILL)
		<-f.done
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// peerReadyWithin is the time within which a peer must answer.
	peerReadyWithin = 90 * time.Second
	// peerStopWithin is the time within which a peer must end before it is killed.
	peerStopWithin = 15 * time.Second
)

// peer is a program from another project that is measured beside the API.
type peer struct {
	name    string
	command *exec.Cmd
	exited  chan struct{}
}

// errAbsent: a program of a peer is not on PATH.
var errAbsent = errors.New("is not on PATH")

// startPeer starts a program with its output in a file of the folder.
func startPeer(folder, name string, args ...string) (*peer, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, errAbsent)
	}
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	p := &peer{name: name, command: exec.Command(program, args...), exited: make(chan struct{})}
	p.command.Dir, p.command.Stdout, p.command.Stderr = folder, log, log
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.command.Wait()
	}()
	return p, nil
}

// waitUntilReady sends requests until the peer answers or ends.
func (p *peer) waitUntilReady(ctx context.Context, try func(context.Context) error) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.exited:
			cancel(errors.New("it ended"))
		case <-waiting.Done():
		}
	}()
	if err := repeatUntilSuccess(waiting, peerReadyWithin, "waiting for "+p.name, try); err != nil {
		return errors.Join(err, context.Cause(waiting))
	}
	return nil
}

func (p *peer) processes() processes { return processes{p.command.Process.Pid} }

// stop ends the program, and kills it if it does not end in time.
func (p *peer) stop() {
	// The signal fails if the process has already ended.
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(peerStopWithin):
		_ = p.command.Process.Kill()
		<-p.exited
	}
}

// freeAddress returns a loopback address that nothing listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

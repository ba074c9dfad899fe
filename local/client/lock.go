package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

const (
	// lockedFor is the longest wait for another writer of a kubeconfig, and lockPause the pause between two attempts.
	lockedFor = 10 * time.Second
	lockPause = 20 * time.Millisecond
	// abandonedAfter is the age of the lock of a program that no longer runs. A kubeconfig is written within milliseconds.
	abandonedAfter = time.Minute
	// renewedFor is the longest wait for another program that requests a credential.
	renewedFor = time.Minute
)

// lock keeps kubectl and other runs of this program from writing a kubeconfig file at the same time. It is the lock that
// kubectl uses: a file, which outlives a program that is killed.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	name := file + ".lock"
	late := time.After(lockedFor)
	for {
		held, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0)
		if err == nil {
			_ = held.Close()
			return func() { _ = os.Remove(name) }, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if at, err := os.Stat(name); err == nil && time.Since(at.ModTime()) > abandonedAfter {
			_ = os.Remove(name)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late:
			return nil, fmt.Errorf("%s exists: another program is writing the file. If none is, remove it", name)
		case <-time.After(lockPause):
		}
	}
}

// lockExclusively keeps other runs of this program from renewing the same credential at the same time. The system releases the lock of a
// program that ends, however it ends. The file of the lock stays.
func lockExclusively(ctx context.Context, file string) (unlock func(), err error) {
	type outcome struct {
		unlock func()
		err    error
	}
	locked := make(chan outcome, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(file).Lock()
		locked <- outcome{unlock, err}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, renewedFor, fmt.Errorf("another program has been renewing the credential for %s: %s", renewedFor, file))
	defer cancel()
	select {
	case got := <-locked:
		return got.unlock, got.err
	case <-ctx.Done():
		go func() {
			if got := <-locked; got.err == nil {
				got.unlock()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

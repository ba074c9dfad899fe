package client

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// locker is the variable that makes the test program lock a file, say so, and wait to be killed.
const locker = "CLIENT_TEST_LOCKER"

func init() {
	if file := os.Getenv(locker); file != "" {
		if _, err := lockExclusively(context.Background(), file); err == nil {
			_, _ = os.Stdout.WriteString("locked\n")
		}
		select {}
	}
}

// A program that is killed while it renews a credential keeps no other one from it.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), loginLock)
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), locker+"="+file)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockExclusively(ended, file); !errors.Is(err, context.Canceled) {
		t.Errorf("while the other program holds it: %v", err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	for range 2 {
		unlock, err := lockExclusively(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	}
}

// A program that was killed leaves its lock of a kubeconfig. A lock that is older than any write is ignored, and a young lock counts.
func TestAbandonedLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	held, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ended, file); !errors.Is(err, context.Canceled) {
		t.Errorf("a young lock: %v", err)
	}
	if err := os.Chtimes(file+".lock", time.Time{}, time.Now().Add(-2*abandonedAfter)); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	held()
	if _, err := os.Stat(file + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stays: %v", err)
	}
}

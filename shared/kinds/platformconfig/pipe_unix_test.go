//go:build unix

package platformconfig_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A process does not wait for a pipe.
func TestPipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Skip(err)
	}
	if err := w.process(file).Reload(t.Context()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v", err)
	}
}

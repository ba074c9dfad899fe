package chain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/chain"
)

// A log can be verified while its files are rotated, compressed and removed. Source: ADR-0016.
func TestVerifyWhileFilesMove(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	path := func(name string) string { return filepath.Join(directory, name) }
	write := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	var head chain.Head
	// step makes a file with one event, and turns the previous file into a backup.
	step := func(i int) {
		event := []byte(`{"kind":"Event"}`)
		if i == 0 {
			event = audit.NewMark(audit.Begun, "", nil).JSON
		}
		line := chain.Link(event, head, true)
		head = chain.Head{Sequence: head.Sequence + 1, Hash: chain.HashOf(line)}
		if i > 0 {
			if err := os.Rename(path(chain.Name), path(fmt.Sprintf("audit-%08d-size.log", i))); err != nil {
				t.Error(err)
			}
		}
		write(chain.Name, string(line)+"\n")
		// The file is written as a whole, in the way of the sink.
		write("head", head.String()+"\n")
		if err := os.Rename(path("head"), path(chain.HeadName)); err != nil {
			t.Error(err)
		}
		if i > 20 {
			_ = os.Remove(path(fmt.Sprintf("audit-%08d-size.log", i-20)))
		}
	}
	step(0)
	const rotations = 150
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; i <= rotations; i++ {
			step(i)
		}
	}()
	verified := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		report, err := chain.Verify(directory)
		if err != nil {
			// Verification may report that the files moved, but must not report false findings.
			continue
		}
		for _, finding := range report.Findings {
			t.Errorf("%d events, %s", report.Events, finding)
			<-done
			return
		}
		verified++
	}
	if verified == 0 {
		t.Error("nothing could be verified")
	}
}

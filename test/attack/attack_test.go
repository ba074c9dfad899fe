package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"management.platform.sh/test/launch"
)

// TestMain runs the program itself if a test has started this binary as the honest tenant.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "honest" {
		os.Exit(start())
	}
	os.Exit(m.Run())
}

// A short run of the program, with only the checks that do not depend on the load of the machine: no request of the honest tenant or of an
// attacker gets 5xx, the process stays within its memory, and it answers again after each attack. Source: ADR-0020.
func TestAttack(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes about 30 s")
	}
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	// The state gets more time than usual, because the machine may be busy.
	runner, err := launch.Start(t.Context(), folder, log, "PLATFORM_REDIS_TIMEOUT=20s")
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Stop()
	results, err := measure(t.Context(), runner, plan{
		classes: classes, alone: time.Second, each: 700 * time.Millisecond, together: 5 * time.Second, tokens: 1000, progress: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := results.print(t.Output()); err != nil {
		t.Fatal(err)
	}
	served := 0
	for _, result := range append([]row{results.alone}, results.rows...) {
		for status := range result.honest.Failed {
			if status >= 500 {
				t.Errorf("%s: honest requests failed: %s: %s", result.class, counts(result.honest.Failed), result.honest.First)
			}
		}
		if result.failure != "" {
			t.Errorf("%s: an attacker got %s", result.class, result.failure)
		}
		if result.memory >= maxMemory {
			t.Errorf("%s: the process held %d MB", result.class, result.memory>>20)
		}
		for _, number := range result.answers {
			served += number
		}
	}
	if served == 0 {
		t.Error("no attacker got an answer: nothing attacked")
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every thread of the attackers has the low priority, and so has a thread that starts later. Source: ADR-0020.
func TestYieldProcessor(t *testing.T) {
	if !yieldProcessor() {
		t.Fatal("the priority was not lowered")
	}
	files, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d threads, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // The thread has ended.
		}
		// Fields are counted from the end of the name, which is in parentheses. The nice value is field 19.
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); fields[16] != "10" {
			t.Errorf("%s: the nice value is %s", file, fields[16])
		}
	}
}

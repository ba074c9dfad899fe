package process

import (
	"runtime"
	"testing"
)

// A process has twice as many running threads as processors, once, unless its processors are limited otherwise. The number of
// processors stays the same. Source: ADR-0020.
func TestShareProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, row := range []struct{ at, threads, processors int }{
		{runtime.NumCPU(), 2 * runtime.NumCPU(), runtime.NumCPU()},
		{2 * runtime.NumCPU(), 2 * runtime.NumCPU(), runtime.NumCPU()},
		{runtime.NumCPU() + 1, runtime.NumCPU() + 1, runtime.NumCPU()},
	} {
		runtime.GOMAXPROCS(row.at)
		ShareProcessors()
		if threads := runtime.GOMAXPROCS(0); threads != row.threads || processors() != row.processors {
			t.Errorf("at %d: %d threads and %d processors; want %d and %d", row.at, threads, processors(), row.threads, row.processors)
		}
	}
	if runtime.NumCPU() > 1 {
		runtime.GOMAXPROCS(1)
		ShareProcessors()
		if runtime.GOMAXPROCS(0) != 1 || processors() != 1 {
			t.Errorf("a limit of one became %d threads and %d processors", runtime.GOMAXPROCS(0), processors())
		}
	}
}

package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// A small heap is collected when it has grown by the reserve. GOGC and GOMEMLIMIT, if they are set, have priority.
func TestCollectLessOften(t *testing.T) {
	goal := func() uint64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	reserve.Store(nil)
	before := goal()
	percent := debug.SetGCPercent(usualPercent + 1)
	CollectLessOften()
	debug.SetGCPercent(percent)
	limit := debug.SetMemoryLimit(1 << 40)
	CollectLessOften()
	debug.SetMemoryLimit(limit)
	if after := goal(); after > before+heapReserve/2 {
		t.Errorf("with GOGC or GOMEMLIMIT, the heap is collected at %d bytes, %d before", after, before)
	}
	CollectLessOften()
	if after := goal(); after < before+heapReserve {
		t.Errorf("the heap is collected at %d bytes, %d before", after, before)
	}
}

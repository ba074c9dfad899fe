// Package memory lets a process that serves many requests at a time collect its garbage less often. It is separate from
// package process because the metrics of the runtime cost a tenth of a millisecond at each start, and a function for
// AWS Lambda needs none. Source: ADR-0028.
package memory

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// heapReserve is the number of bytes that the heap must grow before it is collected.
const heapReserve = 16 << 20

// usualPercent is the default of GOGC.
const usualPercent = 100

// reserve is a block of memory that is never touched, so that it has no pages.
var reserve atomic.Pointer[[heapReserve]byte]

// CollectLessOften makes the garbage collector wait longer while the heap is small. The collector begins when the heap
// has grown by the amount that was in use after its last run. This process has a few MB in use, and collected them
// fifty times a second under load. A block that is never touched counts as in use and takes no memory. A process with
// another GOGC, or with GOMEMLIMIT, stays as it is. It must be called before the process serves. Source: ADR-0028.
func CollectLessOften() {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	if percent[0].Value.Uint64() == usualPercent && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		reserve.CompareAndSwap(nil, new([heapReserve]byte))
	}
}

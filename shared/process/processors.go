package process

import "runtime"

// ShareProcessors lets the operating system share the processors between the requests of this process. The Go scheduler
// lets a computation run for 10 ms before another request has its turn, and a request needs several turns. The
// operating system prefers a thread that has waited. A process that serves many requests at a time therefore gets twice
// as many running threads as processors. A process whose processors are limited by GOMAXPROCS or by a quota of its
// container stays as it is: more threads would use up the quota sooner. It must be called before the process serves.
// Source: ADR-0020.
func ShareProcessors() {
	if processors := runtime.NumCPU(); runtime.GOMAXPROCS(0) == processors {
		runtime.GOMAXPROCS(2 * processors)
	}
}

// processors returns the number of processors that the process can use.
func processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

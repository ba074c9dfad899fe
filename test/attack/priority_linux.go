package main

import (
	"os"
	"strconv"
	"syscall"
)

// lowPriority is the nice value of the attackers. They still have a tenth of what another process has on a busy processor.
const lowPriority = 10

// yieldProcessor gives this process a low priority, and reports whether it did. The priority is one of a thread, which threads
// that it starts inherit, so it is lowered until no thread is left that another one started meanwhile.
func yieldProcessor() bool {
	lowered := map[string]bool{}
	for {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return false
		}
		before := len(lowered)
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil || lowered[thread.Name()] {
				continue
			}
			lowered[thread.Name()] = true
			// A thread that has ended meanwhile does not matter.
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, lowPriority); err != nil && err != syscall.ESRCH {
				return false
			}
		}
		if len(lowered) == before {
			return true
		}
	}
}

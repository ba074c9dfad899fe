package main

import (
	"os"
	"strconv"
	"syscall"
)

// lowPriority is the nice value of the attackers. They still have a tenth of what another process has on a busy processor.
const lowPriority = 10

// yieldProcessor gives this process a low priority, and reports whether it succeeded. Each thread has its own priority, and a new thread
// inherits the priority of the thread that started it. So the threads are lowered again until no thread with the old priority is left.
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
			// A thread may have ended in the meantime.
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, lowPriority); err != nil && err != syscall.ESRCH {
				return false
			}
		}
		if len(lowered) == before {
			return true
		}
	}
}

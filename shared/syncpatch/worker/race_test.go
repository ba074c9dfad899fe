//go:build race

package worker

// raced says that the race detector is built in. It takes gigabytes of address space, and crashes with its own messages
// when there is none left, so the limit of memory cannot be distinguished from a fault.
const raced = true

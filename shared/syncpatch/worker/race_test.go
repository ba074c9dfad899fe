//go:build race

package worker

// raced tells whether the race detector is built in. It takes addresses by the gigabyte and dies in words of its own when
// there are none, so what ends a worker at its limit of memory cannot be told apart from a fault.
const raced = true

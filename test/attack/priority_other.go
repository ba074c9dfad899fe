//go:build !linux

package main

// yieldProcessor returns false: the priority cannot be lowered on this system.
func yieldProcessor() bool { return false }

//go:build !linux

package main

// yieldProcessor tells that it cannot lower the priority here.
func yieldProcessor() bool { return false }

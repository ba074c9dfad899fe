//go:build !unix

package state

// keepPrivate does nothing: files inherit the rights of their folder.
func keepPrivate() {}

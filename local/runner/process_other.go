//go:build !unix

package runner

import "os"

// lockFile does nothing where there are no such locks; embedded state is then in this process alone.
func lockFile(*os.File) error { return nil }

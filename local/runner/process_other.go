//go:build !unix

package runner

import "os"

// lockFile does nothing: this system has no such locks. Embedded state is then in this process only.
func lockFile(*os.File) error { return nil }

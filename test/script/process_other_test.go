//go:build unix && !linux

package script_test

import "syscall"

// endWithParent has nothing to do it with here: the runner ends with the story.
func endWithParent() *syscall.SysProcAttr { return nil }

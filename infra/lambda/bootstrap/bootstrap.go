// Package bootstrap says how the programs of functions for AWS Lambda are built, for those who deploy, measure and test
// them. Source: ADR-0010.
package bootstrap

import (
	"os"
	"os/exec"
)

// LinkFlags leave out symbols, and the ids of the build, which change with every package that is imported even if nothing
// of it is linked: a program changes when something that it runs does.
const LinkFlags = "-s -w -buildid="

// Command is a go build that has yet to be run. Its arguments are more flags, which win over those here, and packages.
//
// It makes the same program of the same source in every folder. There is no version in it: a function that did not
// change is the same file in the next release, and PLATFORM_VERSION says which that is. The runtime API speaks neither
// net/rpc nor HTTP/2.
func Command(output string, args ...string) *exec.Cmd {
	flags := []string{"build", "-tags", "lambda.norpc,nethttpomithttp2", "-trimpath", "-buildvcs=false", "-ldflags", LinkFlags, "-o", output}
	command := exec.Command("go", append(flags, args...)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	return command
}

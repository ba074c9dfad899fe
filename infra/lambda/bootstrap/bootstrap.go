// Package bootstrap says how the programs of functions for AWS Lambda are built, so that deployment, measurements and
// tests use the same programs. Source: ADR-0010.
package bootstrap

import (
	"os"
	"os/exec"
)

// LinkFlags leave out symbols and build ids. A build id changes with every imported package, even if no part of the
// package is linked. Without the ids, a program changes only if code that it runs changes.
const LinkFlags = "-s -w -buildid="

// Command returns a go build command that has not been run. Its arguments are packages, and further flags, which
// override the flags here.
//
// The same source makes the same program in every folder. The program contains no version, so that a function without
// changes is the same file in the next release; PLATFORM_VERSION gives the release. net/rpc and HTTP/2 are left out,
// because the runtime API uses neither.
func Command(output string, args ...string) *exec.Cmd {
	return Go("build", append([]string{"-ldflags", LinkFlags, "-o", output}, args...)...)
}

// Go returns a command of go, such as build or list, for the packages of the programs. It has not been run.
func Go(verb string, args ...string) *exec.Cmd {
	command := exec.Command("go", append([]string{verb, "-tags", "lambda.norpc,nethttpomithttp2", "-trimpath", "-buildvcs=false"}, args...)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	return command
}

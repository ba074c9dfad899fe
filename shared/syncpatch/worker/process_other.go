//go:build !unix

package worker

import (
	"context"
	"errors"

	"management.platform.sh/shared/syncpatch"
)

// supported is false: evaluations run in the process of the caller.
const supported = false

type process struct{}

func start(*Settings) (*process, error) { return nil, errors.ErrUnsupported }

func (*process) evaluate(context.Context, *syncpatch.Request) (*syncpatch.Result, error) {
	return nil, errors.ErrUnsupported
}

func (*process) kill() {}

type spot struct{}

func openSpot() *spot         { return nil }
func (*spot) set(int, string) {}
func limitMemory(int64)       {}
func abandoned() bool         { return false }

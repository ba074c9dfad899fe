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

func start(context.Context, *Settings) (*process, error) { return nil, errors.ErrUnsupported }

func (*process) ask(context.Context, question, func(answer)) (answer, error) {
	return answer{}, errors.ErrUnsupported
}

func (*process) kill() {}

type spot struct{}

func openSpot() *spot             { return nil }
func (*spot) set(syncpatch.Place) {}
func limitMemory(int64)           {}
func abandoned() bool             { return false }

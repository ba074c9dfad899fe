package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/store"
)

// refusals are the prefixes of Redis errors that mean "not now" or "not here": the server is starting, has lost its
// primary or its cluster, is out of memory or disk, or does not let this client in.
var refusals = []string{
	"LOADING ", "READONLY ", "CLUSTERDOWN", "MASTERDOWN ", "TRYAGAIN ", "MOVED ", "ASK ", "BUSY ", "OOM ",
	"MISCONF ", "NOREPLICAS ", "UNBLOCKED ", "NOAUTH ", "WRONGPASS ", "NOPERM ",
	"ERR max number of clients", "ERR invalid password", "ERR AUTH ", "ERR Client sent AUTH",
	"ERR Protocol error: unauthenticated", "ERR This instance has cluster support disabled",
}

// translate turns an error of the client library into an error of the contract. ctx is the caller's context.
func (c *Client) translate(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	for _, sentinel := range []error{store.ErrFormat, store.ErrGone, store.ErrUnavailable, errCorrupt} {
		if errors.Is(err, sentinel) {
			return err
		}
	}
	// An error after the caller gave up is no failure of the state.
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	if isReply(err) {
		for _, refusal := range refusals {
			if strings.HasPrefix(err.Error(), refusal) || strings.Contains(err.Error(), " -"+refusal) {
				return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
			}
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		// The deadline belongs to the Client. Callers must not take it for their own, so the error is not wrapped.
		return fmt.Errorf("%s: %w: no answer within %v: %s", doing, store.ErrUnavailable, c.options.Timeout, err.Error())
	}
	return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
}

// isReply reports whether an error is a reply of Redis, and not a failure of the connection.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// noRepeatHook keeps the cluster client from repeating a command that may have been executed. The cluster client repeats
// commands after network errors that it recognizes, so this hook hides these errors. Redirections are replies and are
// still followed.
type noRepeatHook struct{}

func (noRepeatHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (noRepeatHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil || isReply(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		lost := &lostError{err}
		cmd.SetErr(lost)
		return lost
	}
}

// ProcessPipelineHook hides the same errors for pipelines, in which the client sends redirected commands.
func (noRepeatHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil || isReply(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		hiddenErr := &lostError{err}
		for _, cmd := range cmds {
			if cmd.Err() != nil && !isReply(cmd.Err()) {
				cmd.SetErr(hiddenErr)
			}
		}
		return hiddenErr
	}
}

// lostError hides its cause from errors.Is and errors.As.
type lostError struct{ cause error }

func (e *lostError) Error() string { return e.cause.Error() }

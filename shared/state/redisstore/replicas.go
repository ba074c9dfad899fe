package redisstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/store"
)

// maxRedirects bounds how often a write is redirected while its slot moves to another node.
const maxRedirects = 3

// runReplicated runs a script and WAIT in the same pipeline, because WAIT is about the writes of its own connection. It
// returns the script's reply and how many replicas have not acknowledged the write. It chooses the node of a cluster
// itself: the library cannot route WAIT, which has no key.
func (c *Client) runReplicated(ctx context.Context, script *redis.Script, keys []string, args []any) (string, int, error) {
	var node redis.Cmdable = c.redis
	cluster, spread := c.redis.(*redis.ClusterClient)
	if spread {
		master, err := cluster.MasterForKey(ctx, keys[0])
		if err != nil {
			return "", 0, err
		}
		node = master
	}
	asking := false
	for redirects := 0; ; redirects++ {
		answer, acknowledged, err := c.runAndWait(ctx, node, asking, script, keys, args)
		// A redirected command has not been executed.
		target, moved := redis.IsMovedError(err)
		if !moved {
			target, asking = redis.IsAskError(err)
		} else {
			asking = false
		}
		if !spread || !moved && !asking || redirects == maxRedirects {
			return answer, max(c.options.Replicas-acknowledged, 0), err
		}
		if node, err = masterAt(ctx, cluster, target); err != nil {
			return "", 0, err
		}
	}
}

// runAndWait sends the script and WAIT.
func (c *Client) runAndWait(ctx context.Context, node redis.Cmdable, asking bool, script *redis.Script, keys []string, args []any) (string, int, error) {
	var wait *redis.Cmd
	answer := runPipeline(ctx, node, script, keys, args, func(pipe redis.Pipeliner, run func() *redis.Cmd) *redis.Cmd {
		if asking {
			pipe.Do(ctx, "ASKING")
		}
		answer := run()
		wait = pipe.Do(ctx, "WAIT", c.options.Replicas, c.options.ReplicaTimeout.Milliseconds())
		return answer
	})
	text, err := answer.Text()
	if err != nil {
		return "", 0, err
	}
	acknowledged, err := wait.Int()
	if err != nil {
		return "", 0, fmt.Errorf("%w: written, but may still be lost: waiting for replicas: %w", store.ErrUnavailable, err)
	}
	return text, acknowledged, nil
}

// runPipeline sends a script with other commands in one pipeline: by its hash, and in full if Redis does not know the
// hash. Fill adds the commands. It adds the script by calling run, and returns the reply of run. It is called a second
// time if the script is sent in full.
func runPipeline(
	ctx context.Context, node redis.Cmdable, script *redis.Script, keys []string, args []any,
	fill func(pipe redis.Pipeliner, run func() *redis.Cmd) *redis.Cmd,
) *redis.Cmd {
	send := func(run func(redis.Scripter) *redis.Cmd) *redis.Cmd {
		var answer *redis.Cmd
		// The error of the pipeline is also the error of one of the commands.
		_, _ = node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			answer = fill(pipe, func() *redis.Cmd { return run(pipe) })
			return nil
		})
		return answer
	}
	answer := send(func(pipe redis.Scripter) *redis.Cmd { return script.EvalSha(ctx, pipe, keys, args...) })
	if redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
		answer = send(func(pipe redis.Scripter) *redis.Cmd { return script.Eval(ctx, pipe, keys, args...) })
	}
	return answer
}

// masterAt returns the master of a cluster at an address that another node gave in a redirection.
func masterAt(ctx context.Context, cluster *redis.ClusterClient, addr string) (*redis.Client, error) {
	var mu sync.Mutex
	var master *redis.Client
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if node.Options().Addr == addr {
			master = node
		}
		return nil
	})
	if err == nil && master == nil {
		err = fmt.Errorf("%w: the slot has moved to a node that is not yet known", store.ErrUnavailable)
	}
	return master, err
}

package redisstore

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/record.lua
var recordLua string

//go:embed lua/create.lua
var createLua string

//go:embed lua/update.lua
var updateLua string

//go:embed lua/delete.lua
var deleteLua string

//go:embed lua/touch.lua
var touchLua string

//go:embed lua/bydigest.lua
var byDigestLua string

//go:embed lua/list.lua
var listLua string

//go:embed lua/due.lua
var dueLua string

//go:embed lua/trim.lua
var trimLua string

// The scripts, known to Redis by their SHA-1: sent in full once per Redis, by hash ever after.
var (
	createScript   = redis.NewScript(recordLua + createLua)
	updateScript   = redis.NewScript(recordLua + updateLua)
	deleteScript   = redis.NewScript(recordLua + deleteLua)
	touchScript    = redis.NewScript(recordLua + touchLua)
	byDigestScript = redis.NewScript(byDigestLua)
	listScript     = redis.NewScript(listLua)
	dueScript      = redis.NewScript(dueLua)
	trimScript     = redis.NewScript(trimLua)
)

// stringList reads a reply that is a list of strings.
func stringList(reply any) ([]string, error) {
	items, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: reply %T instead of a list", errCorrupt, reply)
	}
	list := make([]string, len(items))
	for i, item := range items {
		if list[i], ok = item.(string); !ok {
			return nil, fmt.Errorf("%w: reply %T instead of a string", errCorrupt, item)
		}
	}
	return list, nil
}

// call runs a script that returns a list and gives its parts.
func (r *resource) call(ctx context.Context, script *redis.Script, keys []string, args []any) ([]any, error) {
	return script.Run(ctx, r.client.redis, keys, args...).Slice()
}

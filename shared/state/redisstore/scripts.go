package redisstore

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync"

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

//go:embed lua/page.lua
var pageLua string

//go:embed lua/getmany.lua
var getManyLua string

//go:embed lua/list.lua
var listLua string

//go:embed lua/due.lua
var dueLua string

//go:embed lua/events.lua
var eventsLua string

//go:embed lua/trim.lua
var trimLua string

// The scripts. Each is sent to a Redis in full once, and after that by its SHA-1 hash.
var (
	createScript   = script(recordLua, createLua)
	updateScript   = script(recordLua, updateLua)
	deleteScript   = script(recordLua, deleteLua)
	touchScript    = script(recordLua, touchLua)
	byDigestScript = script(byDigestLua)
	getManyScript  = script(pageLua, getManyLua)
	listScript     = script(pageLua, listLua)
	dueScript      = script(pageLua, dueLua)
	eventsScript   = script(pageLua, eventsLua)
	trimScript     = script(pageLua, trimLua)
)

// script joins the parts of a script and hashes it at the first use: a function uses few scripts, and none while it
// starts.
func script(parts ...string) func() *redis.Script {
	return sync.OnceValue(func() *redis.Script { return redis.NewScript(strings.Join(parts, "")) })
}

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

// call runs a script that returns a list, and returns the items of that list.
func (r *resource) call(ctx context.Context, script *redis.Script, keys []string, args []any) ([]any, error) {
	return script.Run(ctx, r.client.redis, keys, args...).Slice()
}

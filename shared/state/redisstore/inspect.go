package redisstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/model/lazyregexp"
)

// Node is what a primary of the state says about itself. Source: ADR-0039.
type Node struct {
	// Address is its host and port, or the path of its socket.
	Address string
	// Product is redis or valkey, and Version its version: "7.0.15".
	Product, Version string
	// Took is how long a round trip takes: the shortest of five.
	Took time.Duration
	// Ahead is how far its clock is ahead of the clock of this process, give or take half of Took. Negative: it is behind.
	Ahead time.Duration
	// Primary tells that it accepts writes.
	Primary bool
	// UsedBytes and MaxBytes are the memory that it uses and may use. MaxBytes 0: there is no bound.
	UsedBytes, MaxBytes int64
	// Policy is what it does when it is full: noeviction, or which keys it removes. Empty: unknown.
	Policy string
	// Evicted is the number of keys that it has removed since its start because it was full.
	Evicted int64
	// AppendOnly reports whether it writes a log of changes, and Fsync when this log is on disk: always, everysec or no. An empty
	// Fsync is unknown.
	AppendOnly bool
	Fsync      string
	// Unsaved tells that its last write of the log or of a snapshot to disk failed.
	Unsaved bool
	// Snapshots reports whether it writes snapshots by itself. Unknown counts as false.
	Snapshots bool
	// Replicas is the number of replicas that are connected, and Lagging the number of those that were silent for more than ten
	// seconds.
	Replicas, Lagging int
	// MinReplicas is how many replicas must be connected for it to accept writes. 0: none, or unknown.
	MinReplicas int
	// Cluster is the state of its cluster: ok or fail. Empty: it is not in a cluster.
	Cluster string
}

// Inspect asks each primary about itself, in order of their addresses. What a server does not tell, such as a hosted one that
// refuses CONFIG, stays empty. Errors: those of Ping.
func (c *Client) Inspect(ctx context.Context) ([]Node, error) {
	var mu sync.Mutex
	var nodes []Node
	err := c.eachPrimary(ctx, "inspecting the state", func(ctx context.Context, client *redis.Client) error {
		node, err := inspect(ctx, client)
		if err == nil {
			mu.Lock()
			nodes = append(nodes, node)
			mu.Unlock()
		}
		return err
	})
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Address, b.Address) })
	return nodes, err
}

// eachPrimary calls do with a client of each primary, within the timeout of an operation.
func (c *Client) eachPrimary(ctx context.Context, doing string, do func(context.Context, *redis.Client) error) error {
	return c.run(ctx, doing, func(ctx context.Context) error {
		switch client := c.redis.(type) {
		case *redis.ClusterClient:
			return client.ForEachMaster(ctx, do)
		case *redis.Client:
			return do(ctx, client)
		default:
			return fmt.Errorf("%w: a client of the kind %T", errCorrupt, client)
		}
	})
}

// attempts is how often the clock is asked for: the shortest round trip counts.
const attempts = 5

func inspect(ctx context.Context, client *redis.Client) (Node, error) {
	node := Node{Address: client.Options().Addr}
	for range attempts {
		begun := time.Now()
		clock, err := client.Time(ctx).Result()
		if err != nil {
			return node, err
		}
		// The first one may open a connection, and others may meet a busy machine.
		if took := time.Since(begun); node.Took == 0 || took < node.Took {
			node.Took, node.Ahead = took, clock.Sub(begun.Add(took/2))
		}
	}
	text, err := client.Info(ctx).Result()
	if err != nil {
		return node, err
	}
	node.read(parseInfo(text))
	if node.Cluster != "" {
		about, err := client.ClusterInfo(ctx).Result()
		if err != nil {
			return node, err
		}
		node.Cluster = parseInfo(about)["cluster_state"]
	}
	for _, name := range []string{"appendfsync", "save", "min-replicas-to-write", "maxmemory-policy"} {
		// A hosted server and a restricted user have no CONFIG.
		if found, err := client.ConfigGet(ctx, name).Result(); err == nil {
			node.configure(name, found[name])
		} else if !isReply(err) {
			return node, err
		}
	}
	return node, nil
}

// parseInfo reads lines of the form name:value.
func parseInfo(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			values[name] = value
		}
	}
	return values
}

// read takes what INFO says.
func (n *Node) read(info map[string]string) {
	number := func(name string) int64 {
		value, _ := strconv.ParseInt(info[name], 10, 64)
		return value
	}
	n.Product, n.Version = "redis", info["redis_version"]
	if info["server_name"] == "valkey" {
		n.Product, n.Version = "valkey", info["valkey_version"]
	}
	n.Primary = info["role"] == "" || info["role"] == "master"
	n.UsedBytes, n.MaxBytes, n.Policy = number("used_memory"), number("maxmemory"), info["maxmemory_policy"]
	n.Evicted = number("evicted_keys")
	n.AppendOnly = info["aof_enabled"] == "1"
	n.Unsaved = info["rdb_last_bgsave_status"] == "err" || info["aof_last_bgrewrite_status"] == "err" || info["aof_last_write_status"] == "err"
	if info["cluster_enabled"] == "1" {
		n.Cluster = "unknown"
	}
	for i := range number("connected_slaves") {
		// ip=127.0.0.1,port=6380,state=online,offset=14,lag=1
		about := info[fmt.Sprintf("slave%d", i)]
		if !strings.Contains(about, "state=online") {
			continue
		}
		n.Replicas++
		if _, lag, ok := strings.Cut(about, "lag="); ok {
			if seconds, err := strconv.Atoi(lag); err == nil && seconds > 10 {
				n.Lagging++
			}
		}
	}
}

// configure takes what CONFIG GET says about a parameter.
func (n *Node) configure(name, value string) {
	switch name {
	case "appendfsync":
		n.Fsync = value
	case "save":
		n.Snapshots = value != ""
	case "min-replicas-to-write":
		n.MinReplicas, _ = strconv.Atoi(value)
	case "maxmemory-policy":
		n.Policy = value
	}
}

// Contents is what a resource holds. Source: ADR-0039.
type Contents struct {
	// Resource is its name, and Layout the version of the layout of its keys.
	Resource, Layout string
	// Objects is the number of its objects.
	Objects int64
	// Looked is the number of records that were looked at, and Formats how many of them have a format, by its number. A record
	// without one has the format "".
	Looked  int
	Formats map[string]int
	// Sealed is how many texts in the records that were looked at a key has sealed, by the id of the key.
	Sealed map[string]int
	// Owners are the owners whose tallies were looked at.
	Owners []Usage
}

// Usage is what an owner has of a resource.
type Usage struct {
	Owner          string
	Objects, Bytes int64
}

// Layout is the version of the layout of the keys, which this build reads and writes.
const Layout = prefix

// Reads reports whether this build reads records of a format.
func Reads(number string) bool { return number == format }

// scanned is how many keys, records or owners one command looks at.
const scanned = 50

// Contents looks at each resource of the state, in order of layouts and names: at most that many keys of each primary, and of
// each resource at most that many records and owners, in no order. It takes many short commands. Errors: those of Ping.
func (c *Client) Contents(ctx context.Context, most int) ([]Contents, error) {
	var mu sync.Mutex
	var found []Contents
	err := c.eachPrimary(ctx, "looking for resources", func(ctx context.Context, node *redis.Client) error {
		var cursor uint64
		for looked := 0; looked < most; looked += scanned {
			keys, next, err := node.Scan(ctx, cursor, "p[0-9]*:{*}:rev", scanned).Result()
			if err != nil {
				return err
			}
			for _, key := range keys {
				layout, rest, _ := strings.Cut(key, ":{")
				name, _, _ := strings.Cut(rest, "}")
				mu.Lock()
				found = append(found, Contents{Resource: name, Layout: layout, Formats: map[string]int{}, Sealed: map[string]int{}})
				mu.Unlock()
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Contents) int {
		return cmp.Or(cmp.Compare(a.Layout, b.Layout), cmp.Compare(a.Resource, b.Resource))
	})
	found = slices.CompactFunc(found, func(a, b Contents) bool { return a.Layout == b.Layout && a.Resource == b.Resource })
	for i := range found {
		if found[i].Layout != prefix {
			continue
		}
		if err := c.look(ctx, &found[i], most); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// A sealed text in a record is the id of the key, a dot, and in base64url at least the 28 bytes that sealing adds, as package encryption
// writes it; a field of bytes has that in base64. What else in an object has that form by chance is counted too.
var (
	sealedText  = lazyregexp.New(`"([0-9a-f]{8})\.[A-Za-z0-9_-]{38,}"`)
	sealedBytes = lazyregexp.New(`"([A-Za-z0-9+/]{12})[A-Za-z0-9+/]{50,}={0,2}"`)
	sealedBegin = lazyregexp.New(`^([0-9a-f]{8})\.$`)
)

// sealedBy returns the ids of the keys that have sealed the texts in a record.
func sealedBy(record string) []string {
	var ids []string
	for _, m := range sealedText().FindAllStringSubmatch(record, -1) {
		ids = append(ids, m[1])
	}
	for _, m := range sealedBytes().FindAllStringSubmatch(record, -1) {
		begin, err := base64.StdEncoding.DecodeString(m[1])
		if id := sealedBegin().FindSubmatch(begin); err == nil && id != nil {
			ids = append(ids, string(id[1]))
		}
	}
	return ids
}

// look fills in what a resource holds.
func (c *Client) look(ctx context.Context, into *Contents, most int) error {
	k := newKeys(into.Resource)
	err := c.each(ctx, k.objects, most, func(_, record string) {
		into.Looked++
		number, _, _ := strings.Cut(record[:min(len(record), 16)], " ")
		if strings.Trim(number, "0123456789") != "" {
			number = ""
		}
		into.Formats[number]++
		for _, id := range sealedBy(record) {
			into.Sealed[id]++
		}
	})
	if err != nil {
		return err
	}
	err = c.each(ctx, k.bytes, most, func(owner, tally string) {
		text, _, _ := strings.Cut(tally, " ")
		bytes, _ := strconv.ParseInt(text, 10, 64)
		into.Owners = append(into.Owners, Usage{Owner: owner, Bytes: bytes})
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(into.Owners, scanned) {
		counts := make([]*redis.IntCmd, len(part))
		err := c.run(ctx, "counting the objects of owners", func(ctx context.Context) error {
			_, err := c.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for i, one := range part {
					counts[i] = pipe.ZLexCount(ctx, k.owners, "["+one.Owner+"\x00", "("+one.Owner+"\x01")
				}
				return nil
			})
			return err
		})
		if err != nil {
			return err
		}
		for i := range part {
			part[i].Objects = counts[i].Val()
		}
	}
	return c.run(ctx, "counting objects", func(ctx context.Context) (err error) {
		into.Objects, err = c.redis.HLen(ctx, k.objects).Result()
		return err
	})
}

// each calls do with fields of a hash and their values, until it has seen as many as it may.
func (c *Client) each(ctx context.Context, key string, most int, do func(field, value string)) error {
	var cursor uint64
	for looked := 0; looked < most; {
		var fields []string
		err := c.run(ctx, "looking at records", func(ctx context.Context) (err error) {
			var next uint64
			if fields, next, err = c.redis.HScan(ctx, key, cursor, "", scanned).Result(); err == nil {
				cursor = next
			}
			return err
		})
		if err != nil {
			return err
		}
		for pair := range slices.Chunk(fields, 2) {
			if looked++; len(pair) == 2 {
				do(pair[0], pair[1])
			}
		}
		if cursor == 0 {
			return nil
		}
	}
	return nil
}

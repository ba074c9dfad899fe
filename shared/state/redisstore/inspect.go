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

// Node is a primary of the state, as it describes itself. Source: ADR-0039.
type Node struct {
	// Address is the host and port of the server, or the path of its socket.
	Address string
	// Product is redis or valkey, and Version its version: "7.0.15".
	Product, Version string
	// Took is the duration of a round trip: the shortest of five.
	Took time.Duration
	// Ahead is how far the server's clock is ahead of the clock of this process, give or take half of Took. Negative:
	// the server's clock is behind.
	Ahead time.Duration
	// Primary reports whether the server accepts writes.
	Primary bool
	// UsedBytes and MaxBytes are the memory that the server uses and may use. MaxBytes 0: there is no bound.
	UsedBytes, MaxBytes int64
	// Policy is what the server does when its memory is full: noeviction, or which keys it removes. Empty: unknown.
	Policy string
	// Evicted is the number of keys that the server has removed since its start because its memory was full.
	Evicted int64
	// AppendOnly reports whether the server writes a log of changes. Fsync says when this log is on disk: always,
	// everysec or no. An empty Fsync is unknown.
	AppendOnly bool
	Fsync      string
	// Unsaved reports whether the server's last write of the log or of a snapshot to disk failed.
	Unsaved bool
	// Snapshots reports whether the server writes snapshots by itself. Unknown counts as false.
	Snapshots bool
	// Replicas is the number of connected replicas. Lagging is how many of them were silent for more than ten seconds.
	Replicas, Lagging int
	// MinReplicas is how many replicas must be connected before the server accepts writes. 0: none, or unknown.
	MinReplicas int
	// Cluster is the state of the server's cluster: ok or fail. Empty: the server is not in a cluster.
	Cluster string
}

// Inspect asks each primary about itself, in order of their addresses. Fields that a server does not report stay empty,
// for example on a hosted server that refuses CONFIG. It returns the errors of Ping.
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

// attempts is how often the clock is read: the shortest round trip counts.
const attempts = 5

func inspect(ctx context.Context, client *redis.Client) (Node, error) {
	node := Node{Address: client.Options().Addr}
	for range attempts {
		start := time.Now()
		clock, err := client.Time(ctx).Result()
		if err != nil {
			return node, err
		}
		// The first round trip may open a connection, and later ones may meet a busy machine.
		if took := time.Since(start); node.Took == 0 || took < node.Took {
			node.Took, node.Ahead = took, clock.Sub(start.Add(took/2))
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

// read takes the values from the reply to INFO.
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

// configure takes the values of a parameter from the reply to CONFIG GET.
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

// Contents describes the content of a resource. Source: ADR-0039.
type Contents struct {
	// Resource is the name of the resource, and Layout the version of the layout of its keys.
	Resource, Layout string
	Objects          int64
	// Looked is the number of records that were read, and Formats how many of them have a format, by its number. A
	// record without a format counts under "".
	Looked  int
	Formats map[string]int
	// Sealed is the number of sealed texts in the records that were read, by the id of the key.
	Sealed map[string]int
	// Owners are the owners whose tallies were read.
	Owners []Usage
}

// Usage is the number and size of an owner's objects of a resource.
type Usage struct {
	Owner          string
	Objects, Bytes int64
}

// Layout is the version of the layout of the keys, which this build reads and writes.
const Layout = prefix

// Reads reports whether this build reads records of a format.
func Reads(number string) bool { return number == format }

// scanned is the number of keys, records or owners that one command reads.
const scanned = 50

// Contents describes each resource of the state, in order of layouts and names. It reads at most the given number of
// keys of each primary, and at most the given number of records and owners of each resource, in no order. It takes many
// short commands. It returns the errors of Ping.
func (c *Client) Contents(ctx context.Context, most int) ([]Contents, error) {
	var mu sync.Mutex
	var contents []Contents
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
				contents = append(contents, Contents{Resource: name, Layout: layout, Formats: map[string]int{}, Sealed: map[string]int{}})
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
	slices.SortFunc(contents, func(a, b Contents) int {
		return cmp.Or(cmp.Compare(a.Layout, b.Layout), cmp.Compare(a.Resource, b.Resource))
	})
	contents = slices.CompactFunc(contents, func(a, b Contents) bool { return a.Layout == b.Layout && a.Resource == b.Resource })
	for i := range contents {
		if contents[i].Layout != prefix {
			continue
		}
		if err := c.inspectResource(ctx, &contents[i], most); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// A sealed text in a record is the id of the key, a dot, and in base64url at least the 28 bytes that sealing adds, as
// package encryption writes it. In a field of bytes, this text is in base64 again. Other parts of an object that have
// this form by chance are counted too.
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

// inspectResource fills in the content of a resource.
func (c *Client) inspectResource(ctx context.Context, into *Contents, most int) error {
	k := newKeys(into.Resource)
	err := c.eachField(ctx, k.objects, most, func(_, record string) {
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
	err = c.eachField(ctx, k.bytes, most, func(owner, tally string) {
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

// eachField calls do with fields of a hash and their values, up to a number of fields.
func (c *Client) eachField(ctx context.Context, key string, most int, do func(field, value string)) error {
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

// Package redisstore keeps a resource's state in Redis, for any number of functions that share nothing
// else: one Lua script per write, all or nothing, and every key of a resource in one slot. It runs the
// same on Redis 7, on a cluster and on the server embedded in the local runner.
// Source: Spec 2.2 (resourceVersion), 7; ADR-0002.
//
// It does not parse objects or keep them, subscribe to anything while nobody waits, or repeat a write
// whose fate is unknown.
package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/store"
)

// DefaultTimeout bounds an operation when Options.Timeout is zero. Source: ADR-0002.
const DefaultTimeout = settings.DefaultRedisTimeout

// DefaultLogLength is the length of an event log when Options.LogLength is zero. Source: ADR-0002.
const DefaultLogLength = 10000

// idleTimeout is below the 350 seconds after which cloud networks drop a silent connection unannounced.
const idleTimeout = 4 * time.Minute

// maxNames bounds how many digests are remembered with the name that they led to.
const maxNames = 4096

// DefaultPoolSize is the number of connections when Options.PoolSize is zero. Source: ADR-0002.
const DefaultPoolSize = settings.DefaultPoolSize

// Options are the settings of a Client. The zero value is good for a server. Source: ADR-0002.
type Options struct {
	// LogLength is how many events of each resource are kept at least, once that many happened. Redis
	// trims in blocks, so there may be some more. 0: DefaultLogLength.
	LogLength int
	// Timeout bounds every operation, connecting included, except for the time that Events is told to
	// wait. 0: DefaultTimeout.
	Timeout time.Duration
	// PoolSize bounds the connections per Redis node; they are opened as they are needed. A function that serves
	// one request at a time does with 4. 0: DefaultPoolSize.
	PoolSize int
	// TLS is what rediss:// and its like verify the server with; parameters of the URL add to it. With a URL
	// that has no TLS it is an error. nil: the authorities of the system.
	TLS *tls.Config
	// Replicas is how many replicas must have a write of an object before it is acknowledged. Where fewer have it
	// in time the write is done and reported as ErrUnavailable, since it may be lost yet. Touch and Trim do not
	// wait. The embedded server has no replicas: every write fails there. 0: the primary's word is enough.
	Replicas int
	// ReplicaTimeout is how long to wait for them, in whole milliseconds and less than Timeout. 0: half of Timeout.
	ReplicaTimeout time.Duration
}

// Client is a pool of connections to one Redis or one cluster. It is safe for concurrent use, outlives a
// restart of Redis and is to be opened once per process.
type Client struct {
	redis          redis.UniversalClient
	timeout        time.Duration
	logLength      int
	replicas       int
	replicaTimeout time.Duration

	mu    sync.Mutex
	feeds map[string]*feed
}

// Open prepares a Client for one of
//
//	redis://[user:password@]host[:port][/database]
//	unix://[user:password@]/path/of/socket[?db=database]
//	redis-cluster://[user:password@]host[:port][,host[:port]...]
//	redis-sentinel://[user:password@]host[:port][,host[:port]...]/name[/database]
//
// and rediss, rediss-cluster and rediss-sentinel with TLS. Hosts of a cluster are seeds, one is enough; those of
// the last form are sentinels, which say where the primary of that name is. User and password are for Redis,
// parameters sentinel_username and sentinel_password for the sentinels. Special characters of a password are
// percent-encoded. Several redis:// or rediss:// URLs separated by commas are a cluster too; credentials and
// parameters are those of the first.
//
// Parameters of the forms with TLS: ca_file is a file of authorities in PEM, in place of those of the system;
// server_name the name to verify in place of the host that is dialled; cert_file and key_file the client's own
// certificate; skip_verify=true verifies nothing. Files are read once.
//
// It does not connect: a Redis that is away is seen at the first use. Errors name what is wrong with the URL and
// never quote it, since it may hold a password.
func Open(rawURL string, opts Options) (*Client, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("opening store: %w", err)
	}
	at, err := parse(rawURL, opts.TLS)
	if err != nil {
		return nil, fmt.Errorf("opening store: Redis URL: %w", err)
	}
	// The client library writes plain text to standard error; everything it has to say is in our errors.
	logging.Disable()
	return &Client{
		redis: newRedis(at, opts), timeout: opts.Timeout, logLength: opts.LogLength,
		replicas: opts.Replicas, replicaTimeout: opts.ReplicaTimeout, feeds: map[string]*feed{},
	}, nil
}

// complete fills in what is zero.
func (o *Options) complete() error {
	switch {
	case o.LogLength < 0:
		return fmt.Errorf("log length %d is negative", o.LogLength)
	case o.Timeout < 0:
		return fmt.Errorf("timeout %v is negative", o.Timeout)
	case o.PoolSize < 0:
		return fmt.Errorf("pool size %d is negative", o.PoolSize)
	case o.Replicas < 0:
		return fmt.Errorf("%d replicas is negative", o.Replicas)
	}
	o.LogLength = cmp.Or(o.LogLength, DefaultLogLength)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.PoolSize = cmp.Or(o.PoolSize, DefaultPoolSize)
	o.ReplicaTimeout = cmp.Or(o.ReplicaTimeout, max(o.Timeout/2, time.Millisecond))
	// Zero is forever for Redis.
	if o.Replicas > 0 && (o.ReplicaTimeout < time.Millisecond || o.ReplicaTimeout >= o.Timeout) {
		return fmt.Errorf("timeout %v for replicas is not between a millisecond and that of operations, %v", o.ReplicaTimeout, o.Timeout)
	}
	return nil
}

// newRedis sets the client library up. It repeats nothing, says nothing of itself and keeps one pool per node.
func newRedis(at address, opts Options) redis.UniversalClient {
	// An operation still has time to report what is wrong.
	dial := opts.Timeout / 2
	connect := connect{tls: at.tls}
	if at.kind == sentinel {
		connect.sentinel = opts.Timeout / 10
	}
	options := &redis.UniversalOptions{
		Addrs:                    at.hosts,
		MasterName:               at.master,
		SentinelUsername:         at.sentinelUsername,
		SentinelPassword:         at.sentinelPassword,
		Dialer:                   connect.dial,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ContextTimeoutEnabled:    true,
		MaxRetries:               -1,
		DialTimeout:              dial,
		DialerRetries:            1,
		ReadTimeout:              opts.Timeout,
		WriteTimeout:             opts.Timeout,
		PoolTimeout:              opts.Timeout,
		PoolSize:                 opts.PoolSize,
		PipelinePoolSize:         -1,
		ConnMaxIdleTime:          idleTimeout,
		Username:                 at.username,
		Password:                 at.password,
		DB:                       at.database,
	}
	switch at.kind {
	case cluster:
		nodes := options.Cluster()
		nodes.DisableRoutingPolicies = true // saves asking for the command table at the first use
		client := redis.NewClusterClient(nodes)
		client.OnNewNode(func(node *redis.Client) {
			node.AddHook(once{})
			node.AddHook(newGate(opts.Timeout))
		})
		return client
	case sentinel:
		client := redis.NewFailoverClient(options.Failover())
		client.AddHook(newGate(opts.Timeout))
		return client
	default:
		single := options.Simple()
		if at.socket {
			single.Network = "unix"
		}
		client := redis.NewClient(single)
		client.AddHook(newGate(opts.Timeout))
		return client
	}
}

// Resource returns the Store of one resource. The name consists of a-z, 0-9, dash and dot; another one is a
// programmer's error and panics. Stores of the same name share their state.
func (c *Client) Resource(name string) store.Store {
	if !validResource(name) {
		panic(fmt.Sprintf("redisstore: resource name %q", name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := newKeys(name)
	f := c.feeds[name]
	if f == nil {
		f = newFeed(c, k)
		c.feeds[name] = f
	}
	// Only a size below one is an error.
	names, _ := lru.New[string, string](maxNames)
	return &resource{client: c, keys: k, feed: f, names: names}
}

// Ping tells whether state can be reached: nil, ErrUnavailable, or the context's error. On a cluster every
// master must answer.
func (c *Client) Ping(ctx context.Context) error {
	return c.run(ctx, "pinging", func(ctx context.Context) error {
		if cluster, ok := c.redis.(*redis.ClusterClient); ok {
			return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
				return node.Ping(ctx).Err()
			})
		}
		return c.redis.Ping(ctx).Err()
	})
}

// Close ends all connections. Operations under way and later ones fail with ErrUnavailable.
func (c *Client) Close() error {
	return c.redis.Close()
}

// run does an operation that changes nothing, or nothing that doing it twice would change again. When a connection
// ends before any byte of the answer it is done once more.
func (c *Client) run(ctx context.Context, doing string, operation func(context.Context) error) error {
	return c.runOnce(ctx, doing, func(ctx context.Context) error {
		err := operation(ctx)
		if unanswered(err) && ctx.Err() == nil {
			err = operation(ctx)
		}
		return err
	})
}

// runOnce does one operation within the timeout and translates its error. Only what was not sent is done again.
func (c *Client) runOnce(ctx context.Context, doing string, operation func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	start := time.Now()
	err := operation(bounded)
	for stale(err, start) && bounded.Err() == nil {
		err = operation(bounded)
	}
	err = c.translate(ctx, doing, err)
	if cluster, ok := c.redis.(*redis.ClusterClient); ok && errors.Is(err, store.ErrUnavailable) {
		// A replica may have taken over; otherwise that would be noticed some ten seconds later.
		cluster.ReloadState(ctx)
	}
	return err
}

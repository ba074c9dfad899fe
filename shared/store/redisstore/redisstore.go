// Package redisstore keeps a resource's state in Redis, for any number of functions that share nothing
// else: one Lua script per write, all or nothing, and every key of a resource in one slot. It runs the
// same on Redis 7, on a cluster and on the server embedded in the local runner.
// Source: Spec 2.2 (resourceVersion), 7; ADR-0002.
//
// It does not parse objects or keep them, subscribe to anything while nobody waits, or repeat a write
// whose fate is unknown.
package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"management.platform.sh/shared/store"
)

// DefaultTimeout bounds an operation when Options.Timeout is zero. Source: ADR-0002.
const DefaultTimeout = time.Second

// DefaultLogLength is the length of an event log when Options.LogLength is zero. Source: ADR-0002.
const DefaultLogLength = 10000

// dialTimeout is short so that an operation still has time to report what is wrong.
const dialTimeout = 500 * time.Millisecond

// idleTimeout is below the 350 seconds after which cloud networks drop a silent connection unannounced.
const idleTimeout = 4 * time.Minute

// maxNames bounds how many digests are remembered with the name that they led to.
const maxNames = 4096

// poolSize bounds the connections per Redis node; they are opened as they are needed.
const poolSize = 64

// Options are the settings of a Client. The zero value is good for production.
type Options struct {
	// LogLength is how many events of each resource are kept at least, once that many happened. Redis
	// trims in blocks, so there may be some more. 0: DefaultLogLength.
	LogLength int
	// Timeout bounds every operation, connecting included, except for the time that Events is told to
	// wait. 0: DefaultTimeout.
	Timeout time.Duration
}

// Client is a pool of connections to one Redis or one cluster. It is safe for concurrent use, outlives a
// restart of Redis and is to be opened once per process.
type Client struct {
	redis     redis.UniversalClient
	timeout   time.Duration
	logLength int

	mu    sync.Mutex
	feeds map[string]*feed
}

// Open prepares a Client for redis://, rediss:// (TLS) or unix:// with the path of a socket. Several
// redis:// or rediss:// URLs separated by commas are the seeds of a cluster; credentials are those of the
// first. It does not connect: a Redis that is away is seen at the first use. Errors name what is wrong with
// the URL and never quote it, since it may hold a password.
func Open(rawURL string, opts Options) (*Client, error) {
	if opts.LogLength < 0 {
		return nil, fmt.Errorf("opening store: log length %d is negative", opts.LogLength)
	}
	if opts.Timeout < 0 {
		return nil, fmt.Errorf("opening store: timeout %v is negative", opts.Timeout)
	}
	if opts.LogLength == 0 {
		opts.LogLength = DefaultLogLength
	}
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	client := &Client{timeout: opts.Timeout, logLength: opts.LogLength, feeds: map[string]*feed{}}

	seeds := strings.Split(rawURL, ",")
	var nodes []*redis.Options
	for i, seed := range seeds {
		node, err := parseURL(strings.TrimSpace(seed))
		if err != nil {
			if len(seeds) > 1 {
				return nil, fmt.Errorf("opening store: Redis URL %d of %d: %w", i+1, len(seeds), err)
			}
			return nil, fmt.Errorf("opening store: Redis URL: %w", err)
		}
		nodes = append(nodes, node)
	}
	// The client library writes plain text to standard error; everything it has to say is in our errors.
	logging.Disable()

	dial := min(dialTimeout, opts.Timeout)
	if len(nodes) == 1 {
		o := nodes[0]
		o.Protocol = 2
		o.DisableIdentity = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		o.ContextTimeoutEnabled = true
		o.MaxRetries = -1
		o.DialTimeout, o.DialerRetries = dial, 1
		o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = opts.Timeout, opts.Timeout, opts.Timeout
		o.PoolSize, o.ConnMaxIdleTime = poolSize, idleTimeout
		client.redis = redis.NewClient(o)
		return client, nil
	}

	o := &redis.ClusterOptions{
		Protocol:                 2,
		DisableIdentity:          true,
		DisableRoutingPolicies:   true, // saves asking for the command table at the first use
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ContextTimeoutEnabled:    true,
		MaxRetries:               -1,
		DialTimeout:              dial,
		DialerRetries:            1,
		ReadTimeout:              opts.Timeout,
		WriteTimeout:             opts.Timeout,
		PoolTimeout:              opts.Timeout,
		PoolSize:                 poolSize,
		ConnMaxIdleTime:          idleTimeout,
		Username:                 nodes[0].Username,
		Password:                 nodes[0].Password,
	}
	for _, node := range nodes {
		switch {
		case node.Network != "tcp":
			return nil, errors.New("opening store: a cluster is reached through redis:// or rediss:// URLs only")
		case node.DB != 0:
			return nil, errors.New("opening store: a cluster has no database number")
		case (node.TLSConfig == nil) != (nodes[0].TLSConfig == nil):
			return nil, errors.New("opening store: use either redis:// or rediss:// for all nodes of a cluster")
		}
		o.Addrs = append(o.Addrs, node.Addr)
	}
	if config := nodes[0].TLSConfig; config != nil {
		// Without a name of its own each node is verified by the name it is dialled by.
		o.TLSConfig = &tls.Config{MinVersion: config.MinVersion, InsecureSkipVerify: config.InsecureSkipVerify} //nolint:gosec // set by who wrote skip_verify into the URL
	}
	cluster := redis.NewClusterClient(o)
	cluster.OnNewNode(func(node *redis.Client) { node.AddHook(once{}) })
	client.redis = cluster
	return client, nil
}

// parseURL never lets a word of the URL into an error: what a parser takes for a scheme, a port or a
// database may be a piece of a password.
func parseURL(raw string) (*redis.Options, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("it cannot be parsed; write redis://[user:password@]host[:port][/database], " +
			"rediss://... or unix://[user:password@]/path/of/socket, with special characters of the password percent-encoded")
	}
	switch u.Scheme {
	case "redis", "rediss":
		if u.Host == "" {
			return nil, errors.New("it has no host")
		}
	case "unix":
		if u.Path == "" {
			return nil, errors.New("it has no path of a socket")
		}
	default:
		return nil, errors.New("the scheme is not redis, rediss or unix")
	}
	o, err := redis.ParseURL(raw)
	if err != nil {
		return nil, errors.New("the database number or one of the parameters after ? is not valid")
	}
	return o, nil
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

// run does one operation within the timeout and translates its error.
func (c *Client) run(ctx context.Context, doing string, operation func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.translate(ctx, doing, operation(bounded))
	if cluster, ok := c.redis.(*redis.ClusterClient); ok && errors.Is(err, store.ErrUnavailable) {
		// A replica may have taken over; otherwise that would be noticed some ten seconds later.
		cluster.ReloadState(ctx)
	}
	return err
}

// Package redisstore keeps a resource's state in Redis, for any number of functions that share nothing else. Each write
// is one Lua script, all or nothing, and all keys of a resource are in one slot. It works the same with Redis 7, a
// cluster and the server embedded in the local runner. Source: Spec 2.2 (resourceVersion), 7; ADR-0002.
//
// It does not parse or cache objects, does not block in Redis unless a caller waits for events, and does not repeat a
// write that may already have been executed.
package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/store"
)

// DefaultTimeout bounds an operation when Options.Timeout is zero. Source: ADR-0002.
const DefaultTimeout = settings.DefaultRedisTimeout

// DefaultLogLength is the length of an event log when Options.LogLength is zero. Source: ADR-0002.
const DefaultLogLength = 10000

// idleTimeout is shorter than the 350 seconds after which cloud networks drop a silent connection without notice.
const idleTimeout = 4 * time.Minute

// maxNames bounds how many digests are cached, each with the name of its object.
const maxNames = 4096

// DefaultPoolSize is the number of connections when Options.PoolSize is zero. Source: ADR-0002.
const DefaultPoolSize = settings.DefaultPoolSize

// Options are the settings of a Client. The zero value suits a server. Source: ADR-0002.
type Options struct {
	// LogLength is the minimum number of events kept for each resource, once there have been that many. Redis trims in
	// blocks, so there may be some more. 0: DefaultLogLength.
	LogLength int
	// Timeout bounds every operation, including connecting, but not the time that a caller of Events asks to
	// wait. 0: DefaultTimeout.
	Timeout time.Duration
	// PoolSize bounds the connections per Redis node; they are opened as they are needed. For a function that serves
	// one request at a time, 4 are enough. 0: DefaultPoolSize.
	PoolSize int
	// TLS is the configuration for rediss:// and the other schemes with TLS; parameters of the URL add to it. It is an
	// error if the URL's scheme has no TLS. Nil: the system's certificate authorities verify the server.
	TLS *tls.Config
	// Dialer opens the connections; it can refuse addresses. Nil: all addresses are allowed.
	Dialer *net.Dialer
	// MaxReply bounds a reply, in bytes, of a Redis that is not trusted: the library allocates what a reply announces. 0: the Redis is
	// trusted. Source: ADR-0047.
	MaxReply int64
	// Replicas is how many replicas must have a write of an object before it is acknowledged. If fewer replicas have it
	// in time, the write is done but reported as ErrUnavailable, because it may still be lost. Touch and Trim do not
	// wait. The embedded server has no replicas, so every write fails there. 0: the primary alone acknowledges.
	Replicas int
	// ReplicaTimeout is how long to wait for the replicas, in whole milliseconds and less than Timeout. 0: half of
	// Timeout.
	ReplicaTimeout time.Duration
}

// Client is a pool of connections to one Redis or one cluster. It is safe for concurrent use and outlives a
// restart of Redis. Open one per process.
type Client struct {
	options Options

	opening sync.Mutex
	// redis is nil until the Client is open.
	redis redis.UniversalClient
	// url returns the URL of a Client that is opened late, and source names the place of the URL.
	url    func(context.Context) (secret.String, error)
	source string

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
// and rediss, rediss-cluster and rediss-sentinel with TLS. Hosts of a cluster are seeds, and one is enough. Hosts of
// the last form are sentinels, which know where the primary of that name is. User and password are for Redis;
// the parameters sentinel_username and sentinel_password are for the sentinels. Special characters of a password are
// percent-encoded. Several redis:// or rediss:// URLs separated by commas are a cluster too, with the credentials and
// parameters of the first.
//
// Parameters of the forms with TLS: ca_file is a PEM file of certificate authorities that replace the system's;
// server_name is the name to verify in place of the host; cert_file and key_file are the client's own
// certificate; skip_verify=true turns verification off. Files are read once.
//
// Open does not connect: the first use shows whether Redis is reachable. Errors say what is wrong with the URL and
// never quote it, because it may contain a password.
func Open(rawURL string, opts Options) (*Client, error) {
	c, err := OpenLate("", nil, opts)
	if err != nil {
		return nil, err
	}
	if err := c.connect(rawURL); err != nil {
		return nil, err
	}
	return c, nil
}

// OpenLate prepares a Client whose URL is not known yet. Its first use calls url and opens the URL as Open does. If
// that fails, the operation fails with ErrUnavailable, and the next one tries again. Source names the place of the URL,
// for these errors. Errors of OpenLate are about the options alone.
func OpenLate(source string, url func(context.Context) (secret.String, error), opts Options) (*Client, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, fmt.Errorf("opening store: %w", err)
	}
	return &Client{options: opts, url: url, source: source, feeds: map[string]*feed{}}, nil
}

func (c *Client) connect(rawURL string) error {
	parsed, err := parse(rawURL, c.options.TLS)
	if err != nil {
		return fmt.Errorf("opening store: Redis URL: %w", err)
	}
	// The client library logs plain text to standard error. The errors returned here contain the same information.
	logging.Disable()
	c.redis = newRedis(parsed, c.options)
	return nil
}

// ready opens a Client that is opened late, unless it is open.
func (c *Client) ready(ctx context.Context) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.redis != nil {
		return nil
	}
	url, err := c.url(ctx)
	if err == nil {
		err = c.connect(url.Reveal())
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, c.source, err)
	}
	return nil
}

// setDefaults checks the options and replaces zero values by their defaults.
func (o *Options) setDefaults() error {
	switch {
	case o.LogLength < 0:
		return fmt.Errorf("log length %d is negative", o.LogLength)
	case o.Timeout < 0:
		return fmt.Errorf("timeout %v is negative", o.Timeout)
	case o.PoolSize < 0:
		return fmt.Errorf("pool size %d is negative", o.PoolSize)
	case o.Replicas < 0:
		return fmt.Errorf("number of replicas %d is negative", o.Replicas)
	}
	o.LogLength = cmp.Or(o.LogLength, DefaultLogLength)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.PoolSize = cmp.Or(o.PoolSize, DefaultPoolSize)
	o.ReplicaTimeout = cmp.Or(o.ReplicaTimeout, max(o.Timeout/2, time.Millisecond))
	// Redis waits forever if the timeout is zero.
	if o.Replicas > 0 && (o.ReplicaTimeout < time.Millisecond || o.ReplicaTimeout >= o.Timeout) {
		return fmt.Errorf("timeout %v for replicas must be at least 1ms and less than the timeout of operations, %v", o.ReplicaTimeout, o.Timeout)
	}
	return nil
}

// newRedis sets up the client library: without retries, without sending its own name, and with one pool per node.
func newRedis(target address, opts Options) redis.UniversalClient {
	var forSentinel time.Duration
	if target.kind == sentinel {
		forSentinel = opts.Timeout / 10
	}
	options := &redis.UniversalOptions{
		Addrs:                    target.hosts,
		MasterName:               target.master,
		SentinelUsername:         target.sentinelUsername,
		SentinelPassword:         target.sentinelPassword,
		Dialer:                   dialer(cmp.Or(opts.Dialer, &net.Dialer{}), target.tls, forSentinel, opts.MaxReply),
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ContextTimeoutEnabled:    true,
		MaxRetries:               -1,
		DialTimeout:              opts.Timeout,
		DialerRetries:            1,
		ReadTimeout:              opts.Timeout,
		WriteTimeout:             opts.Timeout,
		PoolTimeout:              opts.Timeout,
		PoolSize:                 opts.PoolSize,
		PipelinePoolSize:         -1,
		ConnMaxIdleTime:          idleTimeout,
		Username:                 target.username,
		Password:                 target.password,
		DB:                       target.database,
	}
	switch target.kind {
	case cluster:
		nodes := options.Cluster()
		nodes.DisableRoutingPolicies = true // saves the request for the command table at the first use
		client := redis.NewClusterClient(nodes)
		client.OnNewNode(func(node *redis.Client) {
			node.AddHook(noRepeatHook{})
			node.AddHook(newPeer(opts.Timeout))
		})
		return client
	case sentinel:
		client := redis.NewFailoverClient(options.Failover())
		client.AddHook(newPeer(opts.Timeout))
		return client
	default:
		single := options.Simple()
		if target.socket {
			single.Network = "unix"
		}
		client := redis.NewClient(single)
		client.AddHook(newPeer(opts.Timeout))
		return client
	}
}

// Resource returns the Store of one resource. The name consists of a-z, 0-9, dash and dot; any other name is a mistake
// in the program, and Resource panics. Stores of the same name share their state.
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
	// The only error is a size below one.
	names, _ := lru.New[string, string](maxNames)
	return &resource{client: c, name: name, keys: k, feed: f, names: names}
}

// Ping returns nil if the state can be reached, and otherwise ErrUnavailable or the context's error. On a cluster
// every master must answer.
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
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.redis == nil {
		c.url = func(context.Context) (secret.String, error) { return "", redis.ErrClosed }
		return nil
	}
	return c.redis.Close()
}

// run runs an operation that only reads, or that may safely run twice. If the connection ends before any byte of the
// reply, it runs the operation once more.
func (c *Client) run(ctx context.Context, doing string, operation func(context.Context) error) error {
	return c.runOnce(ctx, doing, func(ctx context.Context) error {
		err := operation(ctx)
		if isUnanswered(err) && ctx.Err() == nil {
			err = operation(ctx)
		}
		return err
	})
}

// runOnce runs one operation within the timeout and translates its error. It repeats an operation only if nothing of it
// was sent.
func (c *Client) runOnce(ctx context.Context, doing string, operation func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := c.ready(ctx); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	start := time.Now()
	err := operation(bounded)
	for isStale(err, start) && bounded.Err() == nil {
		err = operation(bounded)
	}
	err = c.translate(ctx, doing, err)
	if cluster, ok := c.redis.(*redis.ClusterClient); ok && errors.Is(err, store.ErrUnavailable) {
		// A replica may have taken over. Without a reload the client would notice that about ten seconds later.
		cluster.ReloadState(ctx)
	}
	return err
}

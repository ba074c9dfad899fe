package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/shared/state/storetest"
)

// patient are options for tests that do not measure speed: they must not fail on a busy machine.
var patient = redisstore.Options{LogLength: storetest.LogLength, Timeout: 30 * time.Second}

// prompt is for tests in which Redis does not answer in time.
var prompt = redisstore.Options{Timeout: redisstore.DefaultTimeout}

// open opens a client. A zero Timeout is the timeout of patient.
func open(t testing.TB, url string, options redisstore.Options) *redisstore.Client {
	t.Helper()
	options.Timeout = cmp.Or(options.Timeout, patient.Timeout)
	client, err := redisstore.Open(url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

var resources atomic.Int64

// freshName returns a name that no test has used on its server. Different names are in different slots.
func freshName() string { return fmt.Sprintf("things-%d", resources.Add(1)) }

func suite(t *testing.T, url string) {
	client := open(t, url, patient)
	storetest.Run(t, func(*testing.T) store.Store { return client.Resource(freshName()) })
}

// skipIfShort skips a whole suite over another way to a server in short runs. The special cases of that way have tests of
// their own.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the same suite runs over TCP")
	}
}

func TestEmbedded(t *testing.T) { suite(t, redistest.Embedded(t)) }

func TestServer(t *testing.T) { suite(t, redistest.Server(t).URL()) }

func TestUnixSocket(t *testing.T) {
	skipIfShort(t)
	suite(t, redistest.Server(t, redistest.Password("s3cret")).UnixURL())
}

func TestCluster(t *testing.T) { suite(t, redistest.Cluster(t)) }

func TestSentinel(t *testing.T) {
	skipIfShort(t)
	primary := redistest.Server(t, redistest.Password("s3cret"))
	guard := redistest.Sentinel(t, "state", primary, 0)
	suite(t, "redis-sentinel://:s3cret@"+guard.Address()+"/state")
}

// whole returns all records, all events and the revision of a store without writers.
func whole(ctx context.Context, s store.Store) (records []store.Record, events []store.Event, revision int64, err error) {
	page, err := s.List(ctx, store.Query{Limit: 1})
	if err != nil {
		return nil, nil, 0, err
	}
	for record, err := range store.Each(ctx, s, store.Query{}) {
		if err != nil {
			return nil, nil, 0, err
		}
		records = append(records, record)
	}
	for after := start; after < page.Revision; after = events[len(events)-1].Revision {
		more, err := s.Events(ctx, after, 1000, 0)
		if err != nil {
			return nil, nil, 0, err
		}
		events = append(events, more...)
	}
	return records, events, page.Revision, nil
}

// keysOf returns the keys in a server, except the keys that name the server: the embedded server has no id.
func keysOf(t *testing.T, r *redis.Client) []string {
	t.Helper()
	keys, err := r.Keys(t.Context(), "*").Result()
	must(t, err)
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":server") })
}

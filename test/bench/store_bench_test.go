// Package bench measures the parts of requests against the bare operation of the same server in the
// same run: on a shared machine, only the ratio is meaningful.
package bench

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// size is about that of an access key.
const size = 1024

func thing(i int64) store.Record {
	return store.Record{
		Name: fmt.Sprintf("n%09d", i), Owner: fmt.Sprint("user:", i%10), Digest: fmt.Sprintf("%064x", i),
		Created: time.UnixMilli(i), Expires: time.UnixMilli(i + 1e6), Object: bytes.Repeat([]byte("x"), size),
	}
}

// BenchmarkStore has one real Redis, without persistence, on a unix socket.
func BenchmarkStore(b *testing.B) {
	url := redistest.Server(b).UnixURL()
	client, err := redisstore.Open(url, redisstore.Options{Timeout: 10 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	options, err := redis.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	options.Protocol, options.DisableIdentity = 2, true
	raw := redis.NewClient(options)
	b.Cleanup(func() { raw.Close() })

	// each runs an operation from one goroutine and from sixteen per processor.
	each := func(b *testing.B, name string, operation func(b *testing.B, i int64) error) {
		for _, parallel := range []int{0, 16} {
			b.Run(fmt.Sprintf("%s/parallel=%d", name, parallel), func(b *testing.B) {
				var next atomic.Int64
				step := func() {
					if err := operation(b, next.Add(1)); err != nil {
						b.Error(err)
					}
				}
				if parallel == 0 {
					for b.Loop() {
						step()
					}
					return
				}
				b.SetParallelism(parallel)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						step()
					}
				})
			})
		}
	}

	const objects = 5000
	value := bytes.Repeat([]byte("x"), size)
	for i := range int64(objects) {
		if err := raw.Set(b.Context(), fmt.Sprint("raw", i), value, 0).Err(); err != nil {
			b.Fatal(err)
		}
	}
	filled := client.Resource("filled")
	for i := range int64(objects) {
		if _, err := filled.Create(b.Context(), thing(i)); err != nil {
			b.Fatal(err)
		}
	}

	each(b, "RawSet", func(b *testing.B, i int64) error {
		return raw.Set(b.Context(), fmt.Sprint("raw", i%objects), value, 0).Err()
	})
	each(b, "RawGet", func(b *testing.B, i int64) error {
		return raw.Get(b.Context(), fmt.Sprint("raw", i%objects)).Err()
	})
	each(b, "Get", func(b *testing.B, i int64) error {
		_, err := filled.Get(b.Context(), thing(i%objects).Name)
		return err
	})
	each(b, "GetByDigest", func(b *testing.B, i int64) error {
		_, err := filled.GetByDigest(b.Context(), fmt.Sprintf("%064x", i%objects))
		return err
	})
	var names atomic.Int64
	created := client.Resource("created")
	each(b, "Create", func(b *testing.B, _ int64) error {
		_, err := created.Create(b.Context(), thing(names.Add(1)))
		return err
	})
	// Read first, as every update is; the goroutines hardly ever meet on one of so many objects.
	each(b, "GetAndUpdate", func(b *testing.B, i int64) error {
		record, err := filled.Get(b.Context(), thing(i%objects).Name)
		if err != nil {
			return err
		}
		_, err = filled.Update(b.Context(), record)
		return err
	})
	each(b, "Touch", func(b *testing.B, i int64) error {
		return filled.Touch(b.Context(), thing(i%objects), time.UnixMilli(i), time.UnixMilli(i+1e6))
	})
	each(b, "List500", func(b *testing.B, i int64) error {
		_, err := filled.List(b.Context(), store.Query{Limit: 500, After: thing(i % 4000).Name})
		return err
	})
	each(b, "List500OfTwoOwners", func(b *testing.B, _ int64) error {
		_, err := filled.List(b.Context(), store.Query{Limit: 500, Owners: []string{"user:1", "user:2"}})
		return err
	})
}

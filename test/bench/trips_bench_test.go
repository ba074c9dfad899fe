package bench

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkSharedTrips compares a trip for each request with the library's pipelines of concurrent requests. cpu-us/op is the CPU time of
// this process. Source: ADR-0028.
func BenchmarkSharedTrips(b *testing.B) {
	options, err := redis.ParseURL(redistest.Server(b).UnixURL())
	if err != nil {
		b.Fatal(err)
	}
	options.Protocol, options.DisableIdentity = 2, true
	raw := redis.NewClient(options)
	b.Cleanup(func() { _ = raw.Close() })
	const objects = 5000
	for i := range objects {
		if err := raw.HSet(b.Context(), "objects", fmt.Sprint(i), make([]byte, size)).Err(); err != nil {
			b.Fatal(err)
		}
	}
	shared, err := raw.AutoPipeline()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = shared.Close() })
	for _, way := range []struct {
		name string
		read func(ctx context.Context, key string, names ...string) *redis.SliceCmd
	}{{"own", raw.HMGet}, {"shared", shared.HMGet}} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/clients=%d", way.name, clients), func(b *testing.B) {
				next := make(chan int, clients)
				go func() {
					defer close(next)
					for i := range b.N {
						next <- i
					}
				}()
				before := processorTime(b)
				done := make(chan error, clients)
				for range clients {
					go func() {
						var failed error
						for i := range next {
							if err := way.read(b.Context(), "objects", fmt.Sprint(i%objects), fmt.Sprint((i+1)%objects)).Err(); err != nil {
								failed = err
							}
						}
						done <- failed
					}()
				}
				for range clients {
					if err := <-done; err != nil {
						b.Error(err)
					}
				}
				b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
			})
		}
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
